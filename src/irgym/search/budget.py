"""Budgets: limits on the evaluations and the time of searches."""

import math
from dataclasses import dataclass

from irgym.base.errors import IrgymError


@dataclass(frozen=True)
class Budget:
    """Limits of a search; the first one reached ends it.

    Attributes:
        evaluations: Number of distinct states evaluated, the initial one included.
        seconds: Wall-clock time.
    """

    evaluations: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.evaluations is None and self.seconds is None:
            raise IrgymError("a search needs a budget: give a number of evaluations or of seconds")
        if self.evaluations is not None and self.evaluations < 1:
            raise IrgymError(f"a budget of {self.evaluations} evaluations is too small: give at least 1")
        if self.seconds is not None and not self.seconds > 0:
            raise IrgymError(f"a budget of {self.seconds:g} seconds is too small: give more than 0")
        if self.seconds == math.inf:
            raise IrgymError(f"a budget of {self.seconds:g} seconds has no end: give a finite number")


LEAST_S = 1e-3
"""Least time of a search, in seconds: enough for the original program and the first proposal."""


class SharedBudget:
    """Budget shared by several searches. Each gets an equal share of the remaining budget.

    Args:
        whole: Budget of all searches together.
        searches: Number of searches.
    """

    def __init__(self, whole: Budget, searches: int) -> None:
        self._evaluations = whole.evaluations
        self._seconds = whole.seconds
        self._searches = searches

    def share(self) -> Budget:
        """Return the budget of the next search."""
        evaluations, seconds, searches = self._evaluations, self._seconds, max(self._searches, 1)
        return Budget(
            None if evaluations is None else max(evaluations // searches, 1),
            None if seconds is None else max(seconds / searches, LEAST_S),
        )

    def spend(self, evaluations: int = 0, seconds: float = 0.0) -> None:
        """Subtract the spending of a finished search from the remaining budget."""
        self._searches -= 1
        if self._evaluations is not None:
            self._evaluations -= evaluations
        if self._seconds is not None:
            self._seconds -= seconds
