"""Methods over all programs: geometric means of what their rows say."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from irgym.comparing.rows import Row, Side
from irgym.judging.statistics import NOISE, Interval, Verdict, geometric_interval

FLOOR = 0.01
"""Least gain ratio in a geometric mean: what a method counts with that gains nothing, or loses."""


@dataclass(frozen=True)
class SideSummary:
    """A method over all programs, under another objective.

    Attributes:
        speedup: Over the original programs.
        reference_ratio: Over the reference pipeline; None without a reference.
    """

    speedup: Interval | None
    reference_ratio: Interval | None


@dataclass(frozen=True)
class Summary:
    """A method over all programs.

    Attributes:
        method: Name of the method.
        programs: Programs that it was run on.
        failed: How many of them it failed on; they are left out of the following.
        no_gain: On how many of them it found nothing better than the original program, or the baseline.
        speedup: Over the original programs; None where all failed.
        baseline_ratio: Over the baseline; None without a baseline.
        verdict: What `baseline_ratio` shows; without one `reference_ratio`, without either `speedup`.
        record: On how many programs that ratio is above 1, is 1, and is below 1; None where all failed.
        to_best: The cost of the best method over this one's, on the programs that both solved.
        best_on: On how many programs no method is better.
        seconds: Mean time it took for a program.
        reference_ratio: Over the reference pipeline; None without a reference.
        gain_ratio: Reduction of the cost over the reference's, on the programs on which the reference
            reduces it; at least `FLOOR` for each program.
        families: The same for each family of programs; empty where programs are not grouped.
        also: The method under other objectives, by their names.
    """

    method: str
    programs: int
    failed: int
    no_gain: int
    speedup: Interval | None
    baseline_ratio: Interval | None
    verdict: Verdict | None
    record: tuple[int, int, int] | None
    to_best: Interval | None
    best_on: int
    seconds: float | None
    reference_ratio: Interval | None = None
    gain_ratio: Interval | None = None
    families: Mapping[str, Interval] = field(default_factory=dict[str, Interval])
    also: Mapping[str, SideSummary] = field(default_factory=dict[str, SideSummary])


def summarise(rows: Sequence[Row], noise: float = NOISE) -> list[Summary]:
    """Return a summary for each method, in the order of the rows.

    Args:
        rows: One for each program and method.
        noise: Relative difference below which a single ratio says nothing.
    """
    best: dict[str, Row] = {}
    for row in rows:
        if row.cost is not None:
            holder = best.setdefault(row.program, row)
            if (_quotient(row, holder) or 0.0) < 1.0:
                best[row.program] = row
    return [
        _summary(method, [row for row in rows if row.method == method], best, noise)
        for method in dict.fromkeys(row.method for row in rows)
    ]


def _interval(values: Iterable[float | None], noise: float) -> Interval | None:
    # A cost of 0, which counts may have, leaves no ratio.
    ratios = [value for value in values if value is not None and 0.0 < value < math.inf]
    return geometric_interval(ratios, noise=noise) if ratios else None


def _summary(method: str, rows: list[Row], best: Mapping[str, Row], noise: float) -> Summary:
    solved = {row.program: row for row in rows if row.cost is not None}
    kinds = [
        [row.mean_ratio for row in solved.values()],
        [row.reference_ratio for row in solved.values()],
        [row.speedup for row in solved.values()],
    ]
    intervals = [_interval(ratios, noise) for ratios in kinds]
    baseline_ratio, reference_ratio, speedup = intervals
    decisive = next((place for place, interval in enumerate(intervals) if interval), None)
    judged = None if decisive is None else intervals[decisive]
    to_best = [_quotient(best[program], row) for program, row in solved.items()]
    times = [row.seconds for row in solved.values() if row.seconds is not None]
    objectives = dict.fromkeys(objective for row in rows for objective in row.also)
    return Summary(
        method=method,
        programs=len(rows),
        failed=len(rows) - len(solved),
        no_gain=sum(bool(row.no_gain) for row in rows),
        speedup=speedup,
        baseline_ratio=baseline_ratio,
        verdict=judged.verdict if judged else None,
        record=None if decisive is None else _record(kinds[decisive]),
        to_best=_interval(to_best, noise),
        best_on=sum(row.cost == best[program].cost for program, row in solved.items()),
        seconds=math.fsum(times) / len(times) if times else None,
        reference_ratio=reference_ratio,
        gain_ratio=_interval(map(_floored, solved.values()), noise),
        families=_families(list(solved.values()), noise),
        also={
            objective: _side([row.also[objective] for row in rows if objective in row.also])
            for objective in objectives
        },
    )


def _record(values: Sequence[float | None]) -> tuple[int, int, int]:
    """Return how many ratios are above 1, are 1, and are below 1."""
    ratios = [value for value in values if value is not None]
    equal = sum(ratio == 1.0 for ratio in ratios)
    better = sum(ratio > 1.0 for ratio in ratios)
    return better, equal, len(ratios) - better - equal


def _floored(row: Row) -> float | None:
    return None if row.gain_ratio is None else max(FLOOR, row.gain_ratio)


def _families(rows: Sequence[Row], noise: float) -> dict[str, Interval]:
    """Return the gain ratio of each family, or the speedup where there is no reference."""
    referred = any(row.reference_ratio is not None for row in rows)
    families: dict[str, Interval] = {}
    for family in sorted({row.family for row in rows if row.family}):
        mine = [row for row in rows if row.family == family]
        interval = _interval((_floored(row) if referred else row.speedup for row in mine), noise)
        if interval is not None:
            families[family] = interval
    return families


def _side(sides: Sequence[Side]) -> SideSummary:
    # Another objective may be measured where this one is exact.
    return SideSummary(
        speedup=_interval((side.speedup for side in sides), NOISE),
        reference_ratio=_interval((side.reference_ratio for side in sides), NOISE),
    )


def _quotient(best: Row, row: Row) -> float | None:
    """Return the best cost over a row's; from shares of the peak where known, as clocks change."""
    if best.peak_share and row.peak_share:
        return row.peak_share / best.peak_share
    return best.cost / row.cost if best.cost and row.cost else None
