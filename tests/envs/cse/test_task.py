"""The task: choices as sets, their scores, and their export."""

from itertools import chain, combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import irgym
from irgym.base.errors import IrgymError, ScheduleError
from irgym.core.actions import Action
from irgym.core.schedule import Schedule, replay
from irgym.envs.cse.environment import CSE
from irgym.envs.cse.task import CseTask
from irgym.measure.evaluators import Inline

SORT = "cse://kernels/sorting.c#quick_sort"


@pytest.fixture(scope="module")
def task() -> CseTask:
    return CSE.task(SORT, target="x86-64")


def test_the_order_of_choices_makes_no_difference(task: CseTask):
    names = task.names[:3]
    forth = replay(task, Schedule.parse(" ".join(f"share@{name}" for name in names), task.space))
    back = replay(task, Schedule.parse(" ".join(f"share@{name}" for name in names[::-1]), task.space))
    assert forth == back and task.key(forth) == task.key(back) == " ".join(names)


def test_a_shared_expression_is_no_longer_a_candidate(task: CseTask):
    state = task.step(task.initial(), Action(1, candidate=task.names[1]))
    assert [name for _, name in task.mask(state).candidates] == [task.names[0], *task.names[2:]]
    with pytest.raises(ScheduleError, match="does not apply"):
        task.step(state, Action(1, candidate=task.names[1]))
    ended = task.step(state, Action(0))
    assert task.terminal(ended) and not task.mask(ended).candidates and not task.mask(ended).kinds.any()


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_observations_have_a_row_for_each_candidate(task: CseTask, data: st.DataObject):
    state = task.initial()
    for _ in range(data.draw(st.integers(0, len(task.names)))):
        state = task.step(
            state, Action(1, candidate=data.draw(st.sampled_from(task.mask(state).candidates))[1])
        )
    seen = task.observe(state)
    assert len(seen.candidates) == len(task.mask(state).candidates)
    assert np.isfinite(seen.candidates).all() and np.isfinite(seen.state).all()
    shown = task.views["candidates"].element(task, state, lambda: 0.0)
    assert task.views["candidates"].space().contains(shown)


def test_scores_are_the_same_alone_and_together(task: CseTask):
    places = range(4)
    chosen = [
        set(choice) for choice in chain.from_iterable(combinations(places, count) for count in range(5))
    ]
    states = [replay(task, task.schedule_of(sorted(choice))) for choice in chosen]
    alone = Inline().evaluate([task.job(state) for state in states])
    with CSE.bench() as bench:
        assert [measurement.cost for measurement in bench.measure([task.job(state) for state in states])] == [
            measurement.cost for measurement in alone
        ]


def test_few_choices_are_searched_exhaustively_and_the_best_is_proven():
    uri = "cse://kernels/sorting.c#sift"
    result = irgym.tune(uri)
    task = CSE.task(uri)
    states = [
        replay(task, task.schedule_of(choice))
        for count in range(len(task.names) + 1)
        for choice in combinations(range(len(task.names)), count)
    ]
    assert result.search and result.search.complete and result.search.evaluations == len(states)
    assert result.cost == min(
        measurement.cost for measurement in Inline().evaluate([task.job(state) for state in states])
    )
    assert result.reference and result.reference.name == "all" and result.validated


def test_exports(task: CseTask, tmp_path: Path):
    state = replay(task, task.pipeline("all"))
    for suffix in task.forms:
        [file] = task.export(state, tmp_path / f"out{suffix}")
        assert file.stat().st_size
    again = CSE.task(f"cse:{tmp_path / 'out.ll'}#quick_sort", target="x86-64")
    shared = Inline().evaluate([task.job(state), again.job(again.initial())])
    assert shared[0].cost == shared[1].cost, "what was written has the score of what was chosen"
    with pytest.raises(IrgymError, match=r"end the name in one of \.ll"):
        task.export(state, tmp_path / "out.o")


def test_pipelines(task: CseTask):
    assert len(task.pipeline("all").actions) == len(task.names)
    assert len(task.pipeline("cost-test").actions) > 0
    with pytest.raises(IrgymError, match="choose among all, cost-test"):
        task.pipeline("most")


def test_every_target_has_a_score():
    for target in ("x86-64", "x86-64-v3", "x86-64-v4", "i686", "aarch64"):
        task = CSE.task(SORT, target=target)
        [measured] = Inline().evaluate([task.job(replay(task, task.pipeline("all")))])
        assert measured.cost > 0
    with pytest.raises(IrgymError, match="cse has no target 'riscv64'"):
        CSE.task(SORT, target="riscv64")
