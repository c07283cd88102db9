"""Code for a target with fewer instructions than this machine."""

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2] / "toys"))

pytest.importorskip("torch_mlir")

from disassembly import functions, needs_avx512, needs_objdump

from irgym.core.schedule import Schedule, replay, states_along
from irgym.core.target import LEVELS, X86_64_V3, X86_64_V4
from irgym.envs.linalg import actions, runner
from irgym.envs.linalg.compiling import executable
from irgym.envs.linalg.environment import LINALG
from irgym.envs.linalg.task import LinalgTask
from irgym.measure.target import host_target

URI = "linalg://matmul/128x128x128"


def measured(backend, target, schedule, monkeypatch, path):
    """Measure a schedule in this process; return its code by function, the engine's wrappers too."""
    engines = []

    class Engine(executable.ExecutionEngine):
        def __init__(self, module, **options):
            super().__init__(module, **options, enable_object_dump=True)
            engines.append(self)

    task = LINALG.task(URI, backend, target)
    job = task.job(replay(task, Schedule.parse(schedule, task.space)))
    with monkeypatch.context() as patch:
        runner.prepared(task.text)  # the reference is compiled too
        patch.setattr(executable, "ExecutionEngine", Engine)
        assert runner.measure(*job.call.arguments).ok
    engines[-1].dump_to_object_file(str(path))
    return functions(path)


@needs_avx512
@needs_objdump
@pytest.mark.parametrize(
    ("backend", "schedule", "runs"),
    [
        (None, "tile_8_16_1 vectorise_0", "main"),
        ("openmp:1", "tile-parallel_32_32 tile_4_16_1 vectorise_0", "main..omp_par"),
    ],
)
def test_avx2_code_is_made_on_an_avx512_machine(backend, schedule, runs, monkeypatch, tmp_path):
    found = {
        target: measured(backend, target, schedule, monkeypatch, tmp_path / f"{target}.o")
        for target in ("x86-64-v3", None)
    }
    lesser, own = found["x86-64-v3"], found[None]
    assert lesser[runs].fused and lesser[runs].wide and own[runs].fused and own[runs].evex
    # An engine makes wrappers for this machine, and it is they that are called.
    assert not any(code.evex for code in lesser.values()), lesser


@needs_avx512
@needs_objdump
def test_an_object_file_is_avx2_code_throughout(tmp_path):
    task = LINALG.task(URI, target="x86-64-v3")
    state = replay(task, Schedule.parse("tile_8_16_1 vectorise_0", task.space))
    path = tmp_path / "program.o"
    task.export(state, path)
    found = functions(path)
    assert found["irgym_program"].fused and not any(code.evex for code in found.values()), found


@needs_avx512
def test_llvm_code_that_is_exported_names_the_target(tmp_path):
    for target, named in (("x86-64-v3", True), (None, False)):
        task = LINALG.task(URI, target=target)
        [path] = task.export(task.initial(), tmp_path / "program.ll")
        assert ('"target-cpu"="x86-64-v3"' in path.read_text()) == named


def test_costs_of_two_targets_are_different_jobs():
    tasks = [LINALG.task(URI, target=name) for name in (None, host_target().name, lesser())]
    jobs = [task.job(task.initial()) for task in tasks]
    assert jobs[0] == jobs[1] != jobs[2]
    assert jobs[2].target == tasks[2].target.text != jobs[0].target
    assert dataclasses.replace(jobs[2], target=jobs[0].target, call=jobs[0].call) == jobs[0]


def lesser() -> str:
    """Return the lowest level of this machine's architecture."""
    here = host_target()
    names = [level.name for level in LEVELS if level.architecture == here.architecture]
    if names[-1] == here.name:
        pytest.skip("this machine has no lesser target")
    return names[-1]


@pytest.mark.parametrize(("level", "wanted"), [(X86_64_V3, (8, 12)), (X86_64_V4, (16, 28))])
def test_register_tiles_of_sketches_fit_the_target(level, wanted):
    known = LINALG.task("linalg://matmul/256x256x256")
    task = LinalgTask(known.uri, known.text, known.program, target=level)
    rng, found = np.random.default_rng(0), []
    for _ in range(60):
        schedule = Schedule(tuple(task.sketch(rng)))
        pairs = zip(schedule.actions, schedule.actions[1:], strict=False)
        for state, (action, following) in zip(states_along(task, schedule), pairs, strict=False):
            if (action.kind, following.kind, task.at_hand(state)) == (actions.TILE, actions.VECTORISE, 1):
                operation = state.operations[1].operation
                sizes = actions.AllLoops().sizes(action.params, operation.loops)
                outer, inner = (
                    size or bound
                    for size, bound, parallel in zip(sizes, operation.bounds, operation.parallel, strict=True)
                    if parallel
                )
                vectors = [
                    rows * -(-width // level.lanes) for rows, width in ((outer, inner), (inner, outer))
                ]
                found.append(min(vectors))
    assert (level.lanes, level.accumulators) == wanted
    assert level.accumulators / 2 < max(found) <= level.accumulators, "some fill the registers"
