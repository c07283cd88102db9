"""The judge's finding after a search: the original program if nothing is better."""

from dataclasses import replace

import pytest

from irgym.base.errors import IrgymError, WrongResultsError
from irgym.core import capabilities
from irgym.core.schedule import Schedule, candidate_of
from irgym.judging.judge import KEPT, Choice, Judge
from irgym.judging.trials import Trials
from irgym.judging.validator import Validator
from irgym.search.result import SearchResult


def result_of(*found) -> SearchResult:
    return SearchResult(found, 1.0, 1.0, 1, 0.0, ())


def candidate(task, text):
    return candidate_of(task, Schedule.parse(text, task.space))


@pytest.fixture
def judge(environment, bench):
    return Judge(environment, bench, environment.task("toy://easy"), Validator(bench, 3, 0))


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
def test_the_original_program_is_kept_where_a_find_is_no_better(judge, found, schedule, speedup, said):
    finding = judge.best_of(result_of(candidate(judge.task, found)))
    assert finding.actions.text(judge.task.space) == schedule
    assert (finding.speedup, finding.no_gain, finding.validated) == (speedup, said, True)


@pytest.mark.parametrize(
    ("found", "baseline", "schedule", "said"),
    [
        ("set_0_2", "other", "set_0_2", "as it runs it"),
        ("set_0_3 set_1_3", "numpy", "set_0_3 set_1_3", "as it runs it"),
        ("set_0_3 set_1_3", "other", "", KEPT),
    ],
)
def test_a_find_that_runs_as_the_baseline_is_kept_unless_costs_and_timings_show_it_slower(
    judge, monkeypatch, found, baseline, schedule, said
):
    """The original takes 3000: slower than numpy, which takes 2000, and faster than the other baseline."""
    chosen = candidate(judge.task, found)
    monkeypatch.setattr(type(judge.environment), "reference_baseline", baseline)
    monkeypatch.setattr(Judge, "choose", lambda *_: Choice(chosen, "as it runs it"))
    finding = judge.best_of(result_of(chosen))
    assert (finding.actions.text(judge.task.space), finding.no_gain) == (schedule, said)


@pytest.mark.parametrize(
    ("found", "kept"), [("", False), ("set_0_3 set_1_3", False), ("set_0_1 set_1_1", True)]
)
def test_nothing_slower_than_a_baseline_that_an_ending_makes_is_the_result(judge, monkeypatch, found, kept):
    """The original takes 3000: slower than numpy, which takes 2000, however that came to be chosen."""
    task = judge.task
    [ending] = Schedule.parse("set_0_2", task.space).actions
    monkeypatch.setattr(type(judge.environment), "reference_baseline", "numpy")
    monkeypatch.setattr(capabilities, "ending_of", lambda task, name: ending)
    chosen = candidate(task, found)
    monkeypatch.setattr(Judge, "choose", lambda *_: Choice(chosen))
    finding = judge.best_of(result_of(chosen))
    if kept:
        assert finding.candidate == chosen and finding.baseline_ratio > 1.0 and finding.baseline_noise is None
    else:
        assert finding.actions.text(task.space) == "set_0_2" and finding.is_baseline
        assert finding.baseline_ratio is None
        low, high = finding.baseline_noise
        assert low <= finding.versus.ratio <= high


def test_a_comparison_that_noise_spoilt_is_made_again(judge, monkeypatch):
    [ending] = Schedule.parse("set_0_2", judge.task.space).actions
    chosen = candidate(judge.task, "set_0_1 set_1_1")
    monkeypatch.setattr(capabilities, "ending_of", lambda task, name: ending)
    monkeypatch.setattr(type(judge.environment), "reference_baseline", "numpy")
    finding = judge.confirm(chosen)
    spoilt = replace(finding, versus=replace(finding.versus, ratios=(0.9,)))
    again = judge._never_behind_baseline(spoilt)
    assert again.candidate == chosen and len(again.versus.ratios) > 1 and again.baseline_ratio > 1.0


class Refuting(Validator):
    """Says of some programs that their results are wrong, or that they fail."""

    wrong: tuple[str, ...] = ()
    error: type[IrgymError] = WrongResultsError

    def __call__(self, task, state, seconds: float = 0.0):
        if task.key(state) in self.wrong:
            raise self.error(f"{task.key(state)} is wrong")
        return super().__call__(task, state)


@pytest.mark.parametrize("error", [WrongResultsError, IrgymError])
@pytest.mark.parametrize(
    ("wrong", "schedule"),
    [((0,), "set_0_1"), ((0, 1), "set_0_3 set_1_3"), ((0, 1, 2), ""), ((1,), "set_0_1 set_1_1")],
)
def test_a_find_with_wrong_results_or_that_fails_gives_way_to_the_next_best(judge, wrong, schedule, error):
    task = judge.task
    found = [candidate(task, text) for text in ("set_0_1 set_1_1", "set_0_1", "set_0_3 set_1_3")]
    validator = Refuting(judge.bench, 3, 0)
    validator.wrong, validator.error = tuple(task.key(found[place].state) for place in wrong), error
    finding = replace(judge, validator=validator).best_of(result_of(*found))
    worse = finding.no_gain == KEPT  # the third costs more than the original program
    assert finding.actions.text(task.space) == ("" if worse else schedule)
    assert finding.rejected == tuple(
        f"{validator.wrong[place]} is wrong" for place in range(len(finding.rejected))
    )
    assert (len(finding.rejected) > 0) == (0 in wrong) and finding.validated


def test_the_original_program_must_be_right(judge):
    validator = Refuting(judge.bench, 3, 0)
    validator.wrong = (judge.task.key(judge.task.initial()),)
    with pytest.raises(WrongResultsError):
        replace(judge, validator=validator).best_of(result_of(judge.original))


def test_a_find_that_fails_beside_the_baseline_gives_way_to_the_next(judge, monkeypatch):
    [ending] = Schedule.parse("set_0_2", judge.task.space).actions
    monkeypatch.setattr(type(judge.environment), "reference_baseline", "numpy")
    monkeypatch.setattr(capabilities, "ending_of", lambda task, name: ending)
    best, next_best = (candidate(judge.task, text) for text in ("set_0_1 set_1_1", "set_0_1 set_1_2"))
    beats = Trials.beats

    def failing(trials, name, found):
        if found == best:
            raise IrgymError("it fails when it is timed")
        return beats(trials, name, found)

    monkeypatch.setattr(Trials, "beats", failing)
    assert judge._over_baseline(judge.baseline_itself, [best, next_best]).candidate == judge.baseline_itself
    monkeypatch.setattr(
        Trials, "beats", lambda trials, name, found: found != best or failing(trials, name, found)
    )
    assert judge._over_baseline(judge.baseline_itself, [best, next_best]).candidate == next_best


def test_a_baseline_that_fails_when_it_is_checked_leaves_the_find(judge, monkeypatch):
    """The original takes 3000, slower than numpy; the ending that makes numpy's program fails."""
    [ending] = Schedule.parse("set_0_2", judge.task.space).actions
    monkeypatch.setattr(type(judge.environment), "reference_baseline", "numpy")
    monkeypatch.setattr(capabilities, "ending_of", lambda task, name: ending)
    validator = Refuting(judge.bench, 3, 0)
    validator.wrong, validator.error = (judge.task.key(judge.baseline_itself.state),), IrgymError
    monkeypatch.setattr(Judge, "choose", lambda self, found: Choice(judge.original))
    finding = replace(judge, validator=validator).best_of(result_of(judge.original))
    assert not finding.is_baseline and len(finding.rejected) == 1 and finding.validated
