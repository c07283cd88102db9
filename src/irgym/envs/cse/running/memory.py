"""The memory that functions are given: one piece, at the same addresses in all processes that are forked."""

import mmap
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

OBJECT = 1 << 14
"""Bytes of each object in it."""

BEFORE = 1 << 12
"""Bytes of an object in front of where pointers to it point: functions look there too."""

OBJECTS = 1 << 10
"""How many objects there are: half of them are there from the start, half are made while a function runs."""

SIZE = OBJECTS * OBJECT
"""Bytes of all."""


@dataclass(frozen=True)
class Image:
    """What memory holds before a function runs.

    Attributes:
        written: Bytes by places in memory; it is zero elsewhere.
        objects: How many objects are given away.
    """

    written: Mapping[int, bytes] = field(default_factory=dict[int, bytes])
    objects: int = 0


class Memory:
    """Objects, none of which has been given away. Their bytes are zero.

    Attributes:
        bytes: What it holds, shape [SIZE].
        address: Where it begins.
    """

    def __init__(self) -> None:
        self.bytes = shared_bytes(SIZE)
        self.address = int(self.bytes.ctypes.data)
        self._ends = [0, OBJECTS // 2]
        self._fixed: int | None = None

    def given(self, made: bool = False, size: int = 1) -> int | None:
        """Give an object away, and return the address that stands for it; None where there is no more.

        Args:
            made: Whether a function makes it while it runs.
            size: Bytes that it is to have behind that address.
        """
        first = self._ends[made]
        end = first - (-(BEFORE + size) // OBJECT)
        if end > OBJECTS // (1 if made else 2):
            return None
        self._ends[made] = end
        return self.address + first * OBJECT + BEFORE

    def one_of(self, number: int) -> int:
        """Return the address of an object that is there from the start, by its number modulo all of them."""
        return self.address + number % max(self.objects, 1) * OBJECT + BEFORE

    def offset(self, address: int) -> int | None:
        """Return the place in memory that an address is of; None for other addresses."""
        place = address - self.address
        return place if 0 <= place < SIZE else None

    @property
    def objects(self) -> int:
        """How many objects are there from the start."""
        return self._ends[False]

    def put(self, image: Image) -> None:
        """Have memory hold what an image says, and nothing else."""
        if self._fixed is None:
            self._fixed = self.objects
        for used in self.used():
            self.bytes[used] = 0
        self._ends = [max(image.objects, self._fixed), OBJECTS // 2]
        _put(self.bytes, 0, image)

    def used(self) -> tuple[slice, slice]:
        """Return where the objects are that were given away."""
        return slice(0, self._ends[False] * OBJECT), slice(SIZE // 2, self._ends[True] * OBJECT)

    def changes(self, image: Image) -> bytes:
        """Return what stands for all bytes that differ from those of an image."""
        found = blake2b(digest_size=16)
        for used in self.used():
            part, was = self.bytes[used], np.zeros(used.stop - used.start, dtype=np.uint8)
            _put(was, used.start, image)
            differ = np.flatnonzero(part != was)
            found.update((differ + used.start).tobytes())
            found.update(part[differ].tobytes())
        return found.digest()


def shared_bytes(size: int) -> NDArray[np.uint8]:
    """Return zeros that processes that are forked have at the same address, each its own, shape [size]."""
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        pages.madvise(mmap.MADV_NOHUGEPAGE)  # each fork copies the pages that it writes
    return np.frombuffer(pages, dtype=np.uint8)


def _put(content: NDArray[np.uint8], begin: int, image: Image) -> None:
    """Put what an image says into a part of memory that begins at some place."""
    for place, one in image.written.items():
        there = content[max(place - begin, 0) :][: len(one)] if place >= begin else content[:0]
        there[:] = np.frombuffer(one, dtype=np.uint8)[: len(there)]
