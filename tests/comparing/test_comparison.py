import io
import json
import math
from dataclasses import replace

import pytest
from observers import Given, Kept
from rich.console import Console

from irgym.base.errors import IrgymError, StorageError
from irgym.comparing.comparison import ComparisonPlan, run_comparison
from irgym.comparing.method_names import parse_method, policy_of
from irgym.comparing.results import Comparison
from irgym.comparing.rows import Row, like
from irgym.comparing.summary import summarise
from irgym.core.baseline import Baseline, Tuning
from irgym.judging.judge import Judge
from irgym.judging.patience import ENDLESS
from irgym.judging.plan import SEARCHING
from irgym.judging.statistics import Verdict
from irgym.reporting.tables import table
from irgym.search.budget import Budget
from irgym.search.run import run_search

GIVEN = ["base", "random", "evolutionary", "policy:mine", "guided:mine", "numpy", "other", "absent"]
METHODS = [*GIVEN[:4], "raw:mine", *GIVEN[4:]]


@pytest.fixture
def compare(environment, bench, load_policy):
    def run(uris=("toy://easy", "toy://hard"), methods=GIVEN, **options):
        plan = ComparisonPlan(environment, tuple(uris), tuple(methods), Budget(16))
        return run_comparison(plan, bench, Given(load_policy), **options)

    return run


def row_of(comparison, method, program="toy://hard"):
    [row] = [row for row in comparison.rows if (row.method, row.program) == (method, program)]
    return row


def printed(comparison, width=200):
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(table(comparison))
    return console.export_text()


def test_every_program_and_method_has_one_row(compare):
    seen = Kept()
    comparison = compare(observer=seen)
    rows = [(row.program, row.method) for row in comparison.rows]
    assert rows == [(program, method) for program in ("toy://easy", "toy://hard") for method in METHODS]
    assert seen.computed == [row for row in rows if row[1] != "raw:mine"], "the policy's own run has it"
    assert [len(comparison.rows) for comparison in seen.recorded[2:5]] == [3, 5, 6], "both are kept at once"


def test_a_method_named_twice_runs_once(compare):
    comparison = compare(("toy://easy", "toy://hard", "toy://easy"), ("base", "numpy", "base"))
    [base, numpy] = summarise(comparison.rows)
    assert (base.programs, base.failed, numpy.programs, numpy.failed) == (2, 0, 2, 0)


def test_searches_find_the_optimum_and_say_so(compare):
    row = row_of(compare(), "evolutionary")
    assert row.cost == 1000.0 and row.speedup == 6.0 and row.validated
    assert row.baseline_ratio == pytest.approx(2.0)
    assert row.evaluations == 16 and row.seconds > 0
    assert sorted(row.schedule.split()) == ["set_0_3", "set_1_2"]


def test_a_policy_may_lead_a_tree_search(compare, environment, load_policy):
    task = environment.task("toy://hard")
    led, alone = (
        parse_method(name, environment, lambda policy: load_policy(policy, task))
        for name in ("mcts:mine,rollout=2", "mcts")
    )
    assert policy_of(led) == "mine" and led.policy is not None
    assert policy_of(alone) == "" and alone.policy is None
    row = row_of(compare(methods=[led.name]), led.name)
    assert row.cost == 1000.0 and row.evaluations == 16


def test_base_and_baselines(compare):
    comparison = compare()
    base, numpy, other = (row_of(comparison, method) for method in ("base", "numpy", "other"))
    assert (base.speedup, base.cost, base.schedule, base.evaluations) == (1.0, 6000.0, "", 0)
    assert (numpy.speedup, numpy.baseline_ratio) == (3.0, 1.0)
    assert (other.speedup, other.baseline_ratio) == (1.5, 0.5)
    assert other.detail == "numpy 9, 1 thread"


def test_failures_get_a_row_and_the_rest_goes_on(compare):
    comparison = compare(uris=["toy://broken", "toy://wrong", "toy://easy"])
    assert "not installed" in row_of(comparison, "absent", "toy://easy").detail
    assert "crash" in row_of(comparison, "raw:mine", "toy://broken").detail
    assert "wrong results" in row_of(comparison, "policy:mine", "toy://wrong").detail
    assert "wrong results" in row_of(comparison, "evolutionary", "toy://wrong").detail
    assert row_of(comparison, "evolutionary", "toy://broken").speedup == 1.0
    failed = {line.method: line.failed for line in comparison.summary}
    assert failed["absent"] == 3 and failed["raw:mine"] == 2 and failed["policy:mine"] == 1
    assert failed["base"] == 0
    text = printed(comparison)
    assert "failed" in text and "pip install 'absent[all]'" in text


def test_json_round_trip_and_its_keys(compare):
    comparison = compare()
    data = json.loads(json.dumps(comparison.to_json(), allow_nan=False))
    assert Comparison.from_json(data) == comparison
    keys = {"program", "method", "cost", "speedup", "baseline_ratio", "seconds", "evaluations", "validated"}
    assert all(keys <= set(row) for row in data["rows"])
    assert set(data["summary"]) == set(METHODS)
    assert data["summary"]["evolutionary"]["speedup"]["n"] == 2
    assert data["summary"]["absent"]["speedup"] is None
    assert data["machine"] and data["settings"]["date"]


@pytest.mark.parametrize(
    "data", [None, [], {}, {"rows": 3, "baseline": "numpy"}, {"baseline": None, "rows": [{}]}]
)
def test_other_json_is_refused_in_a_sentence(data):
    with pytest.raises(StorageError, match="not a comparison"):
        Comparison.from_json(data)


def test_traces_of_searches_are_kept(compare):
    comparison = compare(methods=["base", "random", "guided:mine"])
    assert {(trace.program, trace.method) for trace in comparison.traces} == {
        (program, method) for program in comparison.programs for method in ("random", "guided:mine")
    }
    for trace in comparison.traces:
        costs = [cost for _, _, cost in trace.points]
        assert costs == sorted(costs, reverse=True) and trace.points[-1][1] <= trace.end_s


@pytest.mark.parametrize(
    ("methods", "words"),
    [
        (["nonsense"], "there is no method 'nonsense'"),
        (["guided"], "needs a policy"),
        (["policy:"], "names no policy"),
        (["policy:yours"], "there is no policy 'yours'"),
        ([], "nothing to compare"),
    ],
)
def test_bad_methods_are_refused_before_anything_runs(compare, methods, words):
    with pytest.raises(IrgymError, match=words):
        compare(methods=methods)


def test_unknown_programs_are_refused(compare):
    with pytest.raises(IrgymError, match="does not exist"):
        compare(uris=["toy://nowhere"])


def rows(method, speedups, costs=None):
    costs = costs or [1000.0 / speedup for speedup in speedups]
    return [
        Row(f"toy://{place}", method, cost, speedup, speedup / 2, 1.0, 5, True)
        for place, (speedup, cost) in enumerate(zip(speedups, costs, strict=True))
    ]


def test_summary_means_verdicts_and_ties():
    lines = summarise(
        [*rows("base", [1.0] * 4), *rows("good", [3.0, 4.0, 3.5, 3.2]), *rows("near", [3.0, 3.9, 3.4, 3.3])]
    )
    base, good, near = lines
    assert base.verdict is Verdict.SLOWER and base.speedup.mean == 1.0
    assert good.speedup.mean == pytest.approx(math.prod([3.0, 4.0, 3.5, 3.2]) ** 0.25)
    assert good.verdict is Verdict.FASTER and good.to_best.mean == pytest.approx((3.2 / 3.3) ** 0.25)
    assert near.to_best.verdict is Verdict.TIE and base.to_best.verdict is Verdict.SLOWER


def test_the_best_is_taken_program_by_program_and_failures_do_not_count():
    lucky = rows("lucky", [9.0, 9.0, 9.0])
    lucky = [lucky[0], *(replace(row, cost=None, speedup=None, baseline_ratio=None) for row in lucky[1:])]
    lines = summarise([*rows("steady", [2.0, 2.0, 2.0]), *lucky])
    assert lines[0].to_best.mean == pytest.approx((2 / 9) ** (1 / 3)) and lines[1].failed == 2
    assert lines[1].to_best.n == 1 and lines[1].to_best.mean == 1.0


def test_table_says_what_the_numbers_refer_to(compare):
    text = printed(compare(methods=["base", "evolutionary", "random", "numpy"]))
    for words in ("6.00x", "geometric means", "a toy <machine>", "3 rounds", "16 evaluations", "best", "tie"):
        assert words in text


def test_a_baseline_that_tunes_takes_trials_and_more_time_and_tells(monkeypatch, environment, bench):
    calls: list[tuple[str, float | None]] = []
    answered = bench.call

    def call(call, timeout_s=None, told=None):
        if call.function == "toy:versus" and told is not None:
            calls.append((call.arguments[0], timeout_s))
            told("trial 1")
            call = replace(call, arguments=("other", *call.arguments[1:]))
        return answered(call)

    monkeypatch.setattr(bench, "call", call)
    tuned = Baseline("tvm", "1 thread", options=Tuning())
    monkeypatch.setattr(type(environment), "baselines", (*environment.baselines, tuned))
    plan = ComparisonPlan(environment, ("toy://hard",), ("tvm", "tvm:trials=256"), Budget(1))
    seen = Kept()
    rows = run_comparison(plan, bench, observer=seen).rows
    assert [(row.method, row.validated) for row in rows] == [("tvm", True), ("tvm:trials=256", True)]
    assert calls == [("tvm", 900.0), ("tvm:trials=256", 3600.0)]
    assert ("toy://hard", "tvm:trials=256, trial 1") in seen.computed
    with pytest.raises(IrgymError, match="trials of tvm is '0'"):
        run_comparison(replace(plan, methods=("tvm:trials=0",)), bench)


def test_ratios_follow_from_the_costs_beside_them(compare):
    data = json.loads(json.dumps(compare().to_json()))
    timed = [row for row in data["rows"] if row["evaluations"] is not None and row["cost"]]
    assert len(timed) > 4 and all(row["speedup"] == row["original_cost"] / row["cost"] for row in timed)
    for row in timed:
        assert row["baseline_cost"] > 0 and row["cost_beside_baseline"] > 0


def test_rows_of_the_same_program_are_ties():
    base = Row("toy://0", "base", 100.0, 1.0, 2.0, 0.0, 0, True, original_cost=100.0)
    kept = Row("toy://0", "random", 148.0, 1.0, 1.4, 1.0, 5, True, no_gain="kept", original_cost=148.0)
    other = Row("toy://0", "onnxsim", 50.0, 2.0, 1.0, 1.0, None, True)
    first = Row("toy://0", "ort", 60.0, 1.6, 1.0, 1.0, None, True, original_cost=100.0)
    itself = Row("toy://0", "taso", 90.0, 1.48, None, 1.0, 5, True, "stop", noise_low=0.9, noise_high=1.1)
    rows = [base]
    for row in (kept, other, first, itself):
        rows.append(like(row, rows, "ort"))
    assert [row.cost for row in rows] == [100.0, 100.0, 50.0, 60.0, 60.0]
    assert [row.baseline_ratio for row in rows] == [2.0, 2.0, 1.0, 1.0, None]
    assert rows[4].speedup == 1.6 and rows[4].original_cost == 100.0
    lines = {line.method: line for line in summarise(rows)}
    assert lines["taso"].to_best == lines["ort"].to_best and lines["taso"].speedup == lines["ort"].speedup
    elsewhere = replace(kept, program="toy://1")
    assert (
        like(elsewhere, rows, "ort") == elsewhere
        and like(replace(itself, cost=None), rows, "ort").cost is None
    )


def test_the_time_of_a_search_is_that_of_its_checks_too(environment, bench, load_policy, monkeypatch):
    searched, checked = [], []

    def search(strategy, task, evaluator, request):
        searched.append(request.budget)
        return run_search(strategy, task, evaluator, request)

    def best_of(judge, found):
        checked.append(judge.patience)
        return real(judge, found)

    real = Judge.best_of
    monkeypatch.setattr("irgym.comparing.methods.run_search", search)
    monkeypatch.setattr(Judge, "best_of", best_of)
    for budget in (Budget(16, 9.0), Budget(16)):
        plan = ComparisonPlan(environment, ("toy://easy",), ("random", "numpy"), budget)
        run_comparison(plan, bench, Given(load_policy))
    timed, free = searched
    assert timed.evaluations == free.evaluations == 16 and free.seconds is None
    assert SEARCHING * 9.0 <= timed.seconds < 9.0
    hurried, endless = checked
    assert 0.0 < hurried.whole_s <= 9.0 and endless == ENDLESS
