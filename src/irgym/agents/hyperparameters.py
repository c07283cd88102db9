"""Hyper-parameters: the ranges that those of all algorithms share, and the check that all go through."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from irgym.core.values import Range, check_fields

GREATEST = 1e30
"""What torch can still compute with in 32 bits."""

Count = Annotated[int, Range(low=1)]
CountOrNone = Annotated[int, Range(low=0)]
Episodes = Annotated[int, Range(1, 1_000_000)]
Positive = Annotated[float, Range(above=0, high=GREATEST)]
Limit = Annotated[float | None, Range(above=0, high=GREATEST)]
Weight = Annotated[float, Range(0, GREATEST)]
Share = Annotated[float, Range(0, 1)]
Widths = Annotated[tuple[int, ...], Range(1, 65_536)]
Threads = Annotated[int, Range(1, 1024)]
Seed = Annotated[int, Range(low=0)]


@dataclass(frozen=True)
class Hyperparameters:
    """What configures an algorithm: a frozen dataclass whose fields declare types and ranges.

    None of its values is ever out of range: it cannot be made so. What concerns several fields, a
    configuration checks where it is used.
    """

    name: ClassVar[str] = "the algorithm"
    """The algorithm, for messages."""

    def __post_init__(self) -> None:
        """Make sure that every value suits its declaration.

        Raises:
            IrgymError: One does not; the message names it, its value and its range.
        """
        check_fields(self, self.name)
