"""Whether two modules computed the same: exact where it can be, conditioned relative error where not."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from irgym.core.cost import Validation
from irgym.envs.hlo.inputs import is_fractional

Array = NDArray[Any]
Doubles = NDArray[np.float64]

TOLERANCES = {
    "c128": 1e-9,
    "f64": 1e-9,
    "c64": 1e-5,
    "f32": 1e-5,
    "f16": 1e-2,
    "bf16": 5e-2,
    "f8": 0.5,
    "f4": 0.5,
}
"""Relative error allowed, by the least precise floating-point type that a module computes with."""

FLIPS = 4
"""How many times as many whole numbers may differ as do when the inputs change in their last bits."""


@dataclass(frozen=True)
class Noise:
    """How the original's results move when its inputs change in their last bits.

    Attributes:
        outputs: Its results on the changed inputs.
        step: Greatest relative change of an input.
    """

    outputs: Sequence[Array]
    step: float


def agreement(
    expected: Sequence[Array], actual: Sequence[Array], tolerance: float, noise: Noise | None = None
) -> Validation:
    """Compare the results of an optimised module with those of the original, on one input.

    The error of an element is |a - b| over |a| plus the root mean square of its array; with `noise`, also
    plus what the change of the original's result extrapolates to at a relative change of 1 of the inputs, so
    that results that are differences of nearly equal numbers are judged by those numbers. NaN equals NaN
    and infinity equals itself; either against anything else is an infinite error. Integers and booleans
    must be equal; only where `noise` flips some of an array (samples, maxima, comparisons), up to `FLIPS`
    times as many may differ. Other numbers, shapes or types of results are an infinite error.

    Args:
        expected: Results of the original.
        actual: Results of the optimised module.
        tolerance: Greatest error allowed; see `TOLERANCES`.
        noise: The original's results on changed inputs.
    """
    error = 0.0
    if [(one.shape, one.dtype) for one in expected] != [(one.shape, one.dtype) for one in actual]:
        error = math.inf
    else:
        for place, (ours, theirs) in enumerate(zip(expected, actual, strict=True)):
            moved = noise.outputs[place] if noise else None
            error = max(error, _error(ours, theirs, moved, noise.step if noise else 0.0))
    return Validation(error <= tolerance, error, describe(tolerance), inputs=1)


def describe(tolerance: float) -> str:
    """Return the tolerance in words."""
    return (
        f"relative error {tolerance:g} against the original on XLA:CPU, relative to each number, its array"
        " and what rounding the inputs does to it; whole numbers equal unless that flips them"
    )


def _error(expected: Array, actual: Array, moved: Array | None, step: float) -> float:
    if not expected.size:
        return 0.0
    if not is_fractional(expected.dtype):
        return _flips(expected, actual, moved)
    numbers = [_doubles(one) for one in (expected, actual)]
    change = None if moved is None or step == 0 else (_doubles(moved) - numbers[0]) / step
    return _relative(numbers[0], numbers[1], change)


def _flips(expected: Array, actual: Array, moved: Array | None) -> float:
    differing = int(np.count_nonzero(expected != actual))
    allowed = 0 if moved is None else FLIPS * int(np.count_nonzero(expected != moved))
    return math.inf if differing > allowed else 0.0


def _doubles(values: Array) -> Doubles:
    """Return real numbers in double precision: complex ones as their parts."""
    if values.dtype.kind == "c":
        return np.stack([np.real(values), np.imag(values)]).astype(np.float64)
    with np.errstate(invalid="ignore"):  # signalling NaN of the narrow types
        return values.astype(np.float64)


def _relative(expected: Doubles, actual: Doubles, change: Doubles | None) -> float:
    finite = np.isfinite(expected) & np.isfinite(actual)
    if not np.array_equal(expected[~finite], actual[~finite], equal_nan=True):
        return math.inf
    a, b = expected[finite], actual[finite]
    differing = a != b
    if not differing.any():
        return 0.0
    scale = np.abs(a) + _root_mean_square(a)
    if change is not None:
        moved = np.nan_to_num(np.abs(change[finite]), nan=0.0, posinf=0.0)
        scale += moved + _root_mean_square(moved)
    difference, scale = np.abs(a - b)[differing], scale[differing]
    if not scale.all():
        return math.inf
    return float(np.max(difference / scale))


def _root_mean_square(values: Doubles) -> float:
    greatest = cast(float, np.max(np.abs(values), initial=0.0))
    # Scaled, so that the squares of the greatest doubles stay finite.
    return greatest * math.sqrt(float(np.mean((values / greatest) ** 2))) if greatest else 0.0
