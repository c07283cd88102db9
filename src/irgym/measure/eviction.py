"""Eviction of data from the processor's caches, for measurements of programs whose data is not there yet."""

from collections.abc import Callable
from functools import cache

import numpy as np

from irgym.measure.target import host_target

TWICE = 2
"""Bytes read to empty the caches, as a multiple of the last one's size."""


def reading(size: int) -> Callable[[], object]:
    """Return a function that reads so many bytes, which then fill the caches."""
    read = np.ones(size // 8)
    return read[::8].sum  # an element of each line


@cache
def _reading_twice() -> Callable[[], object]:
    return reading(TWICE * max((cache.size for cache in host_target().caches), default=0))


def empty_caches() -> None:
    """Evict from the caches of this core what other data can evict; nothing where no cache is known."""
    _reading_twice()()
