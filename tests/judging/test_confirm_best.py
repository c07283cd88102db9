"""What is reported of the result of a search: the program as written where nothing is better."""

from dataclasses import replace

import pytest

from irgym.base.errors import WrongResultsError
from irgym.core import capabilities
from irgym.core.schedule import Schedule, replay
from irgym.judging import finalists
from irgym.judging.finalists import KEPT, Choice, confirm_best
from irgym.judging.tuning import Validator
from irgym.search.result import SearchResult


def result_of(schedule: Schedule) -> SearchResult:
    return SearchResult(schedule, (schedule,), 1.0, 1.0, 1, 0.0, ())


@pytest.mark.parametrize(
    ("found", "schedule", "speedup", "said"),
    [
        ("set_0_1 set_1_1", "set_0_1 set_1_1", 3.0, ""),
        ("set_0_2", "", 1.0, KEPT),
        ("set_0_3 set_1_3", "", 1.0, KEPT),
        ("", "", 1.0, KEPT),
        ("stop", "", 1.0, KEPT),
    ],
)
def test_the_program_as_written_is_kept_where_a_find_is_no_better(
    environment, bench, found, schedule, speedup, said
):
    task = environment.task("toy://easy")
    result = result_of(Schedule.parse(found, task.space))
    finding = confirm_best(environment, bench, task, result, Validator(bench, 3, 0))
    assert finding.actions.text(task.space) == schedule
    assert (finding.speedup, finding.no_gain, finding.validated) == (speedup, said, True)


@pytest.mark.parametrize(
    ("found", "baseline", "schedule", "said"),
    [
        ("set_0_2", "other", "set_0_2", "as it runs it"),
        ("set_0_3 set_1_3", "numpy", "set_0_3 set_1_3", "as it runs it"),
        ("set_0_3 set_1_3", "other", "", KEPT),
    ],
)
def test_what_runs_as_the_baseline_is_kept_unless_costs_and_timings_in_turn_say_that_it_is_slower(
    environment, bench, monkeypatch, found, baseline, schedule, said
):
    """As written, 3000: slower than numpy, which takes 2000, and faster than the other baseline."""
    task = environment.task("toy://easy")
    chosen = Schedule.parse(found, task.space)
    monkeypatch.setattr(type(environment), "reference_baseline", baseline)
    monkeypatch.setattr(finalists, "best_of", lambda *_: Choice(chosen, "as it runs it"))
    finding = confirm_best(environment, bench, task, result_of(chosen), Validator(bench, 3, 0))
    assert (finding.actions.text(task.space), finding.no_gain) == (schedule, said)


@pytest.mark.parametrize(
    ("found", "kept"), [("", False), ("set_0_3 set_1_3", False), ("set_0_1 set_1_1", True)]
)
def test_nothing_slower_than_a_baseline_that_an_ending_makes_is_the_result(
    environment, bench, monkeypatch, found, kept
):
    """As written, 3000: slower than numpy, which takes 2000, however that came to be chosen."""
    task = environment.task("toy://easy")
    [ending] = Schedule.parse("set_0_2", task.space).actions
    monkeypatch.setattr(type(environment), "reference_baseline", "numpy")
    monkeypatch.setattr(capabilities, "ending_of", lambda task, name: ending)
    chosen = Schedule.parse(found, task.space)
    monkeypatch.setattr(finalists, "best_of", lambda *_: Choice(chosen))
    finding = confirm_best(environment, bench, task, result_of(chosen), Validator(bench, 3, 0))
    if kept:
        assert finding.actions == chosen and finding.baseline_ratio > 1.0 and finding.baseline_noise is None
    else:
        assert finding.actions.text(task.space) == "set_0_2" and finding.is_baseline
        assert finding.baseline_ratio is None
        low, high = finding.baseline_noise
        assert low <= finding.versus.ratio <= high


def test_a_comparison_that_noise_spoilt_is_made_again(environment, bench, monkeypatch):
    task = environment.task("toy://easy")
    [ending] = Schedule.parse("set_0_2", task.space).actions
    chosen = Schedule.parse("set_0_1 set_1_1", task.space)
    monkeypatch.setattr(capabilities, "ending_of", lambda task, name: ending)
    monkeypatch.setattr(type(environment), "reference_baseline", "numpy")
    finding = finalists.confirm(environment, bench, task, chosen, Validator(bench, 3, 0))
    spoilt = replace(finding, versus=replace(finding.versus, ratios=(0.9,)))
    again = finalists._never_behind_baseline(
        environment, bench, task, spoilt, Validator(bench, 3, 0), finalists.ENDLESS
    )
    assert again.actions == chosen and len(again.versus.ratios) > 1 and again.baseline_ratio > 1.0


class Refuting(Validator):
    """Says of some programs that their results are wrong."""

    wrong: tuple[str, ...] = ()

    def __call__(self, task, state):
        if task.key(state) in self.wrong:
            raise WrongResultsError(f"{task.key(state)} is wrong")
        return super().__call__(task, state)


@pytest.mark.parametrize(
    ("wrong", "schedule"),
    [((0,), "set_0_1"), ((0, 1), "set_0_3 set_1_3"), ((0, 1, 2), ""), ((1,), "set_0_1 set_1_1")],
)
def test_a_find_with_wrong_results_gives_way_to_the_next_best(environment, bench, wrong, schedule):
    task = environment.task("toy://easy")
    found = [Schedule.parse(one, task.space) for one in ("set_0_1 set_1_1", "set_0_1", "set_0_3 set_1_3")]
    validator = Refuting(bench, 3, 0)
    validator.wrong = tuple(task.key(replay(task, found[one])) for one in wrong)
    finding = confirm_best(
        environment, bench, task, SearchResult(found[0], tuple(found), 1, 1, 3, 0, ()), validator
    )
    worse = finding.no_gain == KEPT  # the third costs more than the program as written
    assert finding.actions.text(task.space) == ("" if worse else schedule)
    assert finding.rejected == tuple(
        f"{validator.wrong[place]} is wrong" for place in range(len(finding.rejected))
    )
    assert (len(finding.rejected) > 0) == (0 in wrong) and finding.validated


def test_the_program_as_written_must_be_right(environment, bench):
    task = environment.task("toy://easy")
    validator = Refuting(bench, 3, 0)
    validator.wrong = (task.key(task.initial()),)
    with pytest.raises(WrongResultsError):
        confirm_best(environment, bench, task, result_of(Schedule()), validator)
