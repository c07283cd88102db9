"""Baselines and default pipelines, and timings of programs in turn with a baseline."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Annotated, Protocol

from irgym.base.values import Range, check_fields

INSTALL_TORCH = "pip install 'irgym[learn]'"
"""Command that installs torch."""


TIMEOUT_S = 900.0
"""Time limit of a baseline for a program."""

ROUNDS = 15
"""Rounds of a comparison in turn with a baseline, where there is time for them."""


class BaselineOptions(Protocol):
    """Options of a baseline: the fields of a frozen dataclass, as in `tvm:trials=256`."""

    @property
    def timeout_s(self) -> float:
        """Time limit of the baseline for a program, in seconds."""
        ...


@dataclass(frozen=True)
class Tuning:
    """Options of a baseline that tunes the program itself, as in `tvm:trials=256`.

    Attributes:
        trials: Number of candidates that it measures.
    """

    trials: Annotated[int, Range(1, 1_000_000)] = 64

    def __post_init__(self) -> None:
        check_fields(self, "the baseline")

    @property
    def timeout_s(self) -> float:
        """Time limit in seconds: `TIMEOUT_S`, and longer in proportion where there are more trials."""
        return TIMEOUT_S * max(1.0, self.trials / Tuning.trials)


@dataclass(frozen=True)
class Baseline:
    """A baseline that computes the same program: numpy, torch, another compiler.

    Attributes:
        name: Name in tables.
        description: One line, with the thread count.
        remedy: The command that installs what it needs.
        any_objective: Whether it has costs under objectives that are no times too. Its `Versus` is then of
            those.
        options: Its options with their defaults; None where it has none. Tasks get its name with the options
            given, such as `tvm:trials=256`.
    """

    name: str
    description: str
    remedy: str = field(default="")
    any_objective: bool = False
    options: BaselineOptions | None = None


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
class AtSizes:
    """Timings of a baseline and of a state at one of several sizes of inputs.

    Attributes:
        sizes: The sizes, as users write them.
        share: Share of the calls that have these sizes.
        ratio: Median of the rounds' ratios, the baseline's time over the state's.
        baseline_ns: Least time of the baseline, nanoseconds.
        ours_ns: Median time of the state, nanoseconds.
    """

    sizes: str
    share: float
    ratio: float
    baseline_ns: float
    ours_ns: float


@dataclass(frozen=True)
class Versus:
    """Interleaved timings of a baseline and of a state, measured in one process.

    Attributes:
        ratios: For each round, the baseline's time over the state's: above 1, irgym is faster.
        baseline_ns: Least time of the baseline, nanoseconds.
        ours_ns: Median time of the state, nanoseconds: in the caches that the baseline leaves.
        detail: What the baseline ran on: library, kernels, threads.
        at: Timings at each of several sizes, if times are means over these; else empty.
    """

    ratios: tuple[float, ...]
    baseline_ns: float
    ours_ns: float
    detail: str
    at: tuple[AtSizes, ...] = ()

    @staticmethod
    def of(pairs: Sequence[tuple[float, float]], detail: str) -> "Versus":
        """Return what some rounds come to, each the time of the state and of the baseline in nanoseconds."""
        ratios = tuple(baseline / ours for ours, baseline in pairs)
        return Versus(ratios, min(theirs for _, theirs in pairs), median(ours for ours, _ in pairs), detail)

    @property
    def ratio(self) -> float:
        """Median of the ratios."""
        return median(self.ratios)
