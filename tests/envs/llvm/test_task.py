"""Tasks: passes are deterministic, forks are replays, and what changes nothing is masked."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from irgym.base.errors import IrgymError, ScheduleError, UnknownPipelineError
from irgym.core.actions import Action
from irgym.core.schedule import Schedule, replay
from irgym.envs.llvm.actions import KIND, PASSES, SPACE, STOP
from irgym.envs.llvm.compiling.modules import ProgramModules
from irgym.envs.llvm.environment import LLVM
from irgym.envs.llvm.task import CODE_SIZE, LlvmTask
from irgym.judging.reference import default_schedules
from irgym.measure.passes.store import Failure

walks = st.lists(st.integers(0, len(PASSES) - 1), min_size=1, max_size=8)


def walked(task, kinds):
    state = task.initial()
    for kind in kinds:
        if not task.terminal(state) and task.mask(state).kinds[kind]:
            state = task.step(state, Action(kind))
    return state


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kinds=walks)
def test_a_state_is_what_its_passes_make_afresh(task, kinds):
    state = walked(task, kinds)
    fresh = LlvmTask(ProgramModules(task.uri, task.modules.file, "again", task.modules.pool))
    again = fresh.initial()
    for kind in state.path:
        again = fresh.step(again, Action(kind))
    assert again == state and again.node.digest == state.node.digest
    assert np.array_equal(again.node.counts, state.node.counts)


def test_all_passes_of_this_release_are_known_but_for_one(task):
    missing = [action.name for action, known in zip(PASSES, task.modules.supported, strict=True) if not known]
    assert missing == ["default-oz"]


def test_a_pass_without_effect_is_masked_until_the_module_changes(task):
    state = task.step(task.initial(), Action(KIND["mem2reg"]))
    again = task.step(state, Action(KIND["mem2reg"]))
    assert again == state and not task.mask(again).kinds[KIND["mem2reg"]]
    moved = task.step(again, Action(KIND["default-o2"]))
    assert moved != again and task.mask(moved).kinds[KIND["mem2reg"]]


def test_attributes_alone_tell_modules_apart(files, pool):
    task = LlvmTask(ProgramModules("llvm:sum", files["sum"], "x", pool))
    first = task.initial()
    inferred = task.step(task.step(first, Action(KIND["mem2reg"])), Action(KIND["function-attrs"]))
    assert inferred.path == (KIND["mem2reg"], KIND["function-attrs"])
    assert inferred.node.total == inferred.before.total and inferred.node.digest != inferred.before.digest


def test_o2_is_the_reference_and_ends_below_the_original(task):
    [action] = task.pipeline("oz").actions
    assert SPACE.kinds[action.kind].name == "default-o2"
    assert task.step(task.initial(), action).node.total < task.initial().node.total
    with pytest.raises(IrgymError, match="no pipeline 'o9'"):
        task.pipeline("o9")


def test_a_known_transition_is_not_run_again(task, monkeypatch):
    state = task.step(task.initial(), Action(KIND["default-o2"]))
    monkeypatch.setattr(task.modules.pool, "step", lambda requests: pytest.fail(f"ran {requests}"))
    assert task.step(task.initial(), Action(KIND["default-o2"])) == state


def test_a_failure_ends_the_episode(task):
    task.modules.record(task.modules.root, KIND["gvn"], Failure("planted"))
    state = task.step(task.initial(), Action(KIND["gvn"]))
    assert state.failure == "planted" and not task.mask(state).kinds.any()
    assert not task.job(state).known.ok and task.key(state) == "gvn!"
    with pytest.raises(ScheduleError):
        task.step(state, Action(STOP))


def test_code_size_is_measured_and_instructions_are_known(task):
    from irgym.envs.llvm.runner import measure

    state = task.step(task.initial(), Action(KIND["default-o2"]))
    assert task.job(state).known.cost == state.node.total
    job = task.under(CODE_SIZE.name).job(state)
    assert job.known is None and job.call.function == f"{measure.__module__}:measure"


@pytest.mark.parametrize("suffix", [".ll", ".bc", ".o", ".txt"])
def test_exports_hold_the_module_after_its_passes(task, suffix, tmp_path):
    state = task.step(task.initial(), Action(KIND["default-o2"]))
    [file] = task.export(state, tmp_path / f"best{suffix}")
    content = file.read_bytes()
    starts = {
        ".ll": b"; ModuleID",
        ".bc": b"BC\xc0\xde",
        ".o": b"\x7fELF",
        ".txt": b"opt -passes='default<O2>'\n",
    }
    assert content.startswith(starts[suffix])
    if suffix == ".ll":
        assert b"alloca" not in content and task.text(task.initial()).count("alloca") in (0, 2)


def test_large_modules_try_fewer_sequences_of_the_list(task, monkeypatch: pytest.MonkeyPatch):
    total = task.initial().node.total
    lengths: list[int] = []
    monkeypatch.setattr("irgym.envs.llvm.task.LISTED", 3 * total)
    monkeypatch.setattr(
        "irgym.envs.llvm.task.prefixes",
        lambda task, tried: lengths.append(len(tried)) or [task.initial()],
    )
    again = LlvmTask(task.modules)
    # The prefixes are no better than -Oz here, so it is the list's result.
    assert again.pipeline("list") == again.pipeline("oz") and lengths == [3]
    monkeypatch.setattr("irgym.envs.llvm.task.LISTED", total - 1)
    with pytest.raises(UnknownPipelineError, match="too many for the list of sequences: choose oz"):
        LlvmTask(task.modules).pipeline("list")
    assert len(default_schedules(LLVM, LlvmTask(task.modules))) == 1


def test_sketches_can_be_replayed_where_passes_of_the_list_change_nothing(task, monkeypatch):
    thrice = Schedule.parse("default-o2 mem2reg mem2reg", SPACE)
    monkeypatch.setattr("irgym.envs.llvm.task.sequences", lambda: (thrice,))
    actions = task.sketch(np.random.default_rng(0))
    assert list(actions) == list(thrice.actions[:2])
    assert replay(task, Schedule(tuple(actions))).node.total < task.initial().node.total


def test_where_oz_fails_the_list_is_not_tried(task, monkeypatch):
    slow = LlvmTask(ProgramModules(task.uri, task.modules.path, task.modules.content, task.modules.pool))
    slow.modules.record(slow.modules.root, slow.modules.pipeline("oz"), Failure("it took too long"))
    monkeypatch.setattr("irgym.envs.llvm.task.prefixes", lambda task, tried: pytest.fail("tried"))
    with pytest.raises(UnknownPipelineError, match=r"-Oz fails on .* \(it took too long\)"):
        slow.pipeline("list")
