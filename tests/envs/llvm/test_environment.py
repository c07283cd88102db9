"""The environment from end to end: searches, baselines, a second LLVM."""

import copy

import gymnasium
import numpy as np
import pytest

import irgym
from irgym.base.errors import BackendError, IrgymError
from irgym.core.catalogue import ENVIRONMENTS
from irgym.core.schedule import replay
from irgym.envs.llvm.compiling.installed import SYSTEM, llvm_named
from irgym.envs.llvm.sequences import prefixes, sequences
from irgym.measure.passes.store import Failure

LLVM = ENVIRONMENTS.load("llvm")
SORTING = "llvm://kernels/sorting.c"


def test_a_search_is_never_worse_than_oz_and_its_result_is_checked():
    few = irgym.Searching(search="random", evaluations=8)
    result = irgym.tune(SORTING, searching=few)
    assert result.cost <= LLVM.task(SORTING).modules.reference.total and result.validated


def test_where_oz_fails_a_result_comes_without_the_ratio_to_it(tmp_path, capfd):
    code = tmp_path / "f.c"
    code.write_text("int f(int a, int b) { return (a + b) - a; }\n")
    task = LLVM.task(f"llvm:{code}")
    root = task.modules.root
    task.modules.record(root, task.modules.pipeline("oz"), Failure("it took too long"))
    result = irgym.tune(task.uri, searching=irgym.Searching(search="greedy", evaluations=8))
    assert result.validated and result.cost < root.total and result.reference is None
    assert "the ratio to oz is left out, as oz fails: " in capfd.readouterr().err


def test_the_list_is_no_worse_than_any_of_its_sequences():
    task = LLVM.task(SORTING)
    best = replay(task, task.pipeline("list")).node.total
    for schedule in sequences():
        state = task.initial()
        for action in schedule.actions:
            if task.accepts(state, action):
                state = task.step(state, action)
        assert best <= state.node.total


def test_under_size_the_list_is_the_smallest_of_its_sequences():
    with LLVM.bench() as bench:
        for uri in ("llvm://kernels/signals.c", SORTING):
            task, counted = LLVM.task(uri, objective="size"), LLVM.task(uri)
            listed = [replay(task, other.pipeline("list")) for other in (task, counted)]
            states = [*listed, replay(task, task.pipeline("oz")), *prefixes(task, sequences())]
            by_size, by_count, *sizes = (
                found.cost for found in bench.evaluator.evaluate([task.job(state) for state in states])
            )
            assert by_size == min(sizes) <= by_count
            assert task.under("instructions").pipeline("list") == counted.pipeline("list")


@pytest.mark.parametrize(("objective", "pipeline"), [("instructions", "oz"), ("size", "o1")])
def test_an_episode_that_is_a_pipeline_saves_what_it_saves(objective, pipeline):
    options = {"programs": [SORTING], "objective": objective, "reward": f"saving:pipeline={pipeline}"}
    env = gymnasium.make("irgym/Llvm-v0", **options)
    env.reset(seed=0)
    task = env.unwrapped.task
    [action] = task.pipeline(pipeline).actions
    fork = copy.deepcopy(env)
    for copied in (env, fork):
        _, reward, *_ = copied.step(task.space.flat.index(action))
        assert reward == pytest.approx(1.0)
        copied.close()


def test_every_pipeline_is_of_this_library():
    task = LLVM.task(SORTING)
    totals = {
        pipeline.name: replay(task, task.pipeline(pipeline.name)).node.total for pipeline in LLVM.pipelines
    }
    assert totals["oz"] == totals["o2"] and max(totals.values()) < task.initial().node.total


def test_gymnasium_gives_every_observation():
    views = LLVM.task(SORTING).views
    names = [name for name in views if name != "ir2vec"]
    env = gymnasium.make("irgym/Llvm-v0", programs=[SORTING], observation="autophase")
    first, info = env.reset(seed=0)
    assert first.shape == (56,) and info["action_mask"].sum() == len(info["action_mask"]) - 1
    seen, reward, *_ = env.step(2)
    assert not np.array_equal(seen, first) and reward > 0
    state = LLVM.task(SORTING).initial()
    assert all(
        LLVM.task(SORTING).observe(state, name) is not None
        for name in names
        if name not in ("text", "bitcode")
    )


def test_numbers_of_instructions_beside_those_of_pipelines():
    task = LLVM.task(SORTING)
    o3, oz = (replay(task, task.pipeline(name)) for name in ("o3", "oz"))
    for state in (task.initial(), o3):
        seen = task.observe(state, "instructions").tolist()
        assert seen == [state.node.total, task.initial().node.total, o3.node.total, oz.node.total]
    assert seen[0] < seen[1]


def test_sizes_of_code_are_an_objective():
    few = irgym.Searching(search="random", evaluations=4)
    result = irgym.tune(SORTING, searching=few, measuring=irgym.Measuring(objective="size"))
    assert 0 < result.cost < result.cost_as_written


def test_a_second_llvm_reads_text(tmp_path, monkeypatch):
    monkeypatch.setenv("IRGYM_TESTS_LLVM", SYSTEM)  # no kept process that has loaded another LLVM
    try:
        llvm_named(SYSTEM)
    except BackendError:
        pytest.skip("needs LLVM 19: apt install libllvm19")
    file = tmp_path / "f.ll"
    file.write_text("define i32 @f(i32 %x) minsize optsize {\n  %y = add i32 %x, 0\n  ret i32 %y\n}\n")
    task = LLVM.task(f"llvm:{file}", backend=SYSTEM)
    assert replay(task, task.pipeline("oz")).node.total == 1
    assert task.job(task.initial()).toolchain != LLVM.task(f"llvm:{file}").job(task.initial()).toolchain


def test_unknown_back_ends_and_threads_are_refused():
    with pytest.raises(IrgymError, match="choose among llvm-23"):
        LLVM.task(SORTING, backend="gcc")
    with pytest.raises(IrgymError, match="one thread"):
        LLVM.task(SORTING, backend=":2")
