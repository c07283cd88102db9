"""Checks that an interrupt ends: the best that is validated so far, else the original program."""

import math
from dataclasses import replace
from typing import Any

import pytest
from judged import ToyBench, ToyEnvironment

from irgym.core import capabilities
from irgym.core.cost import Call
from irgym.core.schedule import Schedule, candidate_of
from irgym.judging.interrupted import KEPT
from irgym.judging.judge import Judge
from irgym.judging.result import judged
from irgym.judging.so_far import SoFar
from irgym.judging.validator import Validator
from irgym.reporting.facts import facts_of
from irgym.search.result import SearchResult


class Interrupting(ToyBench):
    """Is interrupted at one of its calls of a function, counted from 0."""

    def __init__(self, function: str, count: int) -> None:
        self._function, self._left = function, count

    def call(self, call: Call, timeout_s: float | None = None, told: Any = None) -> Any:
        if call.function == self._function:
            self._left -= 1
            if self._left == -1:
                raise KeyboardInterrupt
        return super().call(call, timeout_s, told)


def interrupted(
    function: str, count: int, *texts: str, uri: str = "toy://easy", first_cost: float = 3000.0, again=False
):
    environment, bench = ToyEnvironment(), Interrupting(function, count)
    task = environment.task(uri)
    judge = Judge(environment, bench, task, Validator(bench, 3, 0))
    found = tuple(candidate_of(task, Schedule.parse(text, task.space)) for text in texts)
    return judged(judge, SearchResult(found, 1000.0, first_cost, 9, 0.0, (), interrupted=again))


@pytest.mark.parametrize(
    ("function", "count", "doing"),
    [
        ("toy:measure", 0, "measuring the finalists again"),
        ("toy:measure", 4, "measuring the finalists again"),
        ("toy:validate", 0, "comparing its results with the original's"),
    ],
)
def test_before_anything_is_validated_the_original_is_the_result(function: str, count: int, doing: str):
    result = interrupted(function, count, "set_0_1 set_1_1", "set_0_1")
    assert (result.schedule, result.cost, result.speedup) == ("", 3000.0, 1.0)
    assert not result.validated and result.no_gain == KEPT and doing in result.interrupted
    said = dict(facts_of(result))
    assert said["validated"] == "no" and "left out" in said["interrupted"] and "numpy" in said["baseline"]
    assert result.to_json()["interrupted"] == result.interrupted


@pytest.mark.parametrize("count", [6, 9])
def test_a_validated_finalist_is_the_result_without_what_was_left_out(count: int):
    """The last measurement but some: beside the original, of which the search knows a cost."""
    result = interrupted("toy:measure", count, "set_0_1 set_1_1", "set_0_1")
    assert (result.schedule, result.cost, result.cost_as_written) == ("set_0_1 set_1_1", 1000.0, 3000.0)
    assert result.validated and not result.no_gain and result.versus is None
    assert "measuring it again" in result.interrupted and "before it was timed in turn" in result.no_baseline


def test_an_interrupted_comparison_in_turn_leaves_that_out_alone():
    whole = interrupted("toy:none", 0, "set_0_1 set_1_1")
    assert whole.versus is not None and not whole.interrupted
    result = interrupted("toy:versus", 0, "set_0_1 set_1_1")
    assert result.schedule == "set_0_1 set_1_1" and result.validated and result.versus is None
    assert "timing it in turn with numpy" in result.interrupted


def test_what_is_no_better_than_the_original_is_not_taken():
    result = interrupted("toy:versus", 0, "set_0_3 set_1_3")
    assert result.schedule == "" and result.no_gain and result.interrupted


def test_wrong_programs_are_not_taken_and_said():
    result = interrupted("toy:versus", 0, "set_0_2 set_1_2", uri="toy://wrong", first_cost=5000.0)
    assert result.schedule == "" and result.rejected and result.validated, "the original was, after that"


def test_a_second_interrupt_is_raised():
    with pytest.raises(KeyboardInterrupt):
        interrupted("toy:validate", 0, "set_0_1 set_1_1", again=True)


@pytest.mark.parametrize(("function", "count", "kept"), [("toy:validate", 0, False), ("toy:versus", 0, True)])
def test_the_original_runs_as_the_baseline_where_an_ending_makes_it_so(
    function: str, count: int, kept: bool, monkeypatch: pytest.MonkeyPatch
):
    [ending] = Schedule.parse("set_0_2", ToyEnvironment().task("toy://easy").space).actions
    monkeypatch.setattr(capabilities, "ending_of", lambda task, name: ending)
    result = interrupted(function, count, "set_0_1 set_1_1")
    assert result.schedule == ("set_0_1 set_1_1" if kept else "set_0_2")
    assert result.is_baseline != kept and math.isfinite(result.speedup)


def test_actions_whose_effect_no_check_sees_are_not_taken():
    environment, bench = ToyEnvironment(), ToyBench()
    task = environment.task("toy://easy")
    judge = Judge(environment, bench, task, Validator(bench, 3, 0))
    finding = judge.confirm(candidate_of(task, Schedule.parse("set_0_1", task.space)))
    assert finding.validation is not None and judge.so_far.visible == [finding]
    unseen = SoFar(findings=judge.so_far.findings)
    key = task.key(finding.state)
    unseen.findings[key] = replace(finding, validation=replace(finding.validation, unseen=("a",)))
    assert unseen.visible == []
    unseen.left_out = ("a",)
    assert len(unseen.visible) == 1
    unseen.reject(key, "wrong")
    assert unseen.visible == [] and unseen.rejected == {key: "wrong"}
