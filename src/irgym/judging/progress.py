"""Progress of a search for the user, with a bound on the time that the checks after it take."""

import math
import time
from collections.abc import Callable
from typing import Any

from irgym.core.cost import Evaluator
from irgym.core.task import Task
from irgym.judging.patience import checks_bound, first_seconds
from irgym.judging.units import progress_text
from irgym.search.budget import Budget
from irgym.search.progress import SearchProgress

MANY = 10
"""Candidates that a search should try at least: if time is too short for them, a note says so."""


class Progress:
    """Notes where a search stands, and how long the checks after it take at most.

    Attributes:
        bound_s: That bound, known once the original program has been evaluated.
    """

    def __init__(
        self, task: Task[Any], evaluator: Evaluator, search: str, limits: Budget, note: Callable[[str], None]
    ) -> None:
        """Start the clock.

        Args:
            task: The program.
            evaluator: Answers the cost of the original program again.
            search: The search in words.
            limits: Budget of the search.
            note: Called with each line.
        """
        self.bound_s = 0.0
        self._task = task
        self._evaluator = evaluator
        self._search = search
        self._seconds = limits.seconds or math.inf
        self._note = note
        self._started = time.monotonic()

    def __call__(self, progress: SearchProgress) -> None:
        """Note the progress."""
        if not self.bound_s:
            self.bound_s = self._bound(progress.first_cost)
        words = progress_text(progress, self._task.objective)
        checks = f"then checks, at most {self.bound_s:.0f} s"
        self._note(f"{self._task.uri}: {self._search}, {words}, {checks}")

    def _bound(self, first_cost: float) -> float:
        """Return the bound on the checks, once the original program's cost is known."""
        first_s = time.monotonic() - self._started
        if math.isfinite(first_cost):  # the time for finding the cost is recorded with it
            [first] = self._evaluator.evaluate([self._task.job(self._task.initial())])
            candidate_s = first_seconds(self._task, first)
            first_s = max(first_s, candidate_s)
            if candidate_s > self._seconds / MANY:
                self._note(
                    f"{self._task.uri}: the original takes {candidate_s:.1f} s to compile and run, so the "
                    "search may try few candidates: more --seconds, or --farm local:N, try more"
                )
        return checks_bound(self._task, first_cost, first_s)
