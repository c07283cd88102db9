"""Endings: rewrites followed by ONNX Runtime's optimiser at a level."""

import numpy as np
import pytest

import irgym
from irgym.base.errors import ScheduleError
from irgym.core import capabilities
from irgym.core.schedule import Candidate, Schedule, replay
from irgym.envs.graph import runner
from irgym.envs.graph.environment import GRAPH
from irgym.envs.graph.running.session_options import LEVELS, options_text, read_options
from irgym.envs.graph.task import GraphTask
from irgym.search.minimise import minimise

LSTM = "graph://lstm?layers=1&hidden=32&sequence=3"
ENDINGS = ["stop-basic", "stop-extended", "stop-all"]


@pytest.fixture(scope="module")
def task() -> GraphTask:
    return GRAPH.task(LSTM)


def rewritten(task: GraphTask) -> Schedule:
    """A schedule of a single rewrite."""
    kind, name = task.mask(task.initial()).candidates[0]
    return Schedule.parse(f"{task.space.kinds[kind].name}@{name}", task.space)


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_ending_is_part_of_the_schedule_and_of_what_is_measured(task: GraphTask, ending: str):
    open_ended = rewritten(task)
    schedule = Schedule.parse(f"{open_ended.text(task.space)} {ending}", task.space)
    before, after = replay(task, open_ended), replay(task, schedule)
    level = ending.removeprefix("stop-")
    assert after.level == level and after.stopped and task.terminal(after)
    assert task.key(after) == f"{task.key(before)} ort-{level}" == task.job(after).schedule
    assert after != before and hash(after) != hash(before) and task.identity(after) != task.identity(before)
    job, checked = task.job(after), task.validation(after, 1, 0)
    assert job.call.arguments[-1] == checked.arguments[-1] == level and not job.original
    assert runner.measure(*job.call.arguments).ok and runner.validate(*checked.arguments).ok
    assert f"level {level}" in task.describe(after) and "level" not in task.describe(before)
    assert minimise(task, Candidate(after, schedule)).schedule == schedule


def test_stop_leaves_the_program_as_it_is(task: GraphTask):
    before = replay(task, rewritten(task))
    after = task.step(before, task.space.parse("stop"))
    assert task.key(after) == task.key(before) and after != before and after.level == before.level == "off"


def test_searches_and_policies_are_not_offered_the_endings(task: GraphTask):
    first = task.initial()
    offered = {task.space.kinds[kind].name for kind in task.space.takeable(task.mask(first))}
    assert "stop" in offered and not offered & set(ENDINGS)
    assert [task.space.text(action) for action in capabilities.endings(task, first)] == ENDINGS


@pytest.mark.parametrize("first", ["stop", *ENDINGS])
def test_after_an_ending_there_is_no_other(task: GraphTask, first: str):
    ended = task.step(task.initial(), task.space.parse(first))
    assert not capabilities.endings(task, ended) and not task.mask(ended).kinds.any()
    for second in ("stop", *ENDINGS):
        action = task.space.parse(second)
        assert not task.accepts(ended, action)
        with pytest.raises(ScheduleError, match="does not apply"):
            task.step(ended, action)


def test_an_objective_that_runs_nothing_has_no_other_endings(task: GraphTask):
    counted = task.under("nodes")
    assert not capabilities.endings(counted, counted.initial())
    with pytest.raises(ScheduleError, match="stop-all, does not apply"):
        replay(counted, Schedule.parse("stop-all", counted.space))


def test_the_model_as_written_with_stop_all_is_the_reference_baseline(task: GraphTask):
    reference = GRAPH.reference_baseline
    assert reference == "ort-all"
    ending = capabilities.ending_of(task, reference)
    assert ending is not None and task.space.text(ending) == "stop-all"
    assert capabilities.ending_of(task, "onnxslim") is None
    state = task.step(task.initial(), ending)
    assert capabilities.running(task, state) == options_text("all", 1)


@pytest.mark.parametrize("level", LEVELS)
def test_options_are_read_back(level: str):
    assert read_options(options_text(level, 2)) == (level, 2)
    for other in ("", f"{options_text(level, 2)} more", "graph_optimization_level=X intra_op_num_threads=1"):
        assert read_options(other) is None


@pytest.mark.timed
def test_tune_chooses_nothing_slower_than_the_reference():
    result = irgym.tune(LSTM, searching=irgym.Searching(search="greedy", evaluations=6))
    assert result.running.startswith("graph_optimization_level=ORT_") and result.validated
    assert (result.to_json()["no_gain"] is not None) == (result.schedule in ("", "stop-all"))
    assert result.is_baseline or (result.baseline_ratio or 0.0) > 0.6
    again = irgym.replay(LSTM, result.schedule)
    assert (again.schedule, again.running, again.no_gain) == (result.schedule, result.running, "")
    assert np.isfinite(again.cost)
