"""Findings: optimised programs with their cost, validation and comparison with a baseline."""

import math
from dataclasses import dataclass, field
from typing import Any

from irgym.core.baseline import Versus
from irgym.core.cost import Validation
from irgym.core.schedule import Candidate, Schedule


@dataclass(frozen=True)
class Finding:
    """An optimised program, measured and validated after the search. Costs are of one objective.

    Attributes:
        actions: Schedule of the program.
        state: State of the task after the schedule.
        cost: Cost measured after the search, not the least cost that the search saw.
        cost_as_written: Cost of the original program, measured in the same way.
        validation: Comparison with the original program; None if validation was off.
        baseline: Name of the environment's baseline; None without one, and for costs that are no times.
        versus: Timings in turn with the baseline; None without one, or if it cannot compute the program.
        peak: Timings in turn with the machine's peak; None if no peak bounds the cost.
        no_baseline: Reason why the baseline cannot compute the program; else empty.
        running: How to run the program, in words; empty if there is nothing to choose.
        no_gain: Sentence for the user if the search found nothing better than the original program, or
            nothing better than the baseline; else empty.
        is_baseline: Whether this is the baseline itself, so that timings of the two in turn are noise.
        left_out: Action candidates that the search chose and whose effect no check could see.
        rejected: For each better program with wrong results, or that failed, a sentence that says why.
        interrupted: What the checks were at when an interrupt ended them, in words; else empty.
    """

    actions: Schedule = field(repr=False)
    state: Any = field(repr=False, compare=False)
    cost: float
    cost_as_written: float
    validation: Validation | None
    baseline: str | None
    versus: Versus | None
    peak: Versus | None = None
    no_baseline: str = ""
    running: str = ""
    no_gain: str = ""
    is_baseline: bool = False
    left_out: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    interrupted: str = ""

    @property
    def candidate(self) -> Candidate:
        """The program as a candidate."""
        return Candidate(self.state, self.actions)

    @property
    def speedup(self) -> float:
        """Original cost over the cost; infinite if only the cost is 0."""
        return over(self.cost_as_written, self.cost)

    @property
    def improved(self) -> bool:
        """Whether the program costs less than the original."""
        return self.cost < self.cost_as_written

    @property
    def validated(self) -> bool:
        """Whether the results agree with the original program's, and wrong ones would not have."""
        return self.validation is not None and self.validation.checked

    @property
    def baseline_ratio(self) -> float | None:
        """Median of the baseline's time over ours; above 1, irgym is faster. None for the baseline itself."""
        return None if self.versus is None or self.is_baseline else self.versus.ratio

    @property
    def baseline_noise(self) -> tuple[float, float] | None:
        """Least and greatest ratio of the baseline timed in turn with itself; None for other programs."""
        if self.versus is None or not self.is_baseline:
            return None
        return min(self.versus.ratios), max(self.versus.ratios)

    @property
    def peak_share(self) -> float | None:
        """Median share of the machine's peak."""
        return None if self.peak is None else self.peak.ratio


def over(first: float, second: float) -> float:
    """Return a ratio of costs, which may be counts of 0."""
    if second == 0.0:
        return 1.0 if first == 0.0 else math.inf
    return first / second


def gain_ratio(first: float, reference: float, cost: float) -> float | None:
    """Return our cost reduction over the reference's (arXiv 2308.14364); None if the reference has none.

    Args:
        first: Cost of the original program.
        reference: Cost after the reference pipeline.
        cost: Our cost.
    """
    return (first - cost) / (first - reference) if reference < first else None
