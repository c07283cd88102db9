"""Aligned arrays, on which programs are timed."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

CACHE_LINE = 64
"""Bytes of a cache line, the alignment of arrays."""


def aligned(shape: Sequence[int], dtype: DTypeLike = np.float32) -> NDArray[Any]:
    """Return an uninitialised array that begins on a cache line.

    numpy's arrays may begin anywhere, and a vector across two cache lines costs twice, so that times would
    depend on chance. Baselines get the same arrays.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(size + CACHE_LINE, dtype=np.uint8)
    start = -memory.ctypes.data % CACHE_LINE
    return memory[start : start + size].view(dtype).reshape(shape)
