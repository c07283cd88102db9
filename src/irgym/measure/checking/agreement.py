"""Comparison of results with the expected ones, element by element."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from irgym.measure.checking.expected import Expected
from irgym.measure.checking.numbers import Array, Bools, Doubles, is_fractional, numbers_of


@dataclass(frozen=True)
class Agreement:
    """The comparison of results with the expected ones.

    Attributes:
        error: Greatest error of an element as a share of its tolerance; infinite for errors without
            tolerance.
        detail: Description of the difference; empty if all results agree.
    """

    error: float = 0.0
    detail: str = ""

    @property
    def ok(self) -> bool:
        """Whether all results agree."""
        return not self.detail


def agreement(expected: Sequence[Expected], found: Sequence[Array]) -> Agreement:
    """Compare all results with the expected ones.

    NaN agrees with NaN, an infinity with itself, and neither with anything else. A different number of
    results, shape or type is an infinite error. The first result that differs is named.
    """
    if len(expected) != len(found):
        return Agreement(math.inf, f"{len(found)} results instead of {len(expected)}")
    worst = 0.0
    for place, (wanted, result) in enumerate(zip(expected, found, strict=True)):
        compared = compare(wanted, result)
        if not compared.ok:
            name = f"result {place}: " if len(expected) > 1 else ""
            return Agreement(compared.error, name + compared.detail)
        worst = max(worst, compared.error)
    return Agreement(worst)


def compare(expected: Expected, found: Array) -> Agreement:
    """Compare one result with the expected one."""
    if (found.shape, found.dtype) != (expected.values.shape, expected.values.dtype):
        kind = f"{found.dtype}{list(found.shape)}"
        return Agreement(math.inf, f"{kind} instead of {expected.values.dtype}{list(expected.values.shape)}")
    if not found.size or (_plain(expected) and np.array_equal(found, expected.values)):
        return Agreement()
    wanted, numbers = expected.numbers, numbers_of(found)
    compared = _inexact if is_fractional(found.dtype) else _unequal
    wrong, error = compared(expected, wanted, numbers)
    count = int(np.count_nonzero(wrong))
    if not count:
        return Agreement(error)
    off = _distance(wanted, numbers)
    if count <= expected.jumps and bool((off[wrong] <= expected.jump).all()):
        return Agreement(1.0)
    return Agreement(error, _words(expected, wanted, numbers, wrong))


def _plain(expected: Expected) -> bool:
    """Say whether plain equality is required, the fast path for most candidates of a search."""
    return expected.allowance is None and not expected.keeps_zeros and expected.values.dtype.kind in "fiu"


def _inexact(expected: Expected, wanted: Doubles, numbers: Doubles) -> tuple[Bools, float]:
    """Return which floating-point numbers exceed their tolerance, and the greatest error as a share of it."""
    off = _distance(wanted, numbers)
    if expected.allowance is None:
        wrong: Bools = off > 0.0
        share = np.where(wrong, np.inf, 0.0)
    else:
        wrong = off > expected.allowance
        share = np.asarray(off / np.maximum(expected.allowance, np.finfo(np.float64).tiny))
    if expected.keeps_zeros:
        wrong |= (wanted == 0.0) & (np.signbit(wanted) != np.signbit(numbers)) & ~np.isnan(numbers)
    if expected.ignored is not None:
        wrong &= ~expected.ignored
        share[expected.ignored] = 0.0
    return wrong, float(share.max())


def _distance(wanted: Array, numbers: Array) -> Doubles:
    """Return the distances of numbers: 0 between NaN and NaN, infinity between NaN and any number."""
    with np.errstate(invalid="ignore", over="ignore"):
        # numpy returns a scalar, not an array, for arrays without dimensions.
        off = np.asarray(np.abs(numbers.astype(np.float64) - wanted.astype(np.float64)))
    lost = np.isnan(off)
    if lost.any():
        alike = (numbers == wanted) | (np.isnan(numbers) & np.isnan(wanted))
        off[lost & alike] = 0.0
        off[lost & ~alike] = np.inf
    return off


def _unequal(expected: Expected, wanted: Array, numbers: Array) -> tuple[Bools, float]:
    wrong: Bools = numbers != wanted
    return wrong, math.inf if wrong.any() else 0.0


def _words(expected: Expected, wanted: Array, numbers: Array, wrong: Bools) -> str:
    place = tuple(int(index) for index in np.argwhere(wrong)[0])
    count = f"{np.count_nonzero(wrong)} of {wrong.size} numbers differ, " if wrong.size > 1 else ""
    text = f"{count}the first at {list(place)}: {numbers[place]!s} instead of {wanted[place]!s}"
    if expected.allowance is not None:
        text += f", which may be off by {expected.allowance[place]:.3g}"
    return text
