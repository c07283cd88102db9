"""Which finalist is chosen: under all endings, and never one that is slower than the reference baseline."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from irgym.base.errors import BaselineError, IrgymError, ScheduleError
from irgym.core.actions import Action, ActionSpace, Mask
from irgym.core.baseline import Baseline, Versus
from irgym.core.cost import Call, Job, Measurement, Outcome
from irgym.core.kinds import ActionKind
from irgym.core.objective import TIME, Objective
from irgym.core.observation import array_view, views_of
from irgym.core.schedule import Schedule, candidate_of, replay
from irgym.core.task import Task
from irgym.judging.judge import Choice, Judge
from irgym.judging.patience import ENDLESS, Patience
from irgym.judging.validator import Validator
from irgym.search.result import SearchResult

OFF = {"": 100.0, "a": 80.0, "b": 90.0, "ab": 85.0}
"""Costs without another ending."""


@dataclass(frozen=True)
class Word:
    text: str = ""
    ending: str = ""


class Words(Task[Word]):
    """Letters are appended; `stop` ends a word, and so does `stop-own`, which is not offered."""

    space = ActionSpace(
        (ActionKind("a"), ActionKind("b"), *(ActionKind(n, ends="episode") for n in ("stop", "stop-own")))
    )
    horizon = 3
    uri = "words://one"
    views = views_of(array_view("length", "", (1,), lambda task, state: [len(state.text)]))

    def __init__(self, objective: Objective = TIME) -> None:
        self.objective = objective

    def initial(self) -> Word:
        return Word()

    def mask(self, state: Word) -> Mask:
        going = not state.ending
        return self.space.mask([going, going, going, False], [])

    def accepts(self, state: Word, action: Action) -> bool:
        return action in self.endings(state) or super().accepts(state, action)

    def step(self, state: Word, action: Action) -> Word:
        name = self.space.text(action)
        return replace(state, ending=name) if name.startswith("stop") else Word(state.text + name)

    def terminal(self, state: Word) -> bool:
        return bool(state.ending)

    def key(self, state: Word) -> str:
        return state.text + ("+own" if state.ending == "stop-own" else "")

    def job(self, state: Word) -> Job:
        return Job(Call("measure", (self.key(state),)), self.uri, self.key(state), "1", target="")

    def validation(self, state: Word, inputs: int, seed: int) -> Call:
        raise NotImplementedError

    def describe(self, state: Word) -> str:
        return state.text

    def export(self, state: Word, path: Path) -> list[Path]:
        raise NotImplementedError

    def endings(self, state: Word) -> Sequence[Action]:
        return () if state.ending else (Action(3),)

    def ending_of(self, baseline: str) -> Action | None:
        return Action(3) if baseline == "own" else None

    def running(self, state: Word) -> str:
        return f"own={state.ending == 'stop-own'}"

    def baseline_call(self, name: str, state: Word, rounds: int = 15) -> Call:
        return Call("versus", (name, self.key(state)))


class Surroundings:
    """An environment and its bench: costs by key, and what each timing in turn with the baseline shows."""

    def __init__(
        self, own: dict[str, float], ratios: Mapping[str, Sequence[float]], baseline: str | None = "own"
    ) -> None:
        self.reference_baseline = baseline
        self.costs = OFF | {f"{text}+own": cost for text, cost in own.items()}
        self.ratios = {text: list(found) for text, found in ratios.items()}
        self.measured: list[str] = []

    baselines = (Baseline("own", "the own optimiser"),)

    def measure(self, jobs: Sequence[Job]) -> list[Measurement]:
        self.measured += [job.schedule for job in jobs]
        return [Measurement(Outcome.OK, (self.costs[job.schedule],)) for job in jobs]

    def call(self, call: Call, timeout_s: float | None = None, told: Any = None) -> Any:
        _, text = call.arguments
        ratio = self.ratios[text].pop(0)
        return Versus(tuple(ratio * step for step in (0.99, 1.0, 1.01)), 1.0, 1.0 / ratio, "own")

    @property
    def compared(self) -> bool:
        """Whether all comparisons were made."""
        return not any(self.ratios.values())


class Endless(Words):
    """Words without another ending."""

    def endings(self, state: Word) -> Sequence[Action]:
        return ()


def choose(around: Any, *finalists: str, task: Words | None = None, begun: str | None = None):
    task = task or Words()
    first = () if begun is None else (candidate(task, begun),)
    found = tuple(candidate(task, text) for text in finalists)
    result = SearchResult(found, 0.0, around.costs[""], 1, 0.0, (), begun=first)
    choice = judge(around, task).choose(result)
    return choice.candidate.schedule.text(task.space), choice.no_gain


def candidate(task: Words, text: str):
    return candidate_of(task, Schedule.parse(text, task.space))


def judge(around: Any, task: Words, patience: Patience = ENDLESS) -> Judge:
    return Judge(around, around, task, Validator(around, 0, 0), patience)


def test_another_ending_wins_where_it_is_faster():
    ratios = {"b+own": [1.5] * 5, "a+own": [0.9, 0.9], "a": [0.8, 0.8]}
    around = Surroundings({"": 60.0, "a": 70.0, "b": 40.0}, ratios)
    assert choose(around, "a", "b stop") == ("b stop-own", "")
    assert set(around.measured) >= {"a", "b", "a+own", "b+own", "+own"}
    assert around.compared, "twice to tell which is the best, and three times to tell whether it is faster"


def test_a_finalist_wins_without_another_ending():
    ratios = {"a": [1.2] * 5, "a+own": [1.1, 1.1], "b": [1.0, 1.0]}
    around = Surroundings({"": 95.0, "a": 90.0, "b": 99.0}, ratios)
    assert choose(around, "a", "b") == ("a", "") and around.compared


def test_the_largest_gain_in_turn_beats_the_least_cost():
    around = Surroundings({"": 95.0, "a": 99.0, "b": 99.0}, {"a": [1.1, 1.1], "b": [1.1, 1.2, 1.2, 1.2, 1.2]})
    around.costs |= {"a+own": math.inf, "b+own": math.inf}
    assert choose(around, "a", "b") == ("b", "") and around.compared


def test_a_finalist_that_was_disturbed_once_is_measured_again():
    class Disturbed(Surroundings):
        def measure(self, jobs: Sequence[Job]) -> list[Measurement]:
            [measured] = super().measure(jobs)
            first = jobs[0].schedule == "ab" and self.measured.count("ab") == 1
            return [Measurement(Outcome.OK, (97.0,))] if first else [measured]

    around = Disturbed({"": 96.0, "a": 96.0, "b": 96.0, "ab": 96.0}, {}, None)
    assert choose(around, "b", "a b") == ("a b", "")


@pytest.mark.parametrize(("gain", "chosen"), [(1.04, "a"), (1.06, "b")])
def test_without_endings_the_least_cost_wins_unless_another_is_faster_in_turn(gain: float, chosen: str):
    around = Surroundings({}, {"a": [1.0, 1.0], "b": [gain, gain]})
    assert choose(around, "a", "b", task=Endless()) == (chosen, "") and around.compared


def test_the_start_of_the_search_is_compared_whatever_it_costs():
    around = Surroundings({}, {text: [1.0, 1.0] for text in ("a", "b", "ab", "aa")} | {"bb": [1.2, 1.2]})
    around.costs |= {"aa": 95.0, "ba": 96.0, "bb": 99.0}
    words = ("a", "a b", "b", "a a", "b a")
    assert choose(around, *words, task=Endless(), begun="b b") == ("b b", "") and around.compared


def test_a_baseline_that_is_slow_beside_a_finalist_does_not_choose_it():
    class Moody(Surroundings):
        def call(self, call: Call, timeout_s: float | None = None, told: Any = None) -> Any:
            slow = call.arguments[1] == "b"
            return Versus((1.5,), 1.65, 1.1, "own") if slow else Versus((1.0,), 1.0, 1.0, "own")

    assert choose(Moody({}, {}), "a", "b", task=Endless()) == ("a", "")


def test_a_single_finalist_is_compared_with_nothing():
    assert choose(Surroundings({}, {}), "a", task=Endless(), begun="a") == ("a", "")


@pytest.mark.parametrize(
    ("task", "own", "chosen"), [(Endless(), {}, "a"), (Words(), {"a": 70.0, "b": 75.0, "": 60.0}, "stop-own")]
)
def test_costs_decide_where_the_baseline_cannot_compute_the_program(
    task: Words, own: dict[str, float], chosen: str
):
    class Unable(Surroundings):
        def call(self, call: Call, timeout_s: float | None = None, told: Any = None) -> Any:
            raise BaselineError("own computes no words")

    assert choose(Unable(own, {}), "b", "a", task=task) == (chosen, "")


@pytest.mark.parametrize(("failing", "chosen"), [("a", "b"), ("b", "a")])
def test_a_finalist_that_fails_in_turn_with_the_baseline_is_out(failing: str, chosen: str):
    class Failing(Surroundings):
        def call(self, call: Call, timeout_s: float | None = None, told: Any = None) -> Any:
            if call.arguments[1] == failing:
                raise IrgymError("crash")
            return super().call(call, timeout_s)

    around = Failing({}, {chosen: [1.0, 1.0]})
    assert choose(around, "a", "b", task=Endless()) == (chosen, "") and around.compared


def test_a_finalist_that_fails_is_not_measured_again():
    class Crashing(Surroundings):
        def measure(self, jobs: Sequence[Job]) -> list[Measurement]:
            measured = super().measure(jobs)
            return [Measurement(Outcome.CRASH)] if jobs[0].schedule == "a" else measured

    around = Crashing({}, {})
    assert choose(around, "a", "b", task=Endless()) == ("b", "")
    assert sorted(around.measured) == ["a", "b", "b", "b"]


def test_a_gain_in_turn_at_a_higher_cost_than_the_original_is_not_chosen():
    around = Surroundings({}, {"a": [1.0, 1.0], "ab": [1.0, 1.0]})
    around.costs |= {"b": 101.0}
    assert choose(around, "a", "a b", "b", task=Endless(), begun="b") == ("a", "") and around.compared


def test_where_the_time_is_up_what_was_not_compared_is_not_chosen(monkeypatch: pytest.MonkeyPatch):
    class Late(Surroundings):
        def call(self, call: Call, timeout_s: float | None = None, told: Any = None) -> Any:
            monkeypatch.setattr(Patience, "past", lambda self, share: True)
            return super().call(call, timeout_s)

    around = Late({}, {"a": [0.5]})
    assert choose(around, "a", "b", task=Endless()) == ("a", "") and around.compared


def test_once_the_time_is_up_nothing_is_compared():
    task = Endless()
    found = tuple(candidate(task, text) for text in ("a", "b"))
    result = SearchResult(found, 80.0, 100.0, 1, 0.0, (), begun=found[1:])
    around: Any = Surroundings({}, {})
    assert judge(around, task, Patience(0.0)).choose(result) == Choice(found[0])
    assert around.measured == ["a"]


@pytest.mark.parametrize("ratios", [[0.98], [1.2, 0.99], [1.2, 1.2, 1.0], [1.001, 1.001, 1.001]])
def test_a_gain_within_the_noise_is_not_chosen(ratios: list[float]):
    around = Surroundings({"": 82.0, "a": 90.0}, {"a": [1.1, 1.1, *ratios], "a+own": [0.9, 0.9]})
    schedule, no_gain = choose(around, "a")
    assert schedule == "stop-own" and around.compared
    assert no_gain == (
        "nothing faster than the own optimiser was found; the result is the original program, "
        "to be run with own=True"
    )


def test_the_baseline_itself_is_compared_with_nothing():
    around = Surroundings({"": 50.0, "a": math.inf}, {})
    around.costs["a"] = math.inf
    assert choose(around, "a")[0] == "stop-own"


def test_a_single_rival_of_the_baseline_is_compared_thrice():
    around = Surroundings({"": 50.0, "a": math.inf}, {"a": [1.2] * 3})
    assert choose(around, "a") == ("a", "") and around.compared


def test_without_a_baseline_among_the_endings_the_least_cost_counts():
    assert choose(Surroundings({"": 60.0, "a": 50.0}, {}, None), "a") == ("a stop-own", "")
    assert choose(Surroundings({"": 60.0, "a": 50.0}, {}, "other"), "a") == ("a stop-own", "")


def test_exact_costs_need_no_endings():
    around = Surroundings({}, {})
    counted = Words(Objective("letters", "", "letters", exact=True, timed=False))
    assert choose(around, "a", "b", task=counted) == ("a", "") and not around.measured


def test_schedules_with_endings_that_masks_do_not_offer_are_replayed():
    task = Words()
    assert replay(task, Schedule.parse("a stop-own", task.space)) == Word("a", "stop-own")
    assert not task.space.allows(task.mask(task.initial()), Action(3))
    with pytest.raises(ScheduleError, match=r"action 2 of the schedule, stop-own, does not apply"):
        replay(task, Schedule.parse("stop stop-own", task.space))
