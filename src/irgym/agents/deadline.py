"""Time limit of a training, which also holds in the middle of an iteration."""

import math
import time
from dataclasses import dataclass


class OutOfTimeError(Exception):
    """The training's time is over; the current iteration must be dropped."""


@dataclass
class Deadline:
    """Moment at which a training stops.

    Attributes:
        moment: That moment on the clock of `time.monotonic`; infinite for none.
        passed: Share of the training's time that had passed before this iteration; None where the number of
            iterations limits the training.
    """

    moment: float = math.inf
    passed: float | None = None

    def share(self, iteration: int, iterations: int) -> float:
        """Return how much of the training is over, from 0 to 1, by which hyper-parameters are annealed.

        Args:
            iteration: Iterations done.
            iterations: Iterations of the whole training; they count unless only time limits it.
        """
        return min(1.0, iteration / max(1, iterations)) if self.passed is None else self.passed

    def check(self) -> None:
        """Raise if the moment has passed; called wherever an iteration can be dropped.

        Raises:
            OutOfTimeError: It has.
        """
        if time.monotonic() >= self.moment:
            raise OutOfTimeError
