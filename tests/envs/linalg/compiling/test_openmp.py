"""Parallel loops on threads: results, numbers of threads, and costs with separate keys."""

import os
import re
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import pytest

from irgym.base.errors import BackendError
from irgym.core.actions import Mask
from irgym.core.cost import Call, Outcome
from irgym.core.schedule import Schedule, replay
from irgym.envs.linalg import actions, runner
from irgym.envs.linalg.compiling import openmp
from irgym.envs.linalg.compiling.kernels import MANY
from irgym.envs.linalg.environment import LINALG
from irgym.measure.isolation.child import Child
from irgym.measure.isolation.protocol import Limits, Returned

PROGRAMS = (
    "linalg://matmul/16x32x8",
    "linalg://batch_matmul/2x8x16x4",
    "linalg://conv2d/1x4x10x10x8x3x3",
    "linalg://maxpool/1x8x8x8x2?stride=2",
    "linalg://relu/4x8x16",
    "linalg://softmax/8x16",
    "linalg://layernorm/8x16",
    "linalg://lattice/5",
    "linalg://sequence/2?length=4",
    "linalg://sequence/5?length=3",
)

TILED = "tile-parallel_8_16 tile_4_8_1 vectorise_0"


@pytest.fixture(scope="module")
def child():
    """A child whose idle threads sleep, as on a bench; this process stays without OpenMP."""
    with Child(Limits(timeout_s=60, threads=3)) as child:
        yield child


def answer(child, function, *arguments):
    reply = child.call(Call(function, arguments))
    assert isinstance(reply, Returned), reply
    return reply.value


def scheduled(task, text=TILED):
    return replay(task, Schedule.parse(text, task.space))


def parallel_walk(task, rng):
    """Return the last state of a random episode that tiles in parallel wherever it can."""
    state = task.initial()
    while not task.terminal(state):
        mask = task.mask(state)
        kinds = np.zeros_like(mask.kinds)
        kinds[[actions.TILE_PARALLEL, actions.FUSE]] = mask.kinds[[actions.TILE_PARALLEL, actions.FUSE]]
        state = task.step(state, task.space.sample(Mask(kinds, mask.params) if kinds.any() else mask, rng))
    return state


@pytest.mark.parametrize("uri", PROGRAMS)
def test_threads_compute_the_results_of_the_original(uri, child):
    task, rng = LINALG.task(uri, "openmp:3"), np.random.default_rng(5)
    forked = 0
    for _ in range(2):
        state = parallel_walk(task, rng)
        call = task.validation(state, 1, 7)
        assert answer(child, call.function, *call.arguments).ok, task.describe(state)
        code = runner.written(task.text, task.script(state), "llvm", task.target, task.threads)
        forked += "@__kmpc_fork_call(" in code
    assert forked


def test_kernels_run_on_threads_too(child, tmp_path):
    kind, layers = "tensor<8x16xf32>", MANY + 2
    body = "".join(
        f"  %empty{n} = tensor.empty() : {kind}\n"
        f"  %x{n + 1} = linalg.tanh ins(%x{n} : {kind}) outs(%empty{n} : {kind}) -> {kind}\n"
        for n in range(layers)
    )
    file = tmp_path / "layers.mlir"
    file.write_text(f"func.func @main(%x0: {kind}) -> {kind} {{\n{body}  return %x{layers} : {kind}\n}}\n")
    task = LINALG.task(f"linalg:{file}", "openmp:3")
    state = scheduled(task, " ".join(["tile-parallel_4_0 next"] * layers))
    call = task.validation(state, 1, 7)
    assert answer(child, call.function, *call.arguments).ok
    code = runner.written(task.text, task.script(state), "llvm", task.target, task.threads)
    assert "@__kmpc_fork_call(" in code and "@kernel_1(" in code


def test_the_number_of_threads_is_that_of_the_code(tmp_path):
    task = LINALG.task("linalg://matmul/64x64x64", "openmp:3")
    [file] = task.export(scheduled(task), tmp_path / "a.ll")
    [pushed] = re.findall(r"call void @__kmpc_push_num_threads\(.*, i32 (\d+)\)", file.read_text())
    assert pushed == "3"
    sequential = LINALG.task("linalg://matmul/64x64x64")
    [file] = sequential.export(scheduled(sequential), tmp_path / "b.ll")
    assert "kmpc" not in file.read_text()


@pytest.mark.timed
@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_threads_share_the_work(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    task = LINALG.task("linalg://matmul/256x256x256", "openmp:2")
    script = task.script(scheduled(task, "tile-parallel_64_128 tile_8_32_1 vectorise_0"))
    with Child(Limits(timeout_s=60, threads=2)) as child:
        shares = answer(child, "thread_counts:shares_of_work", task.text, script, task.threads, 200)
    assert shares[1] > 0.3 and sum(shares[2:]) < 0.1, "two threads, each with about half of it"


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_a_parallel_loop_starts_threads_that_torch_does_not_share(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    task = LINALG.task("linalg://matmul/64x64x64", "openmp:3")
    arguments = (task.text, task.script(scheduled(task)), task.threads)
    with Child(Limits(timeout_s=60)) as child:
        ours, theirs, wrong = answer(child, "thread_counts:threads_started", *arguments)
    assert ours == 2 and theirs == 1 and wrong == 0


def test_costs_are_measured_and_kept_apart(monkeypatch, tmp_path):
    monkeypatch.setenv("IRGYM_CACHE_DIR", str(tmp_path))
    uri = "linalg://matmul/16x32x8"
    tasks = {backend: LINALG.task(uri, backend) for backend in ("mlir", "openmp:1", "openmp:2", "openmp")}
    jobs = {backend: task.job(scheduled(task)) for backend, task in tasks.items()}
    assert len({jobs[backend].toolchain for backend in ("mlir", "openmp:1", "openmp:2")}) == 3
    assert LINALG.task(uri).job(tasks["mlir"].initial()).toolchain == jobs["mlir"].toolchain
    assert "; 1 thread; " in jobs["mlir"].toolchain and "; 2 threads; " in jobs["openmp:2"].toolchain
    cores = len(os.sched_getaffinity(0))
    assert tasks["openmp"].threads == cores
    with LINALG.bench(backend="openmp") as bench:
        assert re.search(rf"; {cores} threads? on core", bench.machine)
        task = tasks["openmp"]
        [found] = bench.evaluator.evaluate([jobs["openmp"]])
        assert found.outcome is Outcome.OK
        call = task.baseline_call("numpy", scheduled(task))
        assert re.search(rf", {cores} threads?$", bench.call(call).detail)


def test_more_threads_than_cores_are_reported_in_one_sentence():
    many = len(os.sched_getaffinity(0)) + 1
    task = LINALG.task("linalg://matmul/16x32x8", f"openmp:{many}")
    with pytest.raises(BackendError, match=f"needs {many} cores and candidates have {many - 1} here"):
        runner.measure(*task.job(scheduled(task)).call.arguments)
    # A bench for another back end has a single core.
    with (
        LINALG.bench() as bench,
        pytest.raises(BackendError, match="needs 2 cores and candidates have 1 here"),
    ):
        task = LINALG.task("linalg://matmul/16x32x8", "openmp:2")
        bench.measure([task.job(task.initial())])


@pytest.mark.parametrize("name", ["openmp:0", "openmp:x", "openmp:", "openmp:-1", "openmp:2.5", "gpu", ""])
def test_unknown_back_ends_are_reported_in_one_sentence(name):
    for use in (lambda: LINALG.task("linalg://relu/8x8", name), lambda: LINALG.bench(backend=name)):
        with pytest.raises(BackendError, match=r"choose mlir, openmp or openmp:N for N threads$"):
            use()


@pytest.fixture
def no_wheel(monkeypatch, tmp_path):
    """A machine without the wheel, where a shell script lists the libraries."""

    def missing(name):
        raise PackageNotFoundError(name)

    ldconfig = tmp_path / "ldconfig"
    ldconfig.write_text("#!/bin/sh\necho '\tlibm.so.6 (libc6,x86-64) => /lib/libm.so.6'\n")
    ldconfig.chmod(0o755)
    monkeypatch.setattr(openmp, "distribution", missing)
    monkeypatch.setattr(openmp, "LDCONFIG", ldconfig)
    openmp.runtime.cache_clear()
    yield ldconfig
    openmp.runtime.cache_clear()


def test_a_missing_runtime_is_reported_in_one_sentence(no_wheel):
    with pytest.raises(BackendError, match=r"run pip install 'irgym\[linalg\]' or apt install libomp5$"):
        LINALG.task("linalg://relu/8x8", "openmp")
    mlir, threads = LINALG.backends()
    assert (mlir.name, mlir.available) == ("mlir", True)
    assert (threads.name, threads.available, threads.remedy) == (
        "openmp",
        False,
        "pip install 'irgym[linalg]'",
    )
    no_wheel.unlink()
    assert not LINALG.backends()[1].available


def test_the_systems_runtime_is_the_second_choice(no_wheel, tmp_path):
    library = tmp_path / "libomp.so.5"
    library.write_bytes(b"a runtime")
    no_wheel.write_text(f"#!/bin/sh\necho '\tlibomp.so.5 (libc6,x86-64) => {library}'\n")
    first = openmp.runtime()
    assert first.path == library
    library.write_bytes(b"another runtime")
    openmp.runtime.cache_clear()
    assert openmp.runtime().text != first.text, "costs on other runtimes are kept apart"


def test_the_wheel_comes_first():
    assert openmp.runtime().text.startswith("intel-openmp ")
    assert "openmp" in {status.name for status in LINALG.backends() if status.available}
