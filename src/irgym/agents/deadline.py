"""Time limit of a training, which also holds in the middle of an iteration, and the progress within one."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

EVERY_S = 2.0
"""Seconds of an iteration, or after the last report, before its progress is reported."""


class OutOfTimeError(Exception):
    """The training's time is over; the current iteration must be dropped."""


def _silent(text: str) -> None:
    """Report nothing."""


@dataclass
class Deadline:
    """Moment at which a training stops, and where its progress within an iteration is reported.

    Attributes:
        moment: That moment on the clock of `time.monotonic`; infinite for none.
        passed: Share of the training's time that had passed before this iteration; None where the number of
            iterations limits the training.
        report: Called with a line on the progress within an iteration that takes long.
    """

    moment: float = math.inf
    passed: float | None = None
    report: Callable[[str], None] = _silent
    _iteration: int = 0
    _reported: float = 0.0

    def begin(self, iteration: int) -> None:
        """Begin an iteration, which counts from 1."""
        self._iteration, self._reported = iteration, time.monotonic()

    def check(self, activity: str = "") -> None:
        """Raise if the moment has passed; called wherever an iteration can be dropped.

        Args:
            activity: Progress in words, to be reported from time to time.

        Raises:
            OutOfTimeError: It has.
        """
        now = time.monotonic()
        if now >= self.moment:
            raise OutOfTimeError
        if activity and now - self._reported >= EVERY_S:
            self._reported = now
            self.report(f"iteration {self._iteration}: {activity}")

    def measuring(self, done: int, count: int) -> None:
        """Check before a group of measurements, as an evaluator asks for it.

        Raises:
            OutOfTimeError: The moment has passed.
        """
        self.check(f"measured {done} of {count} programs")

    def share(self, iteration: int, iterations: int) -> float:
        """Return how much of the training is over, from 0 to 1, by which hyper-parameters are annealed.

        Args:
            iteration: Iterations done.
            iterations: Iterations of the whole training; they count unless only time limits it.
        """
        return min(1.0, iteration / max(1, iterations)) if self.passed is None else self.passed
