"""Data sets: programs by URI, split into training and test programs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from irgym.base.errors import ProgramError

T = TypeVar("T")


@dataclass(frozen=True)
class Dataset:
    """A fixed set of programs, by URI, split into training and test programs."""

    name: str
    description: str
    train: tuple[str, ...]
    test: tuple[str, ...]

    def split(self, name: str) -> tuple[str, ...]:
        """Return the programs of `train` or `test`.

        Raises:
            ProgramError: There is no such split.
        """
        if name not in ("train", "test"):
            raise ProgramError(f"there is no split {name!r}: choose train or test")
        return self.train if name == "train" else self.test


def spread(programs: Sequence[T], limit: int | None) -> list[T]:
    """Return at most `limit` items, evenly spread over all of them."""
    if limit is None or limit >= len(programs):
        return list(programs)
    return [programs[place * len(programs) // limit] for place in range(limit)]


def dataset_of(datasets: Mapping[str, Callable[[], Dataset]], name: str) -> Dataset:
    """Return one of an environment's data sets.

    Raises:
        ProgramError: There is none of that name; the message lists those that exist.
    """
    if name not in datasets:
        raise ProgramError(f"there is no data set {name!r}: choose among {', '.join(datasets)}")
    return datasets[name]()
