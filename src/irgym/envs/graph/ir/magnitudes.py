"""Bounds of the magnitudes of weights, without their arrays: whether what is computed of them stays normal.

A constant that others are merged into is *sound* if it is an ordinary number wherever its parts are: not
infinite, not zero, not subnormal, in its own precision. Bounds tell that of weights in files, whose elements
nobody looks at during a search: the least and the greatest magnitude. Small weights are looked at one by one.
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
        tiny: The least normal number.
        most: The greatest number.
        bits: Binary digits of a number, the leading one included.
    """

    tiny: float
    most: float
    bits: int

    @property
    def moderate(self) -> float:
        """The greatest factor that may change places with others: half of the exponents lie above it.

        The product of two such factors, or of their reciprocals, is an ordinary number.
        """
        return 2.0 ** ((math.frexp(self.most)[1] - 1) // 2)

    @property
    def exact(self) -> float:
        """The greatest summand whose own rounding leaves half of the digits of numbers near 1."""
        return 2.0 ** (self.bits // 2)


def format_of(dtype: str) -> Format | None:
    """Return the format of a floating-point type by numpy's name; None for other types."""
    return _FORMATS.get(dtype)


def _format(exponent: int, bits: int) -> Format:
    """Return the IEEE format whose greatest exponent and number of digits are given."""
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
        least: At most the least magnitude of elements but zeros; infinite if there are none.
        greatest: At least the greatest magnitude; infinite where an element may be infinite or no number.
        zeros: Whether elements may be zero.
        size: Number of elements.
    """

    least: float
    greatest: float
    zeros: bool
    size: int = 1

    def counting(self, kind: Format) -> float:
        """Return the least magnitude that counts beside the greatest one.

        What is smaller than the greatest element by more than two roundings is lost in any sum with it. Large
        trained weights often have such elements, some of them subnormal.
        """
        return max(self.least, self.greatest * 4.0**-kind.bits) if self.size > LOOKED_AT else self.least


LOOKED_AT = 64
"""Elements of a weight up to which all count, however small they are."""

NOTHING = Magnitude(math.inf, math.inf, True)
"""What is known of a weight that is not made of floating-point numbers."""


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
"""Elements that are looked at together, so that they stay in the cache."""

Bounds = Callable[..., Magnitude]


def _product(a: Magnitude, b: Magnitude) -> Magnitude:
    return Magnitude(a.least * b.least, a.greatest * b.greatest, a.zeros or b.zeros)


def _quotient(a: Magnitude, b: Magnitude) -> Magnitude:
    greatest = math.inf if b.zeros or not b.least else a.greatest / b.least
    return Magnitude(a.least / b.greatest if b.greatest else 0.0, greatest, a.zeros)


def _sum(a: Magnitude, b: Magnitude) -> Magnitude:
    # The difference of two numbers is a multiple of the last digit of the smaller one, or zero.
    least = min(a.least, b.least)
    return Magnitude(least * 2.0**-_DIGITS if least < math.inf else least, a.greatest + b.greatest, True)


_DIGITS = 53


def _deviation(variance: Magnitude, epsilon: float) -> Magnitude:
    least = epsilon if variance.zeros else min(variance.least + epsilon, math.inf)
    return Magnitude(math.sqrt(max(least, 0.0)), math.sqrt(variance.greatest + max(epsilon, 0)), least <= 0)


def _all(*parts: Any) -> Magnitude:
    known = [one for one in parts if isinstance(one, Magnitude)]
    least, greatest = min(one.least for one in known), max(one.greatest for one in known)
    return Magnitude(least, greatest, any(one.zeros for one in known))


def _with_zeros(*parts: Any) -> Magnitude:
    known = _all(*parts)
    return Magnitude(known.least, known.greatest, True)


def _none(*_: Any) -> Magnitude:
    return Magnitude(math.inf, 0.0, True)


def _unknown(*_: Any) -> Magnitude:
    return NOTHING


_WINOGRAD = 64.0
"""How many times as large or as small as a convolution's weights those of Winograd's may be."""


def _winograd(weights: Magnitude, *_: Any) -> Magnitude:
    return Magnitude(weights.least / _WINOGRAD * 2.0**-_DIGITS, weights.greatest * _WINOGRAD, True)


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
    "winograd_inputs": lambda *_: Magnitude(2.0**-8, 2.0**8, True),
    "winograd_outputs": lambda *_: Magnitude(2.0**-8, 2.0**8, True),
    "winograd_tiles": _unknown,
}
"""Bounds by function; those that are not here put elements elsewhere."""


def bounds_of(function: str, arguments: Sequence[Any], inner: int, size: int) -> Magnitude:
    """Return the bounds of what a function makes of weights.

    Args:
        function: Name of the function, as in `irgym.envs.graph.ir.functions`.
        arguments: Bounds of weights, and plain values.
        inner: Number of products that are added up, of a matrix product.
        size: Number of elements.
    """
    found = _BOUNDS.get(function, _all)(*arguments)
    greatest = found.greatest * inner
    return Magnitude(found.least, math.inf if math.isnan(greatest) else greatest, found.zeros, size)


ARITHMETIC = frozenset({"add", "subtract", "multiply", "divide", "deviation", "matmul", "winograd_weights"})
"""Functions that make new numbers."""

_SUMS = frozenset({"add", "subtract"})


def stays_normal(function: str, arguments: Sequence[Any], inner: int, kind: Format) -> bool:
    """Say whether what a function makes is sound, as far as bounds tell; see the module.

    Args:
        function: One of `ARITHMETIC`.
        arguments: Bounds of weights, and plain values.
        inner: As in `bounds_of`.
        kind: The format of the result.
    """
    parts = [one for one in arguments if isinstance(one, Magnitude)]
    if function in _SUMS:
        first, second = sorted(one.greatest for one in parts)
        return first <= kind.exact and (second == math.inf or first + second <= kind.most)
    if any(one.greatest == math.inf for one in parts):
        return False
    trimmed = [
        Magnitude(one.counting(kind), one.greatest, one.zeros) if isinstance(one, Magnitude) else one
        for one in arguments
    ]
    made = bounds_of(function, trimmed, inner, 1)
    if function == "winograd_weights":
        return made.greatest <= kind.most and parts[0].counting(kind) / _WINOGRAD >= kind.tiny
    if function == "deviation":
        return made.greatest <= kind.most and not made.zeros
    return made.greatest <= kind.most and made.least >= kind.tiny


ELEMENTWISE = frozenset({"add", "subtract", "multiply", "divide"})
"""Functions of which each element has one element of each part."""


def elements_stay_normal(function: str, parts: Sequence[Any], made: Any, kind: Format) -> bool:
    """Say whether what a function makes of two arrays is sound, element by element.

    Args:
        function: One of `ELEMENTWISE`.
        parts: The arrays.
        made: The result.
        kind: Its format.
    """
    magnitude, first, second = (np.abs(np.asarray(one, np.float64)) for one in (made, *parts))
    if function in _SUMS:
        low, high = np.minimum(first, second), np.maximum(first, second)
        cancelled = (low > kind.exact) & (magnitude < high / 4)
        finite = np.isfinite(magnitude) | (np.isinf(high) & ~np.isnan(magnitude))
        return bool(finite.all()) and not cancelled.any()
    lost = (magnitude < kind.tiny) & (first != 0) & (second != 0)
    return bool(np.isfinite(magnitude).all()) and not lost.any()
