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
    """

    moment: float = math.inf

    def check(self) -> None:
        """Raise if the moment has passed; called wherever an iteration can be dropped.

        Raises:
            OutOfTimeError: It has.
        """
        if time.monotonic() >= self.moment:
            raise OutOfTimeError
