"""Arguments with special numbers, which can tell programs apart when ordinary ones do not: NaN, zeros."""

from collections.abc import Sequence
from typing import Any, cast

import ml_dtypes
import numpy as np

from irgym.measure.checking.numbers import Array, is_fractional

SHARE = 0.4
"""Share of an array's elements that are replaced."""


def with_special_numbers(
    arguments: Sequence[Array], seed: int, finite: bool, whole: bool, positive: Sequence[bool] = ()
) -> list[Array]:
    """Return arguments with some of their elements replaced by special numbers.

    Floating-point arrays get both zeros, the smallest normal and subnormal numbers, ones, and copies of other
    elements of the array; unless `finite`, also NaN and infinities. The largest numbers are left out: the
    order of a sum's terms, which is unspecified, decides whether they overflow.

    Args:
        arguments: Ordinary arguments.
        seed: Seed of the positions and numbers.
        finite: Whether to leave out NaN and infinities.
        whole: Whether integer arrays get the extremes of their types.
        positive: For each argument, whether negative numbers are outside the program's domain.
    """
    rng = np.random.default_rng([seed, int(finite)])
    changed: list[Array] = []
    for place, array in enumerate(arguments):
        if is_fractional(array.dtype):
            sign = not (finite and place < len(positive) and positive[place])
            changed.append(_replaced(array, _fractions(array.dtype, finite, sign), rng))
        elif whole and array.dtype.kind in "iuV":
            changed.append(_replaced(array, _extremes(array.dtype), rng))
        else:
            changed.append(array)
    return changed


def _replaced(array: Array, numbers: Array, rng: np.random.Generator) -> Array:
    """Return an array with numbers, and ties, at random positions; a scalar is replaced half of the time."""
    flat = array.reshape(-1).copy()
    if not flat.size:
        return array
    places = np.flatnonzero(rng.random(flat.size) < (SHARE if array.ndim else 0.5))
    flat[places] = numbers[rng.permutation(np.arange(len(places)) % len(numbers))]
    tied = places[rng.random(len(places)) < 0.25]
    flat[tied] = flat[rng.integers(0, flat.size, len(tied))]
    return flat.reshape(array.shape)


def _fractions(dtype: np.dtype[Any], finite: bool, negative: bool) -> Array:
    """Return the special numbers of a floating-point or complex type."""
    if dtype.kind == "c":
        parts = _fractions(np.dtype(np.float32 if dtype.itemsize == 8 else np.float64), finite, negative)
        numbers = np.empty(len(parts), dtype)
        numbers.real, numbers.imag = parts, np.roll(parts, 1)
        return numbers
    info: Any = cast(Any, ml_dtypes.finfo(dtype))
    sizes = [0.0, float(info.smallest_subnormal), float(info.tiny), 1.0]
    if not finite:
        sizes += [np.inf, np.nan]
    numbers = np.array([*sizes, *(-size for size in sizes)] if negative else sizes)
    with np.errstate(invalid="ignore", over="ignore"):
        return numbers.astype(dtype)


def _extremes(dtype: np.dtype[Any]) -> Array:
    info = ml_dtypes.iinfo(dtype)
    numbers = {int(info.min), int(info.min) + 1, 0, 1, int(info.max) - 1, int(info.max)}
    if info.min < 0:
        numbers.add(-1)
    return np.array(sorted(numbers), np.uint64 if info.min == 0 else np.int64).astype(dtype)
