"""How long checks may take: what is said before grows with what they must do."""

import itertools
from copy import copy
from dataclasses import replace
from typing import Any, cast

import pytest
from dials import Dials

from irgym.core.baseline import ROUNDS
from irgym.core.cost import Call
from irgym.core.objective import TIME
from irgym.core.task import Task
from irgym.judging.patience import FEW, Patience, checks_bound
from irgym.judging.trials import Trials
from irgym.measure.timing import LONG_S


class Plain:
    objective = TIME

    def initial(self) -> str:
        return "original"


class Peaked(Plain):
    def peak_call(self, state: Any, rounds: int = ROUNDS) -> Call | None:
        return Call("peak")


class Unbounded(Plain):
    def peak_call(self, state: Any, rounds: int = ROUNDS) -> Call | None:
        return None


class Ended(Plain):
    def endings(self, state: Any) -> list[Any]:
        return []

    def ending_of(self, baseline: str) -> None:
        return None

    def running(self, state: Any) -> str:
        return ""


def bound(task: object, first_cost: float = 1e9) -> float:
    return checks_bound(cast("Task[Any]", task), first_cost, 2.0)


def test_each_comparison_in_turn_counts():
    single, two, several = bound(Plain()), bound(Peaked()), bound(Ended())
    assert two - single == pytest.approx(2 * LONG_S), "of the result, and of the original program"
    assert bound(Unbounded()) == single
    assert several - single >= 2 * LONG_S
    assert bound(Ended(), 1e5) - bound(Plain(), 1e5) < 1.0, "short programs are compared soon"


def test_rounds_end_where_patience_does():
    assert list(itertools.islice(Patience(0.0).rounds(5), 9)) == [0]
    assert list(Patience(100.0).rounds(3)) == [0, 1, 2]
    assert list(Patience(0.0).turns(3, 2)) == [0]
    assert list(Patience(100.0).turns(2, 2)) == [0, 1, 0, 1]


def test_a_comparison_has_as_many_rounds_as_there_is_time_for():
    assert Patience(run_s=3.0).comparison(15) == 15, "endless"
    assert Patience(whole_s=100.0, run_s=0.01).comparison(15) == 15
    short = Patience(whole_s=29.0, run_s=1.0)
    assert short.comparison(15, last=True) == 3
    assert short.comparison(15) == 1, "a quarter of the time is kept for the last one"
    assert short.comparison(15, share=0.5) == 0, "warming up alone takes 16 s"
    assert Patience(whole_s=0.0).comparison(15) == 0


def test_a_few_rounds_of_the_last_comparison_are_left_out_only_where_they_take_long():
    assert Patience(whole_s=0.0, run_s=0.1).comparison(15, last=True) == FEW
    assert Patience(whole_s=0.0, run_s=0.1).comparison(1, last=True) == 1
    assert Patience(whole_s=0.0, run_s=1.0).comparison(15, last=True) == 0
    assert Patience(whole_s=0.0, run_s=0.1, prepare_s=9.0).comparison(15, last=True) == 0
    assert Patience(whole_s=100.0, run_s=0.1).left_s == pytest.approx(97.2, abs=0.1)


def test_rounds_beside_the_peak_are_few_only_where_they_take_long():
    assert Patience(whole_s=0.0, run_s=0.05).beside_peak(15) == 15
    assert Patience(whole_s=0.0, run_s=0.5).beside_peak(15) == FEW
    assert Patience(run_s=0.5).beside_peak(15) == 15, "endless"


def test_a_comparison_has_rounds_by_the_time_of_a_program_that_is_faster_than_the_original():
    task = copy(Dials((1, 2, 3)))
    task.objective = TIME
    state = task.initial()
    trials = Trials(cast(Any, None), task, Patience(whole_s=29.0, run_s=1.0))
    assert trials._patience_with(state).run_s == 1.0
    trials.seen[task.key(state)] = 0.1e9
    assert trials._patience_with(state).comparison(15) == 15 > trials.patience.comparison(15)
    exact = copy(task)
    exact.objective = replace(TIME, timed=False)
    assert Trials(cast(Any, None), exact, trials.patience, trials.seen)._patience_with(state).run_s == 1.0
