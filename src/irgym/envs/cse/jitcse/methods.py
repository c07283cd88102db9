"""Methods in the JIT CSE gymnasium: a score, and features of each candidate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from irgym.base.errors import IrgymError

TYPES = ("int", "long", "float", "double", "struct", "simd")
"""Types of values, numbered from 1; other numbers stand for other types."""

NUMBERS = (
    *("cost_ex", "cost_sz", "use_count", "def_count", "use_wt_cnt", "def_wt_cnt"),
    *("distinct_locals", "local_occurrences", "enreg_count"),
)
"""Numeric features of a candidate."""

SIGNS = ("can_apply", "live_across_call", "const", "shared_const", "make_cse", "has_call", "containable")
"""Boolean features of a candidate."""

COLUMNS = (*(f"type_{name}" for name in TYPES), *SIGNS, *NUMBERS)
"""The columns of an observation."""


class CompileFailed(IrgymError):
    """A method does not compile, or not with this choice."""


@dataclass(frozen=True)
class CseCandidate:
    """A candidate after some choices.

    Attributes:
        index: Its place among the candidates.
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
        """Whether it may still be shared."""
        return self.signs["can_apply"]

    @property
    def row(self) -> list[float]:
        """Its row in an observation; see `COLUMNS`."""
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
        index: Identifier of the method.
        name: Name of the method.
        perf_score: Score; lower is better.
        cse_candidates: The candidates.
        cses_chosen: The shared candidates, in the order of the choices.
    """

    index: str
    name: str
    perf_score: float
    cse_candidates: tuple[CseCandidate, ...]
    cses_chosen: tuple[int, ...]


class Compiler(Protocol):
    """A compiler of methods under a choice."""

    def compile(self, index: str, chosen: Sequence[int] | None) -> CompiledMethod:
        """Compile a method.

        Args:
            index: Identifier of the method.
            chosen: The candidates to share; None for the choice of the compiler's cost test.

        Raises:
            CompileFailed: It does not compile with this choice.
        """
        ...

    def close(self) -> None:
        """End the compiler's processes."""
        ...
