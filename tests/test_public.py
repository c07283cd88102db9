"""The names of `import irgym`, and the time it takes."""

import subprocess
import sys
from importlib.metadata import version
from statistics import median

import pytest

import irgym

HEAVY = {"torch", "torch_mlir", "llvmlite", "jax", "jaxlib", "tvm", "matplotlib", "tyro", "sklearn", "dask"}


def fresh(program: str) -> str:
    """Run a program in a fresh interpreter and return what it prints."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_loads_no_compiler_no_torch_and_no_environment():
    loaded = set(fresh("import sys, irgym; print(*sys.modules)").split())
    assert "irgym" in loaded and not loaded & HEAVY
    ours = {name for name in loaded if name.startswith("irgym.")}
    assert not any(name.startswith(("irgym.envs", "irgym.api", "irgym.judging")) for name in ours)


def test_public_functions_load_no_torch_before_they_are_called():
    names = ", ".join(f"irgym.{name}" for name in irgym.__all__)
    loaded = set(fresh(f"import sys, irgym; {names}; print(*sys.modules)").split())
    assert "irgym.api.training" in loaded and not loaded & (HEAVY - {"tyro"})


def test_every_public_name_is_there_and_documented():
    assert set(irgym.__all__) <= set(dir(irgym))
    for name in set(irgym.__all__) - {"__version__"}:
        assert getattr(irgym, name).__doc__, name
    assert irgym.__version__ == version("irgym")


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="has no attribute 'tuna'"):
        irgym.tuna  # noqa: B018  # pyright: ignore


def test_no_module_takes_the_place_of_a_function():
    modules = "import irgym.api.training, irgym.judging.result, irgym.cli.main"
    functions = "irgym.tune, irgym.replay, irgym.compare, irgym.train, irgym.evaluate, irgym.task"
    assert fresh(f"import irgym, {modules[7:]}; print(all(map(callable, [{functions}])))") == "True\n"


@pytest.mark.parametrize("imports", ["import irgym, gymnasium", "import gymnasium, irgym"])
def test_gymnasium_knows_the_environments(imports: str):
    made = "gymnasium.make('irgym/Loops-v0', programs=['loops://mm/8x8x8']).unwrapped.task.uri"
    assert fresh(f"{imports}; print({made})") == "loops://mm/8x8x8\n"


@pytest.mark.timed
def test_import_takes_at_most_two_and_a_half_times_as_long_as_numpy():
    program = "import time; start = time.perf_counter(); import {}; print(time.perf_counter() - start)"
    ratios = [float(fresh(program.format("irgym"))) / float(fresh(program.format("numpy"))) for _ in range(5)]
    assert median(ratios) <= 2.5, ratios
