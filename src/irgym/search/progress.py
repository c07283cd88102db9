"""Progress of a search, as observers see it."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class SearchProgress:
    """State of a running search.

    Attributes:
        evaluations: Number of distinct states evaluated.
        best_cost: Least cost so far; infinite until an evaluation succeeds.
        first_cost: Cost of the original program; infinite until it is known.
        seconds_left: Remaining time; None if only the number of evaluations is limited.
    """

    evaluations: int
    best_cost: float
    first_cost: float
    seconds_left: float | None


OnProgress = Callable[[SearchProgress], None]
