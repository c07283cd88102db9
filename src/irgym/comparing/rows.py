"""Rows of a comparison: the result of a method on a program."""

from collections.abc import Mapping
from dataclasses import dataclass, field
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
        speedup: Cost of the original program over `cost`.
        baseline_ratio: The baseline's time over ours; above 1, we are faster. None without a baseline.
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
