"""Arrays that grow at their end, and numbers of objects that have a row in them."""

from collections.abc import Collection
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

T = TypeVar("T")

FEWEST = 256
"""Rows of an array at first."""


class Growing:
    """An array that grows at its end.

    Args:
        dtype: Type of the elements.
        shape: Shape of a row.
    """

    def __init__(self, dtype: type[np.generic], *shape: int) -> None:
        self._rows: NDArray[Any] = np.empty((FEWEST, *shape), dtype=dtype)
        self._count = 0

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._count

    def extend(self, rows: ArrayLike) -> None:
        """Append rows."""
        added = np.asarray(rows, dtype=self._rows.dtype).reshape(-1, *self._rows.shape[1:])
        end = self._count + len(added)
        if end > len(self._rows):
            more = np.empty((max(end, 2 * len(self._rows)), *self._rows.shape[1:]), dtype=self._rows.dtype)
            more[: self._count] = self._rows[: self._count]
            self._rows = more
        self._rows[self._count : end] = added
        self._count = end

    def take(self, places: NDArray[np.int64]) -> NDArray[Any]:
        """Return copies of rows."""
        return self._rows.take(places, axis=0)


class Numbers(Generic[T]):
    """Numbers of objects, which are told apart by identity, in the order in which they were first seen."""

    def __init__(self) -> None:
        """Start empty."""
        self._numbers: dict[int, int] = {}
        self._seen: list[T] = []  # keeps them alive, so that ids stay unique

    def __len__(self) -> int:
        """Return how many objects have a number."""
        return len(self._seen)

    def of(self, objects: Collection[T]) -> tuple[NDArray[np.int64], list[T]]:
        """Return the numbers of objects, and those among them that are new."""
        found = [*map(self._numbers.get, map(id, objects))]
        if None not in found:
            return np.array(found, dtype=np.int64), []
        new = [*{id(thing): thing for thing in objects if id(thing) not in self._numbers}.values()]
        for number, thing in enumerate(new, start=len(self._seen)):
            self._numbers[id(thing)] = number
        self._seen += new
        return np.array([*map(self._numbers.__getitem__, map(id, objects))], dtype=np.int64), new


def runs(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return consecutive numbers, `counts[i]` from `starts[i]` on for each i, shape [sum(counts)]."""
    ends = counts.cumsum()
    return np.repeat(starts - ends + counts, counts) + np.arange(ends[-1] if len(ends) else 0)
