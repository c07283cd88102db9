"""How much memory a part of a tensor occupies, and how much of it the sets of a cache can hold."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from irgym.core.target import Cache

PAGE = 4096
"""Bytes of a page."""

CROWD = 4096
"""Most runs of a footprint whose places in a cache are computed; further ones lie in the same way."""


@dataclass(frozen=True)
class Footprint:
    """The part of a tensor that some loops use: runs of consecutive bytes.

    Attributes:
        run: Bytes of a run.
        pitches: Distance in bytes and number of what repeats a run, the nearest first.
    """

    run: int
    pitches: tuple[tuple[int, int], ...]

    @property
    def runs(self) -> int:
        """Number of runs."""
        count = 1
        for _, times in self.pitches:
            count *= times
        return count

    def units(self, size: int) -> int:
        """Return the number of lines or pages of a size that it touches, if each run begins with one."""
        if not self.pitches:
            return -(-self.run // size)
        runs, length = 1, self.run
        for pitch, times in self.pitches:
            if pitch < size and runs == 1:
                length += pitch * (times - 1)
            else:
                runs *= times
        return runs * -(-length // size)

    def held(self, cache: Cache) -> float:
        """Return the share of its lines that the sets of a cache can hold at once.

        Rows that are a power of two apart meet in few sets.
        """
        if cache.ways == 0 or self.runs == 1:
            return 1.0
        sets = max(1, cache.size // cache.line // cache.ways)
        return _held(self, cache.line, sets, cache.ways)


@lru_cache(maxsize=4096)
def _held(footprint: Footprint, line: int, sets: int, ways: int) -> float:
    starts = np.zeros(1, dtype=np.int64)
    for pitch, times in footprint.pitches:
        starts = (starts[:, None] + pitch * np.arange(min(times, max(1, CROWD // len(starts))))).reshape(-1)
    lines = starts[:, None] // line + np.arange(-(-footprint.run // line))
    counts = np.bincount(np.unique(lines) % sets, minlength=sets)
    return float(np.minimum(counts, ways).sum() / counts.sum())


def footprint(strides: Mapping[str, int], extents: Mapping[str, int], bytes_each: int) -> Footprint:
    """Return the part of a tensor that some extents of its dimensions reach.

    Args:
        strides: Distance in elements of each dimension; 0 for those that the tensor lacks.
        extents: Extent of each dimension; 1 for those not named.
        bytes_each: Bytes of an element.
    """
    reach: dict[int, int] = {}
    for dim, stride in strides.items():
        extent = extents.get(dim, 1)
        if stride and extent > 1:
            # Dimensions with one stride, as those of an image and of a filter, overlap.
            reach[abs(stride)] = reach.get(abs(stride), 0) + extent - 1
    run = 1
    pitches: list[tuple[int, int]] = []
    for stride in sorted(reach):
        if stride <= run and not pitches:
            run += stride * reach[stride]
        else:
            pitches.append((stride * bytes_each, reach[stride] + 1))
    return Footprint(run * bytes_each, tuple(pitches))
