"""No test writes to a folder of the user's, and what is built once on a machine is built off the clock."""

import gc
import os
import signal
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from kept_children import Shelf

from irgym.base.errors import BackendError
from irgym.envs.hlo.compiling.native.build import build, recipe
from irgym.measure.machine import cache_dir
from irgym.measure.variables import REMOVED

pytest_plugins = ["judged"]

# A stall of the machine while inputs are drawn says nothing about a test.
settings.register_profile("irgym", suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("irgym")

BUILT = "IRGYM_TESTS_BUILT"
"""Environment variable: where processes that run tests side by side find the folder of `built`."""

_numbers = count()


def pytest_configure(config: pytest.Config) -> None:
    """Make the folder that the tests of this run share; with several processes the first makes it for all."""
    # Tests interrupt commands: a run under nohup, or in a script's background, has these signals ignored.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    for variable in REMOVED:  # baselines that tests run in this process refuse to be held to slow kernels
        os.environ.pop(variable, None)
    if BUILT in os.environ:
        return
    folder = tempfile.TemporaryDirectory(prefix="irgym-tests-")
    config.add_cleanup(folder.cleanup)
    config.add_cleanup(lambda: os.environ.pop(BUILT))
    built = Path(folder.name) / "built"
    for shared in ("linalg", "graph", "cse", "llvm"):
        (built / shared).mkdir(parents=True)
    # Files under names made of all that they depend on: the engine, which takes half a minute, and modules;
    # the C that walks through LLVM's modules, and the C library's start code, which take ten seconds each.
    for shared in ("hlo", "llvm/native", "zig"):
        (cache_dir() / shared).mkdir(parents=True, exist_ok=True)
        (built / shared).symlink_to(cache_dir() / shared)
    os.environ[BUILT] = str(built)
    os.environ["WANDB_MODE"] = "offline"  # no test goes to the network
    os.environ["SB3_LOGDIR"] = str(Path(folder.name) / "sb3")  # else each model leaves a folder behind


def pytest_collection_finish(session: pytest.Session) -> None:
    """Keep garbage collection off what was imported; build hlo's engine before the tests that need it.

    Full collections, which look through torch and all tests, take a twentieth of the time unless they are
    rare. A slow machine takes longer for the engine than a test may.
    """
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], 100)
    if session.config.option.collectonly or not any("hlo" in item.nodeid for item in session.items):
        return
    try:
        build()
    except BackendError:
        return  # the tests that need it say so


@pytest.fixture(scope="session")
def built() -> Path:
    """A folder for what is the same for all tests: imported and compiled programs, hlo's engine."""
    return Path(os.environ[BUILT])


@pytest.fixture(scope="session")
def engine() -> None:
    """Skip what needs hlo's engine where a compiler or TensorFlow is missing; a failed build is an error."""
    try:
        recipe()
    except BackendError as error:
        pytest.skip(str(error))
    build()


@pytest.fixture(scope="session")
def shelf() -> Iterator[Shelf]:
    """Isolated processes between two tests."""
    shelf = Shelf()
    yield shelf
    shelf.close()


@pytest.fixture(autouse=True)
def kept_children(shelf: Shelf, request: pytest.FixtureRequest) -> Iterator[None]:
    """Share isolated processes with other tests, except where they are tested or something is timed."""
    if "measure" in request.path.parts or request.node.get_closest_marker("timed"):
        yield
        return
    with shelf.used():
        yield


@pytest.fixture(autouse=True)
def own_cache(built: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test an empty cost cache; artefacts that are built once are there."""
    folder = tmp_path_factory.getbasetemp() / f"cache-{next(_numbers)}"
    folder.mkdir()
    for shared in built.iterdir():
        (folder / shared.name).symlink_to(shared)
    monkeypatch.setenv("IRGYM_CACHE_DIR", str(folder))
    return folder
