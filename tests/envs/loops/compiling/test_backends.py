import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irgym.base.errors import BackendError
from irgym.core.target import X86_64_V3, X86_64_V4, Cache
from irgym.envs.loops.compiling import backends
from irgym.envs.loops.compiling.backends import AVX2, AVX512, BACKENDS, LLVM, Backend, backend, preferred
from irgym.envs.loops.nest import Nest, initial_nest
from irgym.envs.loops.programs.contraction import Contraction, matmul
from irgym.measure.machine import Machine, fingerprint
from irgym.measure.target import host_target, target_of_machine

each = pytest.mark.parametrize("generator", BACKENDS, ids=[candidate.name for candidate in BACKENDS])


@pytest.fixture
def fresh_probe() -> None:
    """Clear the cache of probes, so that a test can simulate another machine."""
    backends._status.cache_clear()
    yield
    backends._status.cache_clear()


def pretend(monkeypatch: pytest.MonkeyPatch, llvmlite: bool, **changes: object) -> None:
    machine: Machine = replace(fingerprint(), **changes)
    monkeypatch.setattr(backends, "fingerprint", lambda: machine)
    monkeypatch.setattr(backends, "host_target", lambda: target_of_machine(machine, ()))
    if not llvmlite:
        monkeypatch.setattr(backends, "find_spec", lambda name: None)


def require(generator: Backend) -> None:
    status = generator.available()
    if not status.available:
        pytest.skip(f"{status.name}: {status.detail}")


def compute(generator: Backend, contraction: Contraction, nest: Nest, repetitions: int = 1) -> np.ndarray:
    a, b = contraction.random_inputs(seed=0)
    c = np.full(contraction.shapes[2], np.nan, dtype=np.float32)
    with closing(generator.compile(contraction, nest)) as executable:
        executable.run(a.ctypes.data, b.ctypes.data, c.ctypes.data, repetitions)
    return c


@each
def test_compile_and_run(generator: Backend) -> None:
    require(generator)
    contraction = matmul(9, 37, 11)
    c = compute(generator, contraction, initial_nest(contraction), repetitions=3)
    np.testing.assert_allclose(c, contraction.reference(*contraction.random_inputs(seed=0)), atol=1e-5)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), prefetched=st.booleans())
def test_all_agree_on_random_nests(
    random_contraction: Callable[[int], Contraction],
    random_nest: Callable[[Contraction, int], Nest],
    prefetching: Callable[[bool], AbstractContextManager[object]],
    seed: int,
    prefetched: bool,
) -> None:
    contraction = random_contraction(seed)
    nest = random_nest(contraction, seed)
    reference = contraction.reference(*contraction.random_inputs(seed=0))
    terms = contraction.flops // (2 * reference.size)
    for generator in BACKENDS:
        if generator.available().available:
            with prefetching(prefetched):
                c = compute(generator, contraction, nest)
            np.testing.assert_allclose(
                c, reference, rtol=1e-5, atol=1e-6 * (terms + 8), err_msg=generator.name
            )


def test_a_back_end_knows_the_caches_that_code_is_made_for() -> None:
    for found in (preferred(), preferred(host_target()), backend(preferred().name)):
        assert found.target == host_target()
    small = replace(host_target(), caches=(Cache(1, 1 << 14),))
    assert preferred(small).target == backend(preferred().name, small).target == small


@each
def test_closing_twice_is_harmless(generator: Backend) -> None:
    require(generator)
    contraction = matmul(4, 4, 4)
    executable = generator.compile(contraction, initial_nest(contraction))
    executable.close()
    executable.close()


@each
def test_the_toolchain_names_the_generator_and_stays_the_same(generator: Backend) -> None:
    require(generator)
    line = generator.toolchain()
    assert line.startswith(generator.name + " ")
    assert "\n" not in line
    other = subprocess.run(
        [
            sys.executable,
            "-c",
            "from irgym.envs.loops.compiling.backends import backend\n"
            f"print(backend({generator.name!r}).toolchain())",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert other.stdout.strip() == line


def test_importing_probes_nothing_and_loads_no_llvm() -> None:
    program = (
        "import sys, pathlib\n"
        "from irgym.measure import machine\n"
        "from irgym.envs.loops.compiling import backends\n"
        "assert not machine.fingerprint.cache_info().currsize\n"
        "assert not [name for name in sys.modules if name.startswith('llvmlite')]\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.usefixtures("fresh_probe")
@pytest.mark.parametrize(
    ("changes", "name"),
    [
        (
            {"architecture": "x86_64", "system": "Linux", "features": frozenset(X86_64_V4.features)},
            "avx512",
        ),
        ({"architecture": "x86_64", "system": "Linux", "features": frozenset(X86_64_V3.features)}, "avx2"),
        ({"architecture": "x86_64", "system": "Darwin", "features": frozenset(X86_64_V3.features)}, "avx2"),
        ({"architecture": "x86_64", "system": "Linux", "features": frozenset({"avx"})}, "llvm"),
        ({"architecture": "AMD64", "system": "Windows", "features": frozenset(X86_64_V3.features)}, "llvm"),
        ({"architecture": "aarch64", "system": "Linux", "features": frozenset({"asimd"})}, "llvm"),
    ],
)
def test_the_preferred_back_end_follows_the_processor(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, object], name: str
) -> None:
    if name == "llvm":
        require(LLVM)
    pretend(monkeypatch, llvmlite=True, **changes)
    assert backends.preferred().name == name


@pytest.mark.usefixtures("fresh_probe")
def test_without_any_back_end_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, llvmlite=False, architecture="aarch64", features=frozenset())
    with pytest.raises(BackendError, match=r"pip install 'irgym\[loops\]'"):
        backends.preferred()
    with pytest.raises(BackendError, match=r"llvm .* not installed.*pip install 'irgym\[loops\]'"):
        backends.backend("llvm")
    assert LLVM.available().remedy == "pip install 'irgym[loops]'"


@pytest.mark.usefixtures("fresh_probe")
def test_a_back_end_that_does_not_run_here(monkeypatch: pytest.MonkeyPatch) -> None:
    features = frozenset(X86_64_V3.features)
    pretend(monkeypatch, llvmlite=True, architecture="x86_64", system="Linux", features=features)
    with pytest.raises(BackendError, match=r"avx512 does not run here .*lacks avx512f.*choose avx2"):
        backends.backend("avx512")


def test_an_unknown_back_end() -> None:
    with pytest.raises(BackendError, match=r"'cuda'.*avx512, avx2, llvm"):
        backends.backend("cuda")


@pytest.mark.parametrize("generator", [AVX512, AVX2], ids=["avx512", "avx2"])
def test_macos_gets_no_elf(monkeypatch: pytest.MonkeyPatch, generator: Backend) -> None:
    pretend(monkeypatch, llvmlite=True, system="Darwin")
    contraction = matmul(4, 4, 4)
    with pytest.raises(BackendError, match=r"export a \.c file"):
        generator.object_file(contraction, initial_nest(contraction), "f")
