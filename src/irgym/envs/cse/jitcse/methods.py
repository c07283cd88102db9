"""Methods as the JIT CSE gymnasium knows them: a score, and what is told of each candidate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from irgym.base.errors import IrgymError

TYPES = ("int", "long", "float", "double", "struct", "simd")
"""Types of values by their numbers, from 1 on; 0 and those beyond are others."""

NUMBERS = (
    *("cost_ex", "cost_sz", "use_count", "def_count", "use_wt_cnt", "def_wt_cnt"),
    *("distinct_locals", "local_occurrences", "enreg_count"),
)
"""What is told of a candidate in numbers."""

SIGNS = ("can_apply", "live_across_call", "const", "shared_const", "make_cse", "has_call", "containable")
"""What is true of a candidate or not."""

COLUMNS = (*(f"type_{name}" for name in TYPES), *SIGNS, *NUMBERS)
"""The columns of an observation."""


class CompileFailed(IrgymError):
    """A method cannot be compiled, or not with such choices."""


@dataclass(frozen=True)
class CseCandidate:
    """A candidate, as it is after some choices.

    Attributes:
        index: Its place.
        type: Number of its type; see `TYPES`.
        signs: `SIGNS` by name.
        numbers: `NUMBERS` by name.
    """

    index: int
    type: int
    signs: Mapping[str, bool]
    numbers: Mapping[str, float]

    @property
    def can_apply(self) -> bool:
        """Whether it may be shared: it is none yet."""
        return self.signs["can_apply"]

    @property
    def row(self) -> list[float]:
        """Its row of an observation; see `COLUMNS`."""
        kinds = [float(place == self.type) for place in range(1, len(TYPES) + 1)]
        return [
            *kinds,
            *(float(self.signs[name]) for name in SIGNS),
            *(self.numbers[name] for name in NUMBERS),
        ]


@dataclass(frozen=True)
class CompiledMethod:
    """A method after some choices.

    Attributes:
        index: What the method is called by.
        name: Its name.
        perf_score: Its score: less is better.
        cse_candidates: Its candidates.
        cses_chosen: The candidates that are shared, in the order of the choices.
    """

    index: str
    name: str
    perf_score: float
    cse_candidates: tuple[CseCandidate, ...]
    cses_chosen: tuple[int, ...]


class Compiler(Protocol):
    """What compiles methods with choices."""

    def compile(self, index: str, chosen: Sequence[int] | None) -> CompiledMethod:
        """Compile a method.

        Args:
            index: What the method is called by.
            chosen: The candidates that are to be shared; None for what the compiler's own test of costs lets
                pass.

        Raises:
            CompileFailed: It cannot be compiled so.
        """
        ...

    def close(self) -> None:
        """End the processes that it runs."""
        ...
