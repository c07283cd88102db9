"""Rows of a comparison: the result of a method on a program."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

from irgym.base.values import Range
from irgym.comparing.basis import Basis

BASE = "base"
"""The method that leaves every original program."""

POLICY, RAW = "policy", "raw"
"""Prefixes of the methods `policy:NAME` and `raw:NAME`: a policy without a search, or its final state."""

VAST = 1e30
"""Costs, times and ratios are less: what a damaged file has beyond it could not be drawn."""

Cost = Annotated[float, Range(0, VAST)]
CostOrNone = Annotated[float | None, Range(0, VAST)]
Ratio = Annotated[float | None, Range(above=0, high=VAST)]
Seconds = Annotated[float, Range(0, VAST)]
Evaluations = Annotated[int, Range(low=0)]


@dataclass(frozen=True)
class Side:
    """The cost of a row's schedule under another objective than the comparison's.

    Attributes:
        cost: The cost; None where it failed.
        speedup: Cost of the original program over it.
        reference_ratio: Cost after the reference pipeline over it; None without a reference.
    """

    cost: CostOrNone
    speedup: Ratio = None
    reference_ratio: Ratio = None


@dataclass(frozen=True)
class Row:
    """Result of a method on a program.

    Attributes:
        program: URI.
        method: Name of the method.
        cost: Cost measured after the method ended, in the objective's unit; None where it failed.
        speedup: `original_cost` over `cost`; of a baseline, the median of that ratio over the rounds in turn.
        baseline_ratio: The baseline's time over ours, the median over rounds in turn; above 1, we are faster.
            None without a baseline, and for the baseline itself.
        noise_low: For the baseline itself, the least ratio of its timings in turn with itself; else None.
        noise_high: The greatest such ratio.
        seconds: Wall-clock time that the method took, without the final measurement.
        evaluations: Candidates that it evaluated; for a policy, the states on its way that were measured.
        validated: Whether the results agree with the original program's, and wrong ones would not have.
        schedule: Text of the schedule; empty for baselines.
        detail: For a failure, why; otherwise what should be known about the numbers.
        best_seen: For a policy that is not raw, the least cost of the states that it passed through.
        peak_share: Share of the machine's peak, timed in turn with it; None where no peak bounds the cost.
        reference_ratio: Cost after the reference pipeline over ours; None without a reference.
        gain_ratio: Our reduction of the cost over the reference's, see `gain_ratio`; None without a
            reference, and where the reference reduces nothing.
        family: Family of the program; empty where programs are not grouped.
        also: The cost under other objectives, by their names.
        no_gain: See `irgym.judging.finding.Finding.no_gain`.
        not_checkable: The wrong answer that would have agreed too, in words; empty where those tried show.
        basis: What else it depends on.
        original_cost: Cost of the original program, measured in turn with `cost`; None where it failed.
        reference_cost: Cost after the reference pipeline, over which `reference_ratio` is.
        baseline_cost: Least time of the baseline in its rounds in turn with the program.
        cost_beside_baseline: Median time of the program in these rounds.
    """

    program: str
    method: str
    cost: CostOrNone
    speedup: Ratio
    baseline_ratio: Ratio
    seconds: Annotated[float | None, Range(0, VAST)]
    evaluations: Annotated[int | None, Range(low=0)]
    validated: bool
    schedule: str = ""
    detail: str = ""
    best_seen: CostOrNone = None
    peak_share: Ratio = None
    noise_low: Ratio = None
    noise_high: Ratio = None
    reference_ratio: Ratio = None
    gain_ratio: Annotated[float | None, Range(-VAST, VAST)] = None
    family: str = ""
    also: Mapping[str, Side] = field(default_factory=dict[str, Side])
    no_gain: str = ""
    not_checkable: str = ""
    basis: Basis = field(default_factory=Basis)
    original_cost: CostOrNone = None
    reference_cost: CostOrNone = None
    baseline_cost: CostOrNone = None
    cost_beside_baseline: CostOrNone = None

    @property
    def is_baseline(self) -> bool:
        """Whether it is the baseline itself."""
        return self.noise_low is not None

    @property
    def mean_ratio(self) -> float | None:
        """The ratio that counts in means: 1 for the baseline itself."""
        return 1.0 if self.is_baseline else self.baseline_ratio

    @property
    def ratio_text(self) -> str:
        """The ratio to the baseline in tables."""
        if self.is_baseline:
            return "itself"
        return "" if self.baseline_ratio is None else f"{self.baseline_ratio:.2f}"


def like(row: Row, rows: Iterable[Row], baseline: str | None) -> Row:
    """Return a row with the costs of an earlier one of the same program, so that the two are a tie.

    That is so for rows that leave the original program, and for those that are the baseline.

    Args:
        row: A new row.
        rows: The earlier ones.
        baseline: Name of the baseline that results are timed in turn with, if there is one.
    """
    kind = _kind(row, baseline)
    same = (known for known in rows if known.program == row.program and _kind(known, baseline) == kind)
    known = next(same, None) if kind else None
    if known is None:
        return row
    shared = {"cost": known.cost, "original_cost": known.original_cost, "speedup": known.speedup}
    if row.best_seen is not None and known.cost is not None:
        shared["best_seen"] = min(row.best_seen, known.cost)
    if kind == BASE:
        ratio = ("baseline_ratio", "baseline_cost", "cost_beside_baseline", "peak_share")
        shared |= {name: getattr(known, name) for name in ratio}
    return replace(row, **shared)


def _kind(row: Row, baseline: str | None) -> str:
    """Return which well-known program a row is about; empty for others and for failures."""
    if row.cost is None:
        return ""
    if row.is_baseline or (baseline is not None and row.method == baseline):
        return str(baseline)
    measured_here = row.evaluations is not None  # other baselines have no schedule either
    return BASE if measured_here and not row.schedule else ""
