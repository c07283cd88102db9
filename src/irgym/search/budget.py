"""What a search may spend."""

import math
from dataclasses import dataclass

from irgym.core.errors import IrgymError


@dataclass(frozen=True)
class Budget:
    """What a search may spend; the first limit that is reached ends it.

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
