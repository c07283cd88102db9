"""Data sets: programs by URI, divided into training and test programs."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from irgym.base.errors import ProgramError

T = TypeVar("T")


class NoDatasetError(ProgramError):
    """There is no data set of a name."""


HOLDOUT = 0.1
"""Share of test programs where none is given."""


@dataclass(frozen=True)
class Dataset:
    """A fixed set of programs, by URI, divided into training and test programs.

    Attributes:
        name: Its name, or the text that names its programs.
        description: One line.
        train: Training programs.
        test: Test programs.
        left_out: For each file or combination of sizes that is no program, why.
    """

    name: str
    description: str
    train: tuple[str, ...]
    test: tuple[str, ...]
    left_out: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        """All programs, the training programs first."""
        return tuple(dict.fromkeys((*self.train, *self.test)))

    def split(self, name: str) -> tuple[str, ...]:
        """Return the programs of `train`, `test`, or `all`; there is at least one.

        Raises:
            ProgramError: There is no such split, or it is empty.
        """
        splits = {"train": self.train, "test": self.test, "all": self.all}
        if name not in splits:
            raise ProgramError(f"there is no split {name!r}: choose train, test or all")
        if not splits[name]:
            what = {"train": "training programs", "test": "test programs", "all": "programs"}[name]
            raise ProgramError(
                f"the data set {self.name} has no {what}: set the share of test programs, as by "
                "--holdout 0.2, or choose another split or data set"
            )
        return splits[name]


def place_of(text: str) -> float:
    """Return a pseudo-random number in [0, 1), the same on every machine; the number decides the split.

    It is below 0.1 if the SHA-256 of the text, read as a number, is divisible by ten.
    """
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    rest, digit = divmod(number, 10)
    return (digit + (rest >> 11) / ((2**64 // 10 >> 11) + 1)) / 10


def divided(programs: Mapping[str, str], share: float = HOLDOUT) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Divide programs into training and test programs, each program by itself.

    Of two programs or more at least one is a training program and, unless the share is 0, at least one a test
    program: where there would be none, the program nearest to the boundary moves. A single program is both.

    Args:
        programs: By URI, the text that decides where the program belongs.
        share: Share of test programs to expect.

    Returns:
        Training and test programs, in the order given.
    """
    if len(programs) == 1 and share:
        return tuple(programs), tuple(programs)
    places = {uri: place_of(text) for uri, text in programs.items()}
    test = {uri for uri in places if places[uri] < share}
    if places and share and not test:
        test.add(min(places, key=places.__getitem__))
    elif places and len(test) == len(places):
        test.remove(max(places, key=places.__getitem__))
    return tuple(uri for uri in programs if uri not in test), tuple(uri for uri in programs if uri in test)


def spread(programs: Sequence[T], limit: int | None) -> list[T]:
    """Return at most `limit` items, evenly spread over all of them."""
    if limit is None or limit >= len(programs):
        return list(programs)
    return [programs[place * len(programs) // limit] for place in range(limit)]


def dataset_of(datasets: Mapping[str, Callable[[], Dataset]], name: str) -> Dataset:
    """Return one of an environment's data sets.

    Raises:
        NoDatasetError: There is none of that name; the message lists those that exist.
    """
    if name not in datasets:
        raise NoDatasetError(f"there is no data set {name!r}: choose among {', '.join(datasets)}")
    return datasets[name]()
