"""Guarded memory for programs: it reveals writes out of bounds, changed arguments and unwritten results."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import DTypeLike

from irgym.measure.arrays import CACHE_LINE
from irgym.measure.checking.numbers import Array, same_bits

BAND = 4096
"""Bytes of each guard band; writes beyond an array's ends are noticed up to this distance."""

_PATTERN = np.random.default_rng(0x6972676D).integers(0, 256, BAND + 2 * CACHE_LINE, np.uint8).tobytes()

_BLANKS = {2: (np.uint16, 0x7EA5), 4: (np.uint32, 0x7FE5A5A5), 8: (np.uint64, 0x7FFDA5A5A5A5A5A5)}
"""For each size of a floating-point number in bytes, a NaN with a payload that no processor generates."""


class Guarded:
    """An array that begins on a cache line, between two guard bands.

    Attributes:
        array: The array; its initial content is unspecified.
    """

    def __init__(self, shape: Sequence[int], dtype: DTypeLike = np.float32) -> None:
        size = math.prod(shape) * np.dtype(dtype).itemsize
        memory = np.empty(size + 2 * (BAND + CACHE_LINE), np.uint8)
        start = BAND + -(memory.ctypes.data + BAND) % CACHE_LINE
        self.array: Array = memory[start : start + size].view(dtype).reshape(shape)
        self._bands = memory[:start], memory[start + size :]
        for band in self._bands:
            band[...] = np.frombuffer(_PATTERN, np.uint8, len(band))

    @property
    def overrun(self) -> bool:
        """Whether the memory before or after the array was changed."""
        return any(band.tobytes() != _PATTERN[: len(band)] for band in self._bands)


class Buffers:
    """Arguments and results of programs that are checked one after the other.

    Args:
        inputs: The arguments; programs get copies of them.
        results: The expected results, so that result buffers can be filled with other values beforehand.
    """

    def __init__(self, inputs: Sequence[Array], results: Sequence[Array]) -> None:
        self._originals = list(inputs)
        self._blanks = [_blank(result) for result in results]
        self._inputs = [Guarded(array.shape, array.dtype) for array in inputs]
        self._results = [Guarded(array.shape, array.dtype) for array in results]
        self.reset()

    @property
    def inputs(self) -> list[Array]:
        """The arguments."""
        return [guarded.array for guarded in self._inputs]

    @property
    def results(self) -> list[Array]:
        """The results."""
        return [guarded.array for guarded in self._results]

    @property
    def all(self) -> list[Array]:
        """The arguments, then the results."""
        return [*self.inputs, *self.results]

    def reset(self) -> None:
        """Restore the arguments, and fill the results with values that are wrong everywhere."""
        for guarded, original in zip(self._inputs, self._originals, strict=True):
            guarded.array[...] = original
        self.blank()

    def blank(self) -> None:
        """Fill the results with values that are wrong everywhere."""
        for guarded, blank in zip(self._results, self._blanks, strict=True):
            guarded.array[...] = blank

    def faults(self) -> str:
        """Describe a program's illegal or missing writes; empty if there are none.

        After a fault the guard bands may be damaged: make new buffers.
        """
        for place, (guarded, original) in enumerate(zip(self._inputs, self._originals, strict=True)):
            if guarded.overrun:
                return f"it wrote beyond argument {place}"
            if not same_bits(guarded.array, original):
                return f"it changed argument {place}"
        for place, (guarded, blank) in enumerate(zip(self._results, self._blanks, strict=True)):
            if guarded.overrun:
                return f"it wrote beyond result {place}"
            if _left_out(guarded.array, blank):
                return f"it left numbers of result {place} unwritten"
        return ""


def _blank(values: Array) -> Array:
    """Return values that differ from `values` everywhere, with bits that no computation yields."""
    if values.dtype.kind == "f":
        bits, pattern = _BLANKS[values.dtype.itemsize]
        return np.full((), pattern, bits).view(values.dtype)
    return np.invert(np.ascontiguousarray(values).view(np.uint8)).view(values.dtype).reshape(values.shape)


def _left_out(values: Array, blank: Array) -> bool:
    """Say whether a floating-point result still holds the blank pattern; other types show it by value."""
    if values.dtype.kind != "f":
        return False
    bits = _BLANKS[values.dtype.itemsize][0]
    return bool((values.view(bits) == blank.view(bits)).any())
