"""Policies in a comparison: never worse than the original program, and raw beside it."""

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from observers import Given, Kept
from rich.console import Console

from irgym.base.errors import UnsuitedPolicyError
from irgym.comparing.comparison import ComparisonPlan, run_comparison
from irgym.comparing.method_names import with_raw
from irgym.comparing.methods import Conditions
from irgym.comparing.policy_methods import RawPolicy, RolledOut
from irgym.comparing.results import Comparison
from irgym.core.actions import Action, Mask
from irgym.core.catalogue import ENVIRONMENTS
from irgym.core.cost import Job, Measurement, Outcome
from irgym.core.schedule import Schedule, states_along
from irgym.judging.judge import KEPT
from irgym.judging.validator import Validator
from irgym.reporting.html import rows_table, summary_table
from irgym.reporting.tables import table
from irgym.search.budget import Budget
from irgym.search.policies import PolicyFiles

HARD, BROKEN = "toy://hard", "toy://broken"
"""The original cost of the first is 6000; of the others, only the original of the second runs."""


@dataclass
class Follows:
    """A policy that follows a schedule."""

    following: dict[tuple[int, ...], Action]
    observation = ""

    def act(
        self, observations: Sequence[Any], masks: Sequence[Mask], rng: Any, temperature: float = 1.0
    ) -> list[Action]:
        return [self.following[tuple(int(value) for value in values)] for values in observations]


def follows(task: Any, text: str) -> Follows:
    schedule = Schedule.parse(text, task.space)
    states = states_along(task, schedule)
    return Follows({state.values: action for state, action in zip(states, schedule.actions, strict=False)})


@pytest.fixture
def compare(environment, bench):
    def run(schedule, uri=HARD, methods=("policy:mine",), done=None):
        plan = ComparisonPlan(environment, (uri,), tuple(methods), Budget(8))
        seen = Kept()
        policies = Given(lambda name, task: follows(task, schedule), lambda name, _: "a digest")
        return run_comparison(plan, bench, policies, seen, done), seen.computed

    return run


@pytest.mark.parametrize(
    ("schedule", "reported", "cost", "no_gain", "raw_cost"),
    [
        pytest.param("set_0_3 set_1_2 stop", "set_0_3 set_1_2 stop", 1000.0, "", 1000.0, id="final"),
        pytest.param("set_0_3 set_0_1 stop", "set_0_3", 3000.0, "", 5000.0, id="seen on the way"),
        pytest.param("set_0_3 stop", "set_0_3 stop", 3000.0, "", 3000.0, id="final, seen before it stopped"),
        pytest.param("stop", "", 6000.0, KEPT, 6000.0, id="nothing done"),
    ],
)
def test_the_best_of_final_state_seen_and_original_is_reported(
    compare, schedule, reported, cost, no_gain, raw_cost
):
    comparison, computed = compare(schedule)
    policy, raw = comparison.rows
    assert computed == [(HARD, "policy:mine")]
    assert (policy.method, policy.schedule, policy.cost) == ("policy:mine", reported, cost)
    assert (policy.no_gain, policy.speedup, policy.best_seen) == (no_gain, 6000.0 / cost, cost)
    assert (raw.method, raw.schedule, raw.cost) == ("raw:mine", schedule, raw_cost)
    assert (raw.no_gain, raw.speedup, raw.best_seen) == ("", 6000.0 / raw_cost, None)
    assert policy.baseline_ratio == pytest.approx(2000.0 / cost)
    assert raw.baseline_ratio == pytest.approx(2000.0 / raw_cost)
    assert policy.validated and raw.validated


WORSE = "set_1_3 stop"
"""Of `toy://easy`, whose original cost is 3000: it leads to 4000."""


def test_a_policy_that_makes_a_program_slower_is_not_reported(compare):
    policy, raw = compare(WORSE, "toy://easy")[0].rows
    assert (policy.cost, policy.speedup, policy.schedule, policy.no_gain) == (3000.0, 1.0, "", KEPT)
    assert (raw.cost, raw.speedup, raw.schedule) == (4000.0, 0.75, WORSE)
    assert (policy.evaluations, raw.evaluations) == (2, 0)
    assert policy.seconds >= raw.seconds >= 0.001, "looking at the way takes time, which is the policy's own"


def test_a_policy_whose_program_does_not_run_is_not_reported(compare):
    comparison, computed = compare("set_0_2 stop", BROKEN)
    policy, raw = comparison.rows
    assert (policy.cost, policy.speedup, policy.no_gain) == (5000.0, 1.0, KEPT)
    assert raw.cost is None and "crash" in raw.detail
    assert computed == [(BROKEN, "policy:mine"), (BROKEN, "raw:mine")]


def test_the_raw_policy_alone_looks_at_no_other_state(compare, bench, monkeypatch):
    asked: list[Sequence[Job]] = []
    monkeypatch.setattr(type(bench), "evaluate", lambda self, jobs: asked.append(jobs))
    monkeypatch.setattr(type(bench), "measure", lambda self, jobs: [self.call(job.call) for job in jobs])
    [raw] = compare("set_0_3 set_0_1 stop", methods=("raw:mine",))[0].rows
    assert (raw.method, raw.cost, asked) == ("raw:mine", 5000.0, [])


def solved(environment, bench, uri, schedule):
    task = environment.task(uri)
    conditions = Conditions(environment, bench, Budget(8), 0, Validator(bench, 3, 0))
    method = RolledOut("policy:mine", RawPolicy("raw:mine", follows(task, schedule)))
    return method.solve(conditions, task)


class Lying:
    """Answers of a cost cache, with states that look better than they are."""

    def __init__(self, bench: Any, lies: dict[str, float]) -> None:
        self._bench, self._lies = bench, lies

    def evaluate(self, jobs: Sequence[Job]) -> list[Measurement]:
        lied = {key: Measurement(Outcome.OK, (cost,)) for key, cost in self._lies.items()}
        return [lied.get(job.schedule) or self._bench.call(job.call) for job in jobs]


@pytest.mark.parametrize(
    ("uri", "schedule", "liar", "reported", "cost"),
    [
        pytest.param(HARD, "set_0_3 set_0_1 stop", "(1, 0)", "set_0_3 set_0_1 stop", 5000.0, id="final"),
        pytest.param(HARD, "set_0_1 set_0_3 stop", "(1, 0)", "set_0_1 set_0_3 stop", 3000.0, id="on the way"),
        pytest.param("toy://easy", "set_1_3 set_0_3 stop", "(0, 3)", "", 3000.0, id="both slower"),
    ],
)
def test_a_state_that_looks_better_by_noise_alone_is_not_reported(
    environment, bench, monkeypatch, uri, schedule, liar, reported, cost
):
    monkeypatch.setattr(type(bench), "evaluator", Lying(bench, {liar: 1.0}))
    row = solved(environment, bench, uri, schedule).row
    assert (row.schedule, row.cost, row.best_seen) == (reported, cost, 1.0)


def test_a_state_that_was_lucky_when_it_was_chosen_does_not_displace_a_better_one(
    environment, bench, monkeypatch
):
    lucky = [1.0] * 4  # once when the way is looked at, and in the three rounds in turn with the final state

    def measure(self: Any, jobs: Sequence[Job]) -> list[Measurement]:
        if lucky and jobs[0].schedule == "(1, 0)":
            return [Measurement(Outcome.OK, (lucky.pop(),))]
        return [self.call(job.call) for job in jobs]

    monkeypatch.setattr(type(bench), "evaluator", Lying(bench, {"(1, 0)": lucky.pop()}))
    monkeypatch.setattr(type(bench), "measure", measure)
    row = solved(environment, bench, HARD, "set_0_1 set_0_3 stop").row
    assert (row.cost, row.schedule, lucky) == (3000.0, "set_0_1 set_0_3 stop", [])


def test_where_the_final_state_does_not_run_another_is_reported(environment, bench, monkeypatch):
    def measure(self: Any, jobs: Sequence[Job]) -> list[Measurement]:
        broken = [Measurement(Outcome.CRASH, detail="broken")]
        return broken if jobs[0].schedule == "(3, 2)" else [self.call(job.call) for job in jobs]

    monkeypatch.setattr(type(bench), "measure", measure)
    found = solved(environment, bench, HARD, "set_0_3 set_1_2 stop")
    assert (found.row.schedule, found.row.cost, found.raw) == ("set_0_3", 3000.0, None)
    monkeypatch.setattr(type(environment.task(HARD)), "gradual", False)
    found = solved(environment, bench, HARD, "set_0_3 set_1_2 stop")
    assert (found.row.no_gain, found.row.cost, found.row.best_seen) == (KEPT, 6000.0, 6000.0)


def printed(comparison: Comparison) -> str:
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(table(comparison))
    return " ".join(console.export_text().split())


def test_both_have_a_column_of_their_own_and_what_was_kept_is_said(compare):
    comparison, _ = compare(WORSE, "toy://easy", ("base", "policy:mine"))
    text = printed(comparison)
    assert "1.00x* 0.67" in text and "0.75x 0.50" in text and "1 (1*)" in text
    assert f"*: {KEPT}." in text and "A raw policy's result is its final state" in text
    assert "*" not in printed(compare("set_0_3 stop")[0])


def test_saved_results_and_the_report_have_both(compare):
    comparison, _ = compare(WORSE, "toy://easy")
    data = json.loads(json.dumps(comparison.to_json()))
    assert Comparison.from_json(data) == comparison
    assert [(row["method"], row["speedup"], row["no_gain"]) for row in data["rows"]] == [
        ("policy:mine", 1.0, KEPT),
        ("raw:mine", 0.75, ""),
    ]
    assert {method: line["no_gain"] for method, line in data["summary"].items()} == {
        "policy:mine": 1,
        "raw:mine": 0,
    }
    for page in (summary_table(comparison), rows_table(comparison)):
        assert "policy:mine" in page and "raw:mine" in page
    assert f"({KEPT})" in rows_table(comparison) and "1 (1*)" in summary_table(comparison)


def test_a_comparison_that_is_resumed_takes_both_over(compare):
    done, _ = compare(WORSE, "toy://easy")
    again, computed = compare(WORSE, "toy://easy", done=done)
    assert (again.rows, computed) == (done.rows, [])
    missing = Comparison.from_json({**done.to_json(), "rows": done.to_json()["rows"][:1]})
    again, computed = compare(WORSE, "toy://easy", done=missing)
    assert computed == [("toy://easy", "raw:mine")] and again.rows[1].cost == done.rows[1].cost


@pytest.mark.parametrize("method", ["policy:theirs", "raw:theirs", "guided:theirs"])
def test_a_policy_of_other_actions_loses_only_its_rows(environment, bench, method):
    shipped = ENVIRONMENTS.load("loops").policies()["default"]
    theirs = method.replace("theirs", str(shipped))
    plan = ComparisonPlan(environment, (HARD, "toy://easy"), ("base", theirs), Budget(8))
    comparison = run_comparison(plan, bench, PolicyFiles(environment))
    base = [row for row in comparison.rows if row.method == "base"]
    lost = [row for row in comparison.rows if row.method != "base"]
    assert [row.cost for row in base] == [6000.0, 3000.0]
    assert len(lost) == 2 * len(with_raw([theirs]))
    for row in lost:
        assert row.cost is None and "only the policy has analytical, up, down" in row.detail
        assert "swap_up, swap_down and 6 others; only the task has set): choose" in row.detail
    with pytest.raises(UnsuitedPolicyError, match="trained on other actions"):
        run_comparison(replace(plan, methods=(theirs,)), bench, PolicyFiles(environment))
