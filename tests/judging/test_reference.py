"""Comparisons against a default schedule, under several objectives, kept while they run."""

import io
import json
import math
from copy import copy

import pytest
from observers import Kept
from passes import URIS, PassBench, PassEnvironment
from rich.console import Console

from irgym.base.errors import IrgymError
from irgym.comparing.comparison import ComparisonPlan, run_comparison
from irgym.comparing.method_names import parse_method
from irgym.comparing.methods import Pipelined
from irgym.comparing.results import Comparison
from irgym.comparing.rows import Row
from irgym.comparing.summary import FLOOR, summarise
from irgym.core.objective import TIME
from irgym.envs.hlo.task import FLOPS, OPS
from irgym.judging.finding import gain_ratio, over
from irgym.judging.reference import default_schedules, reference_of
from irgym.judging.statistics import Verdict
from irgym.judging.units import cost_text
from irgym.reporting.html import further_tables, rows_table, summary_table
from irgym.reporting.tables import table
from irgym.search.budget import Budget

METHODS = ["base", "core", "greedy"]
LATE = URIS[3]


@pytest.fixture
def bench():
    return PassBench()


@pytest.fixture
def compare(bench):
    def run(uris=URIS, methods=METHODS, budget=None, done=None, observer=None, **options):
        plan = ComparisonPlan(
            PassEnvironment(), tuple(uris), tuple(methods), budget or Budget(200), **options
        )
        return run_comparison(plan, bench, observer=observer, done=done)

    return run


def cells(comparison):
    return {(row.program, row.method): row for row in comparison.rows}


def printed(comparison):
    console = Console(width=220, record=True, file=io.StringIO())
    console.print(table(comparison))
    return " ".join(console.export_text().split())


def test_the_default_schedule_is_a_method(compare):
    row = cells(compare())[URIS[0], "core"]
    assert (row.cost, row.schedule) == (114.0, "fold0 fold1 fold2 fold3")
    assert row.reference_ratio == row.gain_ratio == 1.0 and row.evaluations == 0 and row.validated


def test_ratios_to_the_reference(compare):
    row = cells(compare())[URIS[0], "greedy"]
    assert row.cost == 100.0 and row.speedup == pytest.approx(1.67)
    assert row.reference_ratio == pytest.approx(1.14) == row.reference_cost / row.cost
    assert row.gain_ratio == pytest.approx((167 - 100) / (167 - 114))
    base = cells(compare())[URIS[0], "base"]
    assert base.gain_ratio == 0.0 and base.reference_ratio == pytest.approx(114 / 167)


def test_programs_that_the_reference_does_not_improve_are_left_out_and_counted(compare):
    comparison = compare()
    assert cells(comparison)[LATE, "greedy"].gain_ratio is None
    greedy = comparison.summary[METHODS.index("greedy")]
    assert greedy.gain_ratio.n == 3 and greedy.reference_ratio.n == 4
    assert "1 of 4 programs are left out" in printed(comparison)


def test_gain_ratios_below_the_floor_count_as_the_floor():
    rows = [
        Row(f"p{place}", "m", 1.0, 1.0, None, 1.0, 1, True, gain_ratio=gain, family="f", reference_ratio=1.0)
        for place, gain in enumerate([-0.5, 0.0, 1.0])
    ]
    [line] = summarise(rows)
    assert line.gain_ratio.mean == pytest.approx((FLOOR * FLOOR) ** (1 / 3))
    assert line.families["f"] == line.gain_ratio


@pytest.mark.parametrize(
    ("costs", "ratio"), [((100, 80, 70), 1.5), ((100, 80, 100), 0.0), ((100, 80, 110), -0.5)]
)
def test_gain_ratio(costs, ratio):
    assert gain_ratio(*costs) == pytest.approx(ratio)


def test_gain_ratio_of_a_reference_without_gain_and_ratios_of_zero():
    assert gain_ratio(100.0, 100.0, 50.0) is None and gain_ratio(100.0, 120.0, 50.0) is None
    assert gain_ratio(math.nan, 80.0, 50.0) is None
    assert over(0.0, 0.0) == 1.0 and over(3.0, 0.0) == math.inf and over(3.0, 2.0) == 1.5


def test_a_single_exact_difference_is_no_tie(compare):
    comparison = compare(uris=URIS[:1], methods=["base", "core"])
    assert comparison.noise == 0.0
    assert [line.verdict for line in comparison.summary] == [Verdict.SLOWER, Verdict.TIE]
    text = printed(comparison)
    assert "worse" in text and "their costs are exact" in text and "Costs are in" not in text


def test_families_have_a_table(compare):
    comparison = compare()
    assert list(comparison.summary[2].families) == ["gpt2", "mlp"]
    assert comparison.summary[2].families["mlp"].n == 2
    text = printed(comparison)
    assert "gain ratio by family" in text and "mlp (2)" in text


def test_other_objectives_are_measured_once_for_each_distinct_program(compare, bench):
    comparison = compare(uris=URIS[:1], also=("time",))
    row = cells(comparison)[URIS[0], "greedy"]
    assert row.also["time"].cost == 1000.0 and row.also["time"].speedup == pytest.approx(1.67)
    assert row.also["time"].reference_ratio == pytest.approx(1.14)
    measured = [(job.objective, job.schedule) for job in bench.measured]
    assert {objective for objective, _ in measured} == {"time"}
    assert len(measured) == 3 * len(set(measured)) == 9
    text = printed(comparison)
    assert "time of the same schedules" in text and "least of 3 measurements" in text
    assert comparison.summary[2].also["time"].speedup.mean == pytest.approx(1.67)


def test_the_objective_can_be_chosen(compare):
    comparison = compare(uris=URIS[:1], objective="time", budget=Budget(40))
    row = cells(comparison)[URIS[0], "greedy"]
    assert comparison.objective.name == "time" and row.cost == 1000.0 and comparison.noise > 0.0
    assert row.gain_ratio == pytest.approx((167 - 100) / (167 - 114))
    text = printed(comparison)
    assert "Costs are in ns." in text and "measured again" in text


def test_known_costs_are_not_measured_and_equal_programs_are_validated_once(compare, bench):
    compare(uris=URIS[:1], methods=["base", "core", "greedy", "greedy2", "beam"])
    assert not bench.measured
    assert bench.calls.count("validate") == 3  # core's program, the optimum, and the original


def test_validation_can_be_left_out_and_the_table_says_so(compare, bench):
    comparison = compare(validation_inputs=0)
    assert "validate" not in bench.calls and not any(row.validated for row in comparison.rows)
    assert "not validated" in printed(comparison)
    assert "checked on 1 random input and" in printed(compare())


def test_wrong_results_fail(compare):
    uri = "passes://wrong/40-0-20-0-0-7-0-0"
    rows = cells(compare(uris=[uri]))
    assert rows[uri, "greedy"].cost is None and "wrong results" in rows[uri, "greedy"].detail
    assert rows[uri, "base"].validated


def test_json_round_trip(compare):
    comparison = compare(also=("time",))
    data = json.loads(json.dumps(comparison.to_json(), allow_nan=False))
    assert Comparison.from_json(data) == comparison
    assert data["settings"]["objective"] == "ops"
    assert [objective["timed"] for objective in data["settings"]["objectives"]] == [False, True]
    assert data["rows"][0]["also"]["time"]["cost"] == 1670.0


def test_results_are_recorded_row_by_row(compare):
    seen = Kept()
    comparison = compare(uris=URIS[:2], observer=seen)
    # The whole comes once more at the end.
    assert [len(partial.rows) for partial in seen.recorded] == [1, 2, 3, 4, 5, 6, 6]
    assert len(comparison.rows) == 6


def test_a_resumed_comparison_computes_only_what_is_missing(compare, bench):
    whole = compare(uris=URIS[:2])
    first = compare(uris=URIS[:1])
    seen = Kept()
    resumed = compare(uris=URIS[:2], done=first, observer=seen)
    assert seen.computed == [(URIS[1], method) for method in METHODS]
    assert [row.cost for row in resumed.rows] == [row.cost for row in whole.rows]
    assert resumed.traces[0] == first.traces[0]
    with pytest.raises(IrgymError, match="evaluations = 200, not 7"):
        compare(done=first, budget=Budget(7))


def test_html_tables_have_all_of_it(compare):
    comparison = compare(also=("time",))
    text = summary_table(comparison) + further_tables(comparison) + rows_table(comparison)
    for words in ("ratio to core", "gain ratio", "improvement", "gpt2 (1)", "time of the same schedules"):
        assert words in text


def test_methods_name_default_schedules():
    assert parse_method("core", PassEnvironment(), lambda _: None) == Pipelined("core")
    with pytest.raises(IrgymError, match="base, core, random"):
        parse_method("nonsense", PassEnvironment(), lambda _: None)


@pytest.mark.parametrize(
    ("value", "objective", "text"),
    [(10736.0, OPS, "10736"), (1.5e12, FLOPS, "1.5e+12"), (2500.0, TIME, "2.5 us"), (0.0, OPS, "0")],
)
def test_costs_are_written_with_their_units(value, objective, text):
    assert cost_text(value, objective) == text


def test_an_environment_chooses_the_reference_and_the_beginnings_by_objective(bench):
    class Chooses(PassEnvironment):
        def reference(self, objective):
            return None if objective.timed else super().reference(objective)

        def beginnings(self, objective):
            return ("core",) if objective.timed else super().beginnings(objective)

    exact = PassEnvironment().task(URIS[0])
    timed = copy(exact)
    timed.objective = TIME
    assert reference_of(Chooses(), bench, exact).name == "core" and default_schedules(Chooses(), exact)
    assert reference_of(Chooses(), bench, timed) is None
    assert default_schedules(Chooses(), timed) == [exact.pipeline("core")]
    assert default_schedules(PassEnvironment(), timed) == []
