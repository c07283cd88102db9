"""What is reported of the result of a search."""

import pytest

from irgym.core.schedule import Schedule
from irgym.evaluation import finalists
from irgym.evaluation.finalists import KEPT, Choice, confirm_best
from irgym.evaluation.tuning import Validator
from irgym.search.result import SearchResult


def result_of(schedule: Schedule) -> SearchResult:
    return SearchResult(schedule, (schedule,), 1.0, 1.0, 1, 0.0, ())


@pytest.mark.parametrize(
    ("found", "schedule", "speedup", "said"),
    [
        ("set_0_1 set_1_1", "set_0_1 set_1_1", 3.0, ""),
        ("set_0_2", "set_0_2", 1.0, ""),
        ("set_0_3 set_1_3", "", 1.0, KEPT),
        ("", "", 1.0, ""),
    ],
)
def test_the_program_as_written_is_kept_where_a_find_is_slower(
    environment, bench, found, schedule, speedup, said
):
    task = environment.task("toy://easy")
    result = result_of(Schedule.parse(found, task.space))
    finding = confirm_best(environment, bench, task, result, Validator(bench, 3, 0))
    assert finding.actions.text(task.space) == schedule
    assert (finding.speedup, finding.no_gain, finding.validated) == (speedup, said, True)


def test_why_a_find_is_run_as_the_baseline_is_said_rather_than_judged_again(environment, bench, monkeypatch):
    task = environment.task("toy://easy")
    schedule = Schedule.parse("set_0_3 set_1_3", task.space)
    monkeypatch.setattr(finalists, "best_of", lambda *_: Choice(schedule, "as numpy runs it"))
    finding = confirm_best(environment, bench, task, result_of(schedule), Validator(bench, 3, 0))
    assert (finding.actions, finding.no_gain) == (schedule, "as numpy runs it")
