"""Baselines and default pipelines, and timings of programs in turn with a baseline."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

INSTALL_TORCH = "pip install 'irgym[learn]'"
"""Command that installs torch."""


@dataclass(frozen=True)
class Baseline:
    """A baseline that computes the same program: numpy, torch, another compiler.

    Attributes:
        name: Name in tables.
        description: One line, with the thread count.
        remedy: The command that installs what it needs.
        any_objective: Whether it has costs under objectives that are no times too. Its `Versus` is then of
            those.
    """

    name: str
    description: str
    remedy: str = field(default="")
    any_objective: bool = False


@dataclass(frozen=True)
class Pipeline:
    """A compiler's own order of its transformations, as a schedule.

    Attributes:
        name: Name in tables.
        description: One line.
    """

    name: str
    description: str


@dataclass(frozen=True)
class Versus:
    """Interleaved timings of a baseline and of a state, measured in one process.

    Attributes:
        ratios: For each round, the baseline's time over the state's: above 1, irgym is faster.
        baseline_ns: Least time of the baseline, nanoseconds.
        ours_ns: Median time of the state, nanoseconds: in the caches that the baseline leaves.
        detail: What the baseline ran on: library, kernels, threads.
    """

    ratios: tuple[float, ...]
    baseline_ns: float
    ours_ns: float
    detail: str

    @staticmethod
    def of(pairs: Sequence[tuple[float, float]], detail: str) -> "Versus":
        """Return what some rounds come to, each the time of the state and of the baseline in nanoseconds."""
        ratios = tuple(baseline / ours for ours, baseline in pairs)
        return Versus(ratios, min(theirs for _, theirs in pairs), median(ours for ours, _ in pairs), detail)

    @property
    def ratio(self) -> float:
        """Median of the ratios."""
        return median(self.ratios)
