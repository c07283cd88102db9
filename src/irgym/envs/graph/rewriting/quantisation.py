"""Conditions on scales and zero points of quantised numbers, and the zero points of unsigned numbers.

A number is `(integer - zero point) * scale`: the integer lies `integer - zero point` steps above 0.
"""

from typing import Any

import numpy as np

from irgym.envs.graph.ir.magnitudes import format_of
from irgym.envs.graph.ir.weights import Computed, Literal, Stored, literal
from irgym.envs.graph.rewriting.values import Attributes, Value

SHORT = frozenset({"int8", "uint8"})
"""Types of quantised numbers that ONNX Runtime's kernels take."""

DIGITS = frozenset({"float32", "float64"})
"""Types of scales: a step times a scale, divided by the scale, is rounded to the step again."""

STEPS = 2.0**17
"""More steps than 16 bits have."""


def short(value: Value | None) -> bool:
    """Say whether elements are integers of 8 bits."""
    return value is not None and value.type.dtype in SHORT


def exact(scale: Value) -> bool:
    """Say whether a scale is a weight by which a quantised number becomes an ordinary number, and back.

    All steps but 0 are then normal numbers, and no two are equal.
    """
    kind = format_of(scale.type.dtype)
    if (
        scale.type.dtype not in DIGITS
        or kind is None
        or not isinstance(scale.weight, Stored | Literal | Computed)
    ):
        return False
    known = scale.weight.magnitude
    return not known.zeros and kind.tiny <= known.least and known.greatest <= kind.most / STEPS


def positive(scale: Value) -> bool:
    """Say whether a scale is one positive number, and `exact`."""
    return scale.number > 0 and exact(scale)


def single(zero: Value | None) -> bool:
    """Say whether a zero point is one integer of 8 bits that is known."""
    return zero is not None and short(zero) and isinstance(zero.weight, Literal) and zero.type.size == 1


def plain(*nodes: Attributes) -> bool:
    """Say whether nodes quantise without blocks, with a precision and a type that follow from operands."""
    return not any(node.get(name) for node in nodes for name in ("block_size", "output_dtype", "precision"))


def alike(first: Value | None, second: Value | None) -> bool:
    """Say whether two values are one, or weights with the same elements, or both are missing."""
    if first is None or second is None:
        return first is second
    if first.weight is not None and second.weight is not None:
        return first.weight.digest == second.weight.digest
    return bool(first.name) and first.name == second.name


def along(scale: Value, rank: int, *nodes: Attributes) -> bool:
    """Say whether nodes have a scale along the same axis of arrays of a rank, or one scale for all."""
    axes = [node.get("axis", 1) for node in nodes]
    places = {axis + rank if isinstance(axis, int) and axis < 0 else axis for axis in axes}
    return scale.type.size == 1 or len(places) == 1


def fits(zero: Value, other: Value) -> bool:
    """Say whether numbers with a zero point are in the range of another, so that none saturates."""
    if not (
        short(zero)
        and short(other)
        and isinstance(zero.weight, Literal)
        and isinstance(other.weight, Literal)
    ):
        return alike(zero, other)
    low, high = _range(zero), _range(other)
    if zero.type.size != other.type.size:
        return False
    return bool((low[0] >= high[0]).all() and (low[1] <= high[1]).all())


def _range(zero: Value) -> tuple[Any, Any]:
    """Return the least and the greatest number of steps from a zero point, for each of its elements."""
    assert isinstance(zero.weight, Literal)
    limits = np.iinfo(zero.type.dtype)
    offset = zero.weight.array.reshape(-1).astype(np.int64)
    return limits.min - offset, limits.max - offset


def saturates(scale: Value, zero: Value, low: Value | float | None, high: Value | float | None) -> bool:
    """Say whether all numbers up to `low`, and all from `high` on, are quantised to the ends of the range.

    Args:
        scale: One positive number.
        zero: The zero point, which is `single`.
        low: A number or a weight of one; None for none.
        high: The same.
    """
    least, greatest = (float(bound.item()) for bound in _range(zero))
    given = (-np.inf if low is None else low, np.inf if high is None else high)
    bounds = [bound.number if isinstance(bound, Value) else bound for bound in given]
    with np.errstate(over="ignore"):  # what overflows is beyond any range
        steps = np.rint(np.asarray(bounds, scale.type.dtype) / np.asarray(scale.number, scale.type.dtype))
    return bool(steps[0] <= least and steps[1] >= greatest)


def signed(zero: Value | None) -> bool:
    """Say whether a zero point is one signed integer of 8 bits that is known."""
    return zero is not None and single(zero) and zero.type.dtype == "int8"


def unsigned_zero(zero: Value) -> Literal:
    """Return the unsigned zero point for the same numbers as a `signed` one: 128 higher."""
    assert isinstance(zero.weight, Literal)
    return literal(zero.weight.array.astype(np.int16) + 128, "uint8")


CONDITIONS = {
    function.__name__: function
    for function in (alike, along, exact, fits, plain, positive, saturates, short, signed, single)
}
"""Functions that conditions of rules may call, by name."""
