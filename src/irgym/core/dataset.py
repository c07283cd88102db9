"""Data sets: programs by URI, divided into training and test programs."""

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TypeVar, cast

from irgym.base.errors import IrgymError, ProgramError

T = TypeVar("T")


class NoDatasetError(ProgramError):
    """There is no data set of a name."""


HOLDOUT = 0.1
"""Share of test programs where none is given."""


def check_names(dataset: object) -> None:
    """Make sure that a data set is named by a text, a path, or several of these; None names the default one.

    Raises:
        IrgymError: It is something else, or empty.
    """
    several = cast(Sequence[object], dataset) if isinstance(dataset, list | tuple) else (dataset,)
    if not several or any(isinstance(name, str) and not name for name in several):
        raise IrgymError(f"dataset is {dataset!r}, which names nothing: give a name, or leave it out")
    for name in several:
        if name is not None and not isinstance(name, str | os.PathLike):
            raise IrgymError(f"name a data set by texts or paths, not by {name!r}")


def check_holdout(share: object) -> None:
    """Make sure that the share of test programs makes sense; None is the default one.

    Raises:
        IrgymError: It is no number, or out of range.
    """
    if share is None:
        return
    if isinstance(share, bool) or not isinstance(share, Real):
        raise IrgymError(f"the share of test programs must be a number, not {share!r}: give one")
    if not 0.0 <= float(share) < 1.0:
        raise IrgymError(f"a share of {float(share):g} for testing is out of range: give 0 or more, below 1")


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
