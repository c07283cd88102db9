"""Expected results: each element's value, and its tolerance for rounding.

The tolerance is not guessed from a type or an array's scale. The original runs again with coarser rounding
after every operation, in a few ways (`samples`), and each element's tolerance follows from how far that
element moved. This is the idea of Monte Carlo arithmetic (Parker 1997; Verificarlo, Denis et al. 2016), with
fewer bits instead of random ones, so that exact results stay exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from irgym.measure.checking.numbers import (
    Array,
    Bools,
    Doubles,
    doubles,
    is_fractional,
    numbers_of,
    precision,
    whole,
)

SLACK = 8.0
"""Tolerance of an element, as a multiple of its movement under coarser rounding."""

LAST_BITS = 4.0
"""Least tolerance of an element, in units in the last place."""

FLIPS = 4
"""Number and size of tolerated jumps, as multiples of those under coarser rounding."""

JUMP = 1e3
"""An element jumps if it moves this many times as far as the median element of its magnitude."""

PEERS = 16
"""Number of peers from which the effect of rounding on a number is estimated."""

REACH = 4
"""Greatest magnitude of a number's peers, in factors of 4, if it has few peers of its magnitude."""

Floats = NDArray[np.floating]


@dataclass(frozen=True)
class Expected:
    """An expected result.

    Attributes:
        values: The original's result, or an array of its shape and type.
        allowance: Absolute tolerance of each number, same shape; None if all must be equal.
        ignored: Mask of numbers that are not compared, since rounding makes them infinite or NaN, or None.
        jumps: Number of numbers that may exceed the tolerance.
        jump: Absolute tolerance of these.
        keeps_zeros: Whether the signs of zeros count, as where values are only moved.
        reference: The expected values in double precision, if `values` do not hold them.
    """

    values: Array
    allowance: Floats | None = None
    ignored: Bools | None = None
    jumps: int = 0
    jump: float = 0.0
    keeps_zeros: bool = False
    reference: Doubles | None = None

    @property
    def numbers(self) -> Array:
        """The expected numbers: doubles for floating-point types (complex ones as their parts)."""
        # Not cached: results may have hundreds of millions of elements.
        return numbers_of(self.values) if self.reference is None else self.reference


def exactly(values: Array, keeps_zeros: bool = False) -> Expected:
    """Expect exactly these values: integers, values that are only moved, sums without rounding.

    Args:
        values: The result.
        keeps_zeros: Whether the signs of zeros count, as where values are only moved.
    """
    return Expected(values, keeps_zeros=keeps_zeros)


def within(values: Array, reference: Doubles, allowance: Doubles) -> Expected:
    """Expect a reference in double precision, with a bound on the absolute error of each element.

    Args:
        values: An array of the result's type and shape.
        reference: Value of each element.
        allowance: Greatest absolute error of each element.
    """
    return Expected(values, allowance, reference=reference)


def rounded(values: Array, samples: Sequence[Array]) -> Expected:
    """Expect the original's result, up to rounding.

    The tolerance of a floating-point number is `LAST_BITS` plus `SLACK` times its movement under coarser
    rounding, or the median movement of numbers of its magnitude if that is greater. Integers must be equal,
    except where coarser rounding flips some (comparisons, maxima, samples): then `FLIPS` times as many may
    differ, by `FLIPS` times as much. The same holds for floating-point numbers that jump.

    Args:
        values: The original's result.
        samples: The original's results with coarser rounding, for several ways of rounding.
    """
    if not values.size:
        return exactly(values)
    if not is_fractional(values.dtype):
        return _whole(values, samples)
    numbers = doubles(values)
    finite = np.isfinite(numbers)
    moved, ignored = _moved(numbers, finite, samples)
    eps, tiny = precision(values.dtype)
    magnitude = np.where(finite, np.abs(numbers), 0.0)
    typical = _typical(magnitude, moved)
    last_bits = LAST_BITS * (eps * magnitude + tiny)
    jumped = moved > JUMP * (typical + last_bits)
    allowance = last_bits + SLACK * np.maximum(typical, np.where(jumped, 0.0, moved))
    double = values.dtype.itemsize >= (16 if values.dtype.kind == "c" else 8)
    return Expected(
        values,
        allowance if double else allowance.astype(np.float32),
        ignored if ignored.any() else None,
        FLIPS * int(np.count_nonzero(jumped)),
        FLIPS * float(moved.max(initial=0.0, where=jumped)),
    )


def _moved(numbers: Doubles, finite: Bools, samples: Sequence[Array]) -> tuple[Doubles, Bools]:
    """Return each number's greatest movement, and which numbers changed from or to infinity or NaN."""
    moved = np.zeros(numbers.shape)
    ignored = np.zeros(numbers.shape, np.bool_)
    for sample in samples:
        other = doubles(sample)
        alike = np.isfinite(other) & finite
        steady = alike | (other == numbers) | (np.isnan(other) & np.isnan(numbers))
        ignored |= ~steady
        difference = np.abs(np.subtract(other, numbers, where=alike, out=np.zeros(numbers.shape)))
        np.maximum(moved, difference, out=moved)
    return moved, ignored


def _typical(magnitude: Doubles, moved: Doubles) -> Doubles:
    """Return for each number the median movement of its peers, the numbers of about the same magnitude.

    A number may by chance not move in a few runs, so that its peers show the effect of rounding. Peers are
    the numbers within a factor of 4, not the whole array: the noise of a mask of -1e9 must not widen the
    tolerance of other numbers. A sum near zero may have few such peers, and more noise than its magnitude
    suggests; fewer than `PEERS` are joined by greater numbers, up to `REACH`.
    """
    kinds = _exponents(magnitude, 2 * REACH + 2) // 2
    kinds -= kinds.min()
    steps = _exponents(moved, 1)
    lowest = steps.min()
    width = int(steps.max() - lowest) + 1
    table = np.bincount((kinds * width + (steps - lowest)).ravel(), minlength=int(kinds.max() + 1) * width)
    table = table.reshape(-1, width)
    peers = table.copy()
    for further in range(1, min(REACH, len(table) - 1) + 1):
        few = np.flatnonzero(peers[:-further].sum(axis=1) < PEERS)
        peers[few] += table[few + further]
    counts = peers.cumsum(axis=1)
    median = (counts * 2 >= counts[:, -1:]).argmax(axis=1) + lowest
    still = (median == lowest) & bool((moved == 0.0).any())
    sizes = np.where(still, 0.0, np.ldexp(1.0, np.maximum(median, -1000)))
    return sizes[kinds]


def _exponents(values: Doubles, gap: int) -> Array:
    """Return the exponents of nonnegative numbers; the exponent of zero is `gap` below all others."""
    found = np.asarray(np.frexp(values)[1], np.int64)
    zero = values == 0.0
    if not zero.all() and zero.any():
        found[zero] = int(found[~zero].min()) - gap
    return found


def _whole(values: Array, samples: Sequence[Array]) -> Expected:
    numbers = whole(values)
    jumps, size = 0, 0.0
    for sample in samples:
        other = whole(sample)
        jumps = max(jumps, int(np.count_nonzero(other != numbers)))
        size = max(size, float(np.max(np.abs(other.astype(np.float64) - numbers.astype(np.float64)))))
    return Expected(values, jumps=FLIPS * jumps, jump=FLIPS * size)
