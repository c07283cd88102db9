"""Kernels on several threads: correct results, and every thread waits for the others."""

import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irgym.base.errors import BackendError
from irgym.envs.loops.compiling import backends
from irgym.envs.loops.compiling.backends import BACKENDS, ThreadedBackend, backend, preferred, threads_of
from irgym.envs.loops.compiling.export import export
from irgym.envs.loops.compiling.lower import rows_of
from irgym.envs.loops.compiling.threads import ASLEEP, keep_off_this_core, shares
from irgym.envs.loops.nest import Nest, initial_nest, parse_nest
from irgym.envs.loops.programs.contraction import Contraction, matmul, parse_uri
from irgym.measure import machine
from irgym.measure.machine import core_count, fingerprint

HERE = [generator for generator in BACKENDS if generator.available().available]

pytestmark = pytest.mark.skipif(
    fingerprint().architecture.lower() not in ("x86_64", "amd64"), reason="threads are for x86-64"
)


def check(contraction: Contraction, nest: Nest, generator, threads: int, repetitions: int = 3) -> None:
    """Check that the threads write exactly C, with the results of numpy."""
    a, b = contraction.random_inputs(0)
    for array in (a, b)[: 0 if contraction.elements.whole else contraction.inputs]:
        array[...] = np.rint(4 * array)
    size = int(np.prod(contraction.shapes[2]))
    guarded = np.full(size + 64, 7, dtype=contraction.elements.sum_type)
    c = guarded[32 : 32 + size]
    wanted = contraction.reference(a, b)
    with closing(ThreadedBackend(generator, threads).compile(contraction, nest)) as team:
        team.run(a.ctypes.data, b.ctypes.data, c.ctypes.data, repetitions)
        team.run(a.ctypes.data, b.ctypes.data, c.ctypes.data, 1)
    np.testing.assert_array_equal(c.reshape(wanted.shape), wanted)
    assert (guarded[:32] == 7).all() and (guarded[32 + size :] == 7).all()


@pytest.mark.parametrize("generator", HERE, ids=lambda generator: generator.name)
@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize(
    "nest", ["m n k", "k/4 m n k", "n/16 m/6 k m n", "k/8 pack(b) m/6 pack(a) n/16 k m n", "n k m"]
)
def test_products(nest: str, threads: int, generator) -> None:
    check(matmul(23, 37, 19), parse_nest(nest), generator, threads)


@pytest.mark.parametrize("generator", HERE, ids=lambda generator: generator.name)
@pytest.mark.parametrize(
    "program",
    ["mn,mn->?m=23&n=37", "[-m+22]k,kn->mn?m=23&k=5&n=9", "mk->km?m=23&k=5", "mk,kn->nm?m=23&k=7&n=37"],
)
@pytest.mark.parametrize("dtype", ["f32", "f64", "i8"])
def test_any_program_without_padding(program: str, dtype: str, generator) -> None:
    contraction = parse_uri(f"loops://einsum/{program}&dtype={dtype}")
    if dtype in generator.types:
        check(contraction, initial_nest(contraction), generator, 3)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), threads=st.integers(2, 5))
def test_any_nest(
    random_contraction: Callable[[int], Contraction],
    random_nest: Callable[[Contraction, int], Nest],
    seed: int,
    threads: int,
) -> None:
    contraction = random_contraction(seed)
    if contraction.flops < 200_000:
        check(contraction, random_nest(contraction, seed), preferred(), threads)


@pytest.mark.parametrize(
    ("uri", "rows"),
    [
        ("loops://mm/8x4x2", "m"),
        ("loops://mm/1x4x2", "n"),
        ("loops://bmm/3x4x5x2", "b"),
        ("loops://conv/1x6x5x2x4x3x3", "h"),
    ],
)
def test_rows_are_the_first_indices_of_c(uri: str, rows: str) -> None:
    contraction = parse_uri(uri)
    assert rows_of(contraction) == rows
    for threads in (2, 3, 16):
        counts = shares(contraction, threads)
        assert sum(counts) == contraction.sizes[rows] and max(counts) - min(counts) <= 1 and min(counts) > 0
        check(contraction, initial_nest(contraction), preferred(), threads)


def test_a_thread_waits_for_the_others_after_each_run() -> None:
    contraction = matmul(2, 8, 8)
    a, b = contraction.random_inputs(0)
    c = np.zeros(contraction.shapes[2], dtype=np.float32)
    addresses = [array.ctypes.data for array in (a, b, c)]
    with closing(ThreadedBackend(preferred(), 2).compile(contraction, parse_nest("m k n"))) as team:
        for order, (of_a, of_b, of_c) in zip(team._orders, team._begins, strict=True):
            order.a, order.b, order.c = addresses[0] + of_a, addresses[1] + of_b, addresses[2] + of_c
            order.repetitions = 5
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(team._driver.run, team._orders[0])
            with pytest.raises(TimeoutError):
                first.result(timeout=0.2)
            assert team._barrier.value == 1, "the first run, and no other one"
            team._driver.run(team._orders[1])
            first.result(timeout=5)
        assert team._barrier.value == 2 * 5


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The orders for which threads were started."""
    found: list[object] = []
    submit = ThreadPoolExecutor.submit

    def noted(pool, function, order):
        found.append(order)
        return submit(pool, function, order)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", noted)
    return found


def test_the_barrier_counts_beyond_the_greatest_integer() -> None:
    contraction = matmul(2, 8, 8)
    a, b = contraction.random_inputs(0)
    c = np.zeros(contraction.shapes[2], dtype=np.float32)
    with closing(ThreadedBackend(preferred(), 2).compile(contraction, parse_nest("m k n"))) as team:
        team._barrier.value = 2**31 - 5
        for order in team._orders:
            order.expected = 2**31 - 5
        team.run(a.ctypes.data, b.ctypes.data, c.ctypes.data, 10)
        assert team._barrier.value == -(2**31) + 15
    np.testing.assert_allclose(c, contraction.reference(a, b), rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(core_count() < 2, reason="with one core, threads leave while they wait for it")
def test_a_thread_that_waits_for_work_is_not_started_again(starts: list[object]) -> None:
    contraction = matmul(2, 8, 8)
    arrays = [*contraction.random_inputs(0), np.zeros(contraction.shapes[2], dtype=np.float32)]
    with closing(ThreadedBackend(preferred(), 2).compile(contraction, parse_nest("m k n"))) as team:
        team.run(*[array.ctypes.data for array in arrays], 1)
        served = team._serving[0]
        served.result(timeout=5)
        assert team._orders[1].state == ASLEEP
        for _ in range(50):
            team.run(*[array.ctypes.data for array in arrays], 1)
    assert 2 <= len(starts) < 50


def test_no_order_is_lost_whenever_it_comes() -> None:
    contraction = matmul(2, 8, 8)
    a, b = contraction.random_inputs(0)
    c = np.zeros(contraction.shapes[2], dtype=np.float32)
    wanted = contraction.reference(a, b)
    rng = np.random.default_rng(0)
    with closing(ThreadedBackend(preferred(), 2).compile(contraction, parse_nest("m k n"))) as team:
        for _ in range(400):
            c[...] = 7
            team.run(a.ctypes.data, b.ctypes.data, c.ctypes.data, 1)
            np.testing.assert_allclose(c, wanted, rtol=1e-5, atol=1e-5)
            time.sleep(rng.uniform(0, 0.002))


@pytest.mark.skipif(sys.platform != "linux" or core_count() < 2, reason="needs to choose among cores")
def test_threads_keep_off_the_core_of_the_caller() -> None:
    cores = os.sched_getaffinity(0)
    with ThreadPoolExecutor(1) as pool:
        thread = pool.submit(threading.get_native_id).result()
        keep_off_this_core([thread])
        assert len(os.sched_getaffinity(thread)) == len(cores) - 1
        assert os.sched_getaffinity(0) == cores


def test_names_say_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    name = preferred().name
    backends._status.cache_clear()
    monkeypatch.setattr(machine, "core_count", lambda: 2)
    found = backend(f"{name}:2")
    assert found.name == f"{name}:2" and found.toolchain().endswith("; 2 threads")
    assert threads_of(found.name) == 2 and threads_of(name) == threads_of(None) == 1
    with pytest.raises(BackendError, match="3 threads are more than the 2 cores here"):
        backend(f"{name}:3")
    with pytest.raises(BackendError, match="or one of them with :N for N threads"):
        backend(f"{name}:0")
    backends._status.cache_clear()


@pytest.mark.parametrize("suffix", [".c", ".o", ".so"])
def test_threads_are_not_exported(suffix: str, tmp_path) -> None:
    contraction = matmul(4, 4, 4)
    with pytest.raises(BackendError, match=f"choose the back end {preferred().name}$"):
        export(
            contraction, initial_nest(contraction), ThreadedBackend(preferred(), 2), tmp_path / f"k{suffix}"
        )
    assert not list(tmp_path.iterdir())
