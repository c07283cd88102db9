"""Arrays that programs are timed on."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

CACHE_LINE = 64
"""Bytes of a cache line, on which arrays begin."""


def aligned(shape: Sequence[int], dtype: DTypeLike = np.float32) -> NDArray[Any]:
    """Return an array, not initialised, that begins on a cache line.

    numpy's own arrays begin anywhere, and a vector that crosses two lines costs twice: with them, times
    would depend on chance. Baselines get the same arrays.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(size + CACHE_LINE, dtype=np.uint8)
    start = -memory.ctypes.data % CACHE_LINE
    return memory[start : start + size].view(dtype).reshape(shape)
