"""How the time of `tune` is divided."""

import math
import time
from typing import Any, cast

import pytest

from irgym.core.cost import Call, Job, Measurement, Outcome
from irgym.core.objective import TIME
from irgym.core.task import Task
from irgym.judging.plan import LEAST_CHECKS_S, LEAST_RUNS, PATIENT, SEARCHING, SHARE, Plan, plan_of


class Plain:
    objective = TIME

    def __init__(self, runs: float) -> None:
        self._runs = runs

    def initial(self) -> str:
        return "original"

    def job(self, state: str) -> Job:
        return Job(Call("measure"), "toy://plain", state, "", runs=self._runs, target="")


def plan(run_s: float, seconds: float | None, spent_s: float = 0.0, runs: float = 1.0) -> Plan:
    first = Measurement(Outcome.OK, (run_s * 1e9,), 0.0)
    task = cast("Task[Any]", Plain(runs))
    return plan_of(task, first, 0.1, seconds, time.monotonic() - spent_s)


def test_checks_get_what_they_need_and_the_search_the_rest():
    short = plan(0.001, 60.0, 5.0)
    assert short.checks_s == short.bound_s < SHARE * 55.0
    assert short.search_s == pytest.approx(55.0 - short.checks_s, abs=0.1)
    assert short.patience().whole_s == pytest.approx(55.0, abs=0.1)


def test_checks_of_slow_programs_get_a_share():
    slow = plan(0.2, 60.0, 5.0)
    assert slow.checks_s == pytest.approx(SHARE * 55.0, abs=0.1)
    assert slow.checks_s < slow.bound_s
    assert not slow.overrun


def test_a_run_at_each_of_several_sizes_counts():
    single, several = plan(0.01, 60.0), plan(0.01, 60.0, runs=3.0)
    assert several.run_s == 3 * single.run_s
    assert several.least_s - LEAST_CHECKS_S == pytest.approx(3 * (single.least_s - LEAST_CHECKS_S))
    assert several.bound_s > single.bound_s


def test_what_cannot_be_done_in_time_is_said_and_the_search_still_begins():
    late = plan(3.0, 20.0, 15.0)
    assert late.search_s == SEARCHING * 20.0
    assert late.patience().whole_s == late.least_s == LEAST_CHECKS_S + LEAST_RUNS * 3.0
    assert "3.0 s" in late.overrun and f"{15 + late.least_s:.0f} s or more" in late.overrun


def test_without_a_limit_checks_are_not_hurried():
    free = plan(0.01, None)
    assert free.search_s is None and free.overrun == ""
    patience = free.patience()
    assert patience.seconds == PATIENT * free.bound_s and math.isinf(patience.left_s)
