"""A program that is made of smaller ones is searched part by part."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irgym.core.actions import Action, ActionSpace, Mask
from irgym.core.cost import Call, Job, Measurement, Outcome
from irgym.core.kinds import ActionKind
from irgym.core.observation import array_view, views_of
from irgym.core.schedule import Schedule, replay
from irgym.core.task import Task
from irgym.search.budget import Budget
from irgym.search.progress import SearchProgress
from irgym.search.request import SearchRequest
from irgym.search.rollouts import most_probable
from irgym.search.run import run_search
from irgym.search.strategies.guided import Guided

VALUES = 24
SPACE = ActionSpace((ActionKind("set", (tuple(range(VALUES)),)),))
Values = tuple[int, ...]


class Row(Task[Values]):
    """Cells that are set one after the other; only the right value of a cell is any better than another."""

    space = SPACE
    views = views_of(array_view("cells", "", (0,), lambda task, state: state))

    def __init__(self, wanted: Values, divided: bool) -> None:
        self.wanted = wanted
        self.uri = f"row://{'-'.join(map(str, wanted))}"
        self.horizon = len(wanted)
        self._parts = [Row((value,), False) for value in range(VALUES)] if divided else []

    def initial(self) -> Values:
        return ()

    def mask(self, state: Values) -> Mask:
        return SPACE.mask([not self.terminal(state)], [True] * VALUES)

    def step(self, state: Values, action: Action) -> Values:
        return (*state, *action.params)

    def terminal(self, state: Values) -> bool:
        return len(state) == len(self.wanted)

    def parts(self) -> Sequence["Row"]:
        return [self._parts[value] for value in self.wanted] if self._parts else []

    def joined(self, schedules: Sequence[Schedule]) -> Schedule:
        return Schedule(tuple(action for schedule in schedules for action in schedule.actions))

    def key(self, state: Values) -> str:
        return " ".join(map(str, state))

    def job(self, state: Values) -> Job:
        return Job(Call("row:cost", (state, self.wanted)), self.uri, self.key(state), "none", target="")

    def validation(self, state: Values, inputs: int, seed: int) -> Call:
        raise NotImplementedError

    def describe(self, state: Values) -> str:
        return str(state)

    def export(self, state: Values, path: Path) -> list[Path]:
        raise NotImplementedError


class Costs:
    def __init__(self) -> None:
        self.asked: list[str] = []

    def evaluate(self, jobs: Sequence[Job]) -> list[Measurement]:
        self.asked += [f"{job.program} {job.schedule}" for job in jobs]
        return [Measurement(Outcome.OK, (self.cost(*job.call.arguments),)) for job in jobs]

    @staticmethod
    def cost(state: Values, wanted: Values) -> float:
        right = sum(a == b for a, b in zip(state, wanted, strict=False))
        return 1.0 + 9.0 * (len(wanted) - right)


class Uniform:
    observation = ""

    def act(self, observations: Any, masks: Sequence[Mask], rng: Any, temperature: float = 1.0) -> Any:
        rng = rng or np.random.default_rng(0)
        return [SPACE.sample(mask, rng) for mask in masks]


WANTED = (3, 17, 3, 3, 20, 9, 17, 3)


def found(divided: bool, budget: Budget, seed: int = 0):
    task, costs = Row(WANTED, divided), Costs()
    return task, costs, run_search(Guided(sketches=0), task, costs, SearchRequest(budget, seed, Uniform()))


def test_parts_are_found_where_the_whole_is_out_of_reach():
    for seed in range(3):
        task, _, result = found(True, Budget(evaluations=400), seed)
        assert replay(task, result.schedule) == WANTED
        _, _, other = found(False, Budget(evaluations=400), seed)
        assert result.cost < other.cost


def test_equal_parts_are_searched_once():
    _, costs, _ = found(True, Budget(evaluations=200))
    looks = [asked for asked in costs.asked if asked == "row://3 "]
    assert len(looks) == 2, "one look at first, and one search: not one for each of the four"


def test_an_observer_is_told_of_the_evaluations_of_parts():
    seen: list[SearchProgress] = []
    task = Row(WANTED, True)
    result = run_search(
        Guided(sketches=0),
        task,
        Costs(),
        SearchRequest(Budget(evaluations=90), 0, Uniform(), observer=seen.append),
    )
    counts = [progress.evaluations for progress in seen]
    assert counts == sorted(counts) and counts[-1] == result.evaluations and len(counts) > 5
    assert {progress.first_cost for progress in seen} == {result.first_cost}, (
        "the whole program's, not a part's"
    )


@pytest.mark.parametrize("evaluations", [1, 2, 5, 17, 90])
def test_evaluations_of_parts_count(evaluations):
    _, costs, result = found(True, Budget(evaluations=evaluations))
    assert len(costs.asked) == result.evaluations <= evaluations


@pytest.mark.timed
def test_time_for_parts_counts():
    _, _, result = found(True, Budget(seconds=0.3))
    assert 0.25 < result.seconds < 0.6


def test_equal_seeds_give_equal_results():
    first, second = (found(True, Budget(evaluations=150), seed=4)[2] for _ in range(2))
    assert first.schedule == second.schedule and first.evaluations == second.evaluations


def test_the_most_probable_episode_is_that_of_each_part():
    class Right:
        """Knows the right value of a row of one cell alone."""

        observation = "cells"

        def __init__(self) -> None:
            self.asked: list[int] = []

        def act(self, observations: Any, masks: Sequence[Mask], rng: Any, temperature: float = 1.0) -> Any:
            self.asked.append(len(masks))
            return [Action(0, (WANTED[0],)) for _ in masks]

    policy = Right()
    task = Row(WANTED, True)
    path = most_probable(task, policy)
    assert [node.state for node in path] == [(WANTED[0],) * steps for steps in range(len(WANTED) + 1)]
    assert len(policy.asked) == len(set(WANTED)), "equal parts once"
    assert [node.state for node in most_probable(Row(WANTED, False), policy)] == [node.state for node in path]
