"""What a result must be: each element's value, and how far rounding alone may take it from there.

What rounding does is not guessed from a type or an array's scale. The original runs again with coarser
rounding after every operation, in a few ways (`samples`), and each element's tolerance comes from how that
element moved. It is the idea of Monte Carlo arithmetic (Parker 1997; Verificarlo, Denis et al. 2016), with
fewer bits in place of random ones, so that what is exact stays exact.
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
"""How many times as far as under coarser rounding an element may move."""

LAST_BITS = 4.0
"""How many units of its last place any element may be off, however it moved."""

FLIPS = 4
"""How many times as many elements may jump as do under coarser rounding, and how many times as far."""

JUMP = 1e3
"""An element jumped where it moved this many times as far as half of those of its magnitude."""

PEERS = 16
"""Numbers that tell together what rounding does to each of them."""

REACH = 4
"""How many times a factor of 4 greater the peers of a number may be, where it has few."""

Floats = NDArray[np.floating]


@dataclass(frozen=True)
class Expected:
    """One result, element by element.

    Attributes:
        values: What the original computes, or an array of the result's shape and type.
        allowance: How far each number may be off, same shape; None where all must be equal.
        ignored: Numbers that say nothing, as rounding makes them infinite or no number; None for none.
        jumps: How many numbers may be off by more.
        jump: How far these may be off.
        keeps_zeros: Whether the signs of zeros count: where values are only moved.
        reference: What is expected in double precision, where `values` are not it.
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
        """What is expected as numbers: doubles for floating-point types (complex ones as their parts)."""
        # Not kept: results may have hundreds of millions of elements.
        return numbers_of(self.values) if self.reference is None else self.reference


def exactly(values: Array, keeps_zeros: bool = False) -> Expected:
    """Expect these very values: whole numbers, values that are only moved, sums that no rounding touches.

    Args:
        values: The result.
        keeps_zeros: Whether a zero must have its sign, as where values are only moved.
    """
    return Expected(values, keeps_zeros=keeps_zeros)


def within(values: Array, reference: Doubles, allowance: Doubles) -> Expected:
    """Expect a reference in double precision, with a bound on the absolute error of each element.

    Args:
        values: An array of the result's type and shape.
        reference: What each element is.
        allowance: Greatest absolute error of each.
    """
    return Expected(values, allowance, reference=reference)


def rounded(values: Array, samples: Sequence[Array]) -> Expected:
    """Expect what the original computed, as far as rounding lets it be the same.

    A floating-point number may be off by `LAST_BITS` and by `SLACK` times the greater of how far it moved
    under coarser rounding and how far half of the numbers of its magnitude did. Whole numbers must be equal,
    but for those that coarser rounding flips (comparisons, maxima, samples): `FLIPS` times as many may
    differ, by `FLIPS` times as much. The same holds for floating-point numbers that jump with these.

    Args:
        values: What the original computes.
        samples: What it computes with coarser rounding, several times.
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
    """Return how far each number moved at most, and which became infinite or no number, or ceased to be."""
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
    """Return how far half of the numbers of about the same magnitude moved, for each number.

    A few runs may happen to leave a number where it is; its peers tell what rounding does to its kind. They
    are those of its magnitude (within a factor of 4), not all of the array: beside a mask of -1e9 the noise
    of the mask must excuse nothing else. A number that a sum left near zero may have no such peers, and more
    noise than its magnitude tells: fewer than `PEERS` are joined by the greater ones, as far as `REACH`.
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
    """Return the exponents of numbers that are not negative; that of zero is `gap` below all others."""
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
