"""Bounds of the magnitudes of weights, to tell without their arrays whether computed weights stay normal.

A merged constant is *sound* if it is an ordinary number (not infinite, zero or subnormal in its precision)
wherever its parts are. The elements of large weights stay in files during a search, so soundness is judged
by their least and greatest magnitudes. Small weights are checked element by element.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Format:
    """A floating-point type.

    Attributes:
        tiny: The smallest normal number.
        most: The largest number.
        bits: Binary digits of the significand, the leading one included.
    """

    tiny: float
    most: float
    bits: int

    @property
    def moderate(self) -> float:
        """The largest factor that may be reordered with others: half of the positive exponents exceed it.

        The product of two such factors, or of their reciprocals, is an ordinary number.
        """
        return 2.0 ** ((math.frexp(self.most)[1] - 1) // 2)

    @property
    def exact(self) -> float:
        """The largest summand whose rounding leaves half of the digits of numbers near 1."""
        return 2.0 ** (self.bits // 2)


def format_of(dtype: str) -> Format | None:
    """Return the format of a floating-point type by numpy's name; None for other types."""
    return _FORMATS.get(dtype)


def _format(exponent: int, bits: int) -> Format:
    """Return the IEEE format with a given largest exponent and number of digits."""
    return Format(2.0 ** (1 - exponent), (2 - 2.0 ** (1 - bits)) * 2.0**exponent, bits)


_FORMATS: Mapping[str, Format] = {
    "float16": _format(15, 11),
    "bfloat16": _format(127, 8),
    "float32": _format(127, 24),
    "float64": _format(1023, 53),
}


@dataclass(frozen=True)
class Magnitude:
    """Bounds of the elements of a weight.

    Attributes:
        least: Lower bound of the magnitudes of nonzero elements; infinite if there are none.
        greatest: Upper bound of the magnitudes; infinite if an element may be infinite or NaN.
        zeros: Whether elements may be zero.
        size: Number of elements.
    """

    least: float
    greatest: float
    zeros: bool
    size: int = 1

    def counting(self, kind: Format) -> float:
        """Return the least magnitude that matters beside the greatest one.

        An element smaller than the greatest one by more than two roundings is lost in any sum with it. Large
        trained weights often have such elements, some of them subnormal.
        """
        return max(self.least, self.greatest * 4.0**-kind.bits) if self.size > LOOKED_AT else self.least


LOOKED_AT = 64
"""In weights of at most this many elements, all elements count, however small they are."""

NOTHING = Magnitude(math.inf, math.inf, True)
"""Bounds of a weight that does not consist of floating-point numbers."""


def magnitude_of(array: Any) -> Magnitude:
    """Return the bounds of an array's elements."""
    least, greatest, zeros = math.inf, 0.0, False
    flat = array.reshape(-1)
    for begin in range(0, flat.size, _PART):
        part = np.abs(flat[begin : begin + _PART])
        most = float(part.max())
        if math.isnan(most):
            return Magnitude(0.0, math.inf, True, flat.size)
        greatest = max(greatest, most)
        low = float(part.min())
        if low == 0:
            zeros = True
            there = part[part != 0]
            low = float(there.min()) if there.size else math.inf
        least = min(least, low)
    return Magnitude(least, greatest, zeros, flat.size)


_PART = 1 << 16
"""Elements in a chunk, few enough to stay in the cache."""

Bounds = Callable[..., Magnitude]


def _product(a: Magnitude, b: Magnitude) -> Magnitude:
    return Magnitude(a.least * b.least, a.greatest * b.greatest, a.zeros or b.zeros)


def _quotient(a: Magnitude, b: Magnitude) -> Magnitude:
    greatest = math.inf if b.zeros or not b.least else a.greatest / b.least
    return Magnitude(a.least / b.greatest if b.greatest else 0.0, greatest, a.zeros)


def _sum(a: Magnitude, b: Magnitude) -> Magnitude:
    # The difference of two numbers is zero or a multiple of the smaller one's last digit.
    least = min(a.least, b.least)
    return Magnitude(least * 2.0**-_DIGITS if least < math.inf else least, a.greatest + b.greatest, True)


_DIGITS = 53


def _deviation(variance: Magnitude, epsilon: float) -> Magnitude:
    least = epsilon if variance.zeros else min(variance.least + epsilon, math.inf)
    return Magnitude(math.sqrt(max(least, 0.0)), math.sqrt(variance.greatest + max(epsilon, 0)), least <= 0)


def _all(*parts: Any) -> Magnitude:
    known = [part for part in parts if isinstance(part, Magnitude)]
    least, greatest = min(part.least for part in known), max(part.greatest for part in known)
    return Magnitude(least, greatest, any(part.zeros for part in known))


def _with_zeros(*parts: Any) -> Magnitude:
    known = _all(*parts)
    return Magnitude(known.least, known.greatest, True)


def _none(*_: Any) -> Magnitude:
    return Magnitude(math.inf, 0.0, True)


def _unknown(*_: Any) -> Magnitude:
    return NOTHING


_WINOGRAD = 64.0
"""Largest factor between a convolution's weights and those of its Winograd form, either way."""


def _winograd(weights: Magnitude, *_: Any) -> Magnitude:
    return Magnitude(weights.least / _WINOGRAD * 2.0**-_DIGITS, weights.greatest * _WINOGRAD, True)


def _dequantised(scale: Magnitude, *_: Any) -> Magnitude:
    """Return the bounds of steps of a scale: 0, or from one step to as many as 32 bits have."""
    return Magnitude(scale.least, scale.greatest * 2.0**32, True)


_BOUNDS: Mapping[str, Bounds] = {
    "add": _sum,
    "subtract": _sum,
    "multiply": _product,
    "divide": _quotient,
    "deviation": _deviation,
    "matmul": _product,
    "winograd_weights": _winograd,
    "pad": _with_zeros,
    "joined_groups": _with_zeros,
    "without_padding": _with_zeros,
    "zeros": _none,
    "mask": _unknown,
    "dequantised": _dequantised,
    "winograd_inputs": lambda *_: Magnitude(2.0**-8, 2.0**8, True),
    "winograd_outputs": lambda *_: Magnitude(2.0**-8, 2.0**8, True),
    "winograd_tiles": _unknown,
}
"""Bounds by function. Functions that are not listed only move elements."""


def bounds_of(function: str, arguments: Sequence[Any], inner: int, size: int) -> Magnitude:
    """Return the bounds of a function's result.

    Args:
        function: Name of the function, as in `irgym.envs.graph.ir.functions`.
        arguments: Bounds of weights, and plain values.
        inner: For a matrix product, the number of products in each sum; else 1.
        size: Number of elements of the result.
    """
    found = _BOUNDS.get(function, _all)(*arguments)
    greatest = found.greatest * inner
    return Magnitude(found.least, math.inf if math.isnan(greatest) else greatest, found.zeros, size)


ARITHMETIC = frozenset({"add", "subtract", "multiply", "divide", "deviation", "matmul", "winograd_weights"})
"""Functions that compute new numbers."""

_SUMS = frozenset({"add", "subtract"})


def stays_normal(function: str, arguments: Sequence[Any], inner: int, kind: Format) -> bool:
    """Say whether a function's result is sound, as far as bounds tell; see the module.

    Args:
        function: One of `ARITHMETIC`.
        arguments: Bounds of weights, and plain values.
        inner: As in `bounds_of`.
        kind: The format of the result.
    """
    parts = [argument for argument in arguments if isinstance(argument, Magnitude)]
    if function in _SUMS:
        first, second = sorted(part.greatest for part in parts)
        return first <= kind.exact and (second == math.inf or first + second <= kind.most)
    if any(part.greatest == math.inf for part in parts):
        return False
    trimmed = [
        Magnitude(argument.counting(kind), argument.greatest, argument.zeros)
        if isinstance(argument, Magnitude)
        else argument
        for argument in arguments
    ]
    made = bounds_of(function, trimmed, inner, 1)
    if function == "winograd_weights":
        return made.greatest <= kind.most and parts[0].counting(kind) / _WINOGRAD >= kind.tiny
    if function == "deviation":
        return made.greatest <= kind.most and not made.zeros
    return made.greatest <= kind.most and made.least >= kind.tiny


ELEMENTWISE = frozenset({"add", "subtract", "multiply", "divide"})
"""Functions that work element by element."""


def elements_stay_normal(function: str, parts: Sequence[Any], made: Any, kind: Format) -> bool:
    """Say whether the result of a function of two arrays is sound, checking each element.

    Args:
        function: One of `ELEMENTWISE`.
        parts: The arrays.
        made: The result.
        kind: The format of the result.
    """
    magnitude, first, second = (np.abs(np.asarray(array, np.float64)) for array in (made, *parts))
    if function in _SUMS:
        low, high = np.minimum(first, second), np.maximum(first, second)
        cancelled = (low > kind.exact) & (magnitude < high / 4)
        finite = np.isfinite(magnitude) | (np.isinf(high) & ~np.isnan(magnitude))
        return bool(finite.all()) and not cancelled.any()
    lost = (magnitude < kind.tiny) & (first != 0) & (second != 0)
    return bool(np.isfinite(magnitude).all()) and not lost.any()
