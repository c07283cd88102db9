"""Intervals of numbers, and interval arithmetic for scalar operations of MLIR. Plain data, without MLIR.

Intervals show where no rounding can happen: as long as all numbers are integers and small enough for their
type, sums and products are exact in any order.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

GREATEST = {
    "f64": 2.0**53,
    "f32": 2.0**24,
    "f16": 2.0**11,
    "bf16": 2.0**8,
    "i1": 1.0,
    "i8": 127.0,
    "i16": 2.0**15 - 1,
    "i32": 2.0**31 - 1,
    "i64": 2.0**53,
    "index": 2.0**53,
}
"""Greatest absolute value up to which a type represents all integers of either sign exactly."""


@dataclass(frozen=True)
class Interval:
    """Integers, or infinities, between two bounds.

    Attributes:
        low: Lower bound; minus infinity if there is none.
        high: Upper bound; infinity if there is none.
    """

    low: float
    high: float

    @property
    def size(self) -> float:
        """Greatest absolute value."""
        return max(abs(self.low), abs(self.high))

    def within(self, low: float, high: float) -> bool:
        """Say whether all numbers lie between two bounds."""
        return low <= self.low and self.high <= high

    def hull(self, other: "Interval") -> "Interval":
        """Return the smallest interval that contains both."""
        return Interval(min(self.low, other.low), max(self.high, other.high))

    def times(self, count: int) -> "Interval":
        """Return the interval of sums of `count` numbers."""
        return Interval(count * self.low, count * self.high)


UNKNOWN = Interval(-math.inf, math.inf)
"""Any number, fractions included."""

TRUTH = Interval(0.0, 1.0)
"""A truth value."""


def symmetric(size: float) -> Interval:
    """Return the interval of numbers with absolute value at most `size`."""
    return Interval(-size, size)


def plus(left: Interval, right: Interval) -> Interval:
    """Return sums."""
    return Interval(left.low + right.low, left.high + right.high)


def minus(left: Interval, right: Interval) -> Interval:
    """Return differences."""
    return Interval(left.low - right.high, left.high - right.low)


def product(left: Interval, right: Interval) -> Interval:
    """Return products."""
    ends = [a * b for a in (left.low, left.high) for b in (right.low, right.high)]
    return UNKNOWN if any(map(math.isnan, ends)) else Interval(min(ends), max(ends))


def greater(left: Interval, right: Interval) -> Interval:
    """Return the greater of two numbers."""
    return Interval(max(left.low, right.low), max(left.high, right.high))


def lesser(left: Interval, right: Interval) -> Interval:
    """Return the lesser of two numbers."""
    return Interval(min(left.low, right.low), min(left.high, right.high))


def absolute(interval: Interval) -> Interval:
    """Return absolute values."""
    return Interval(0.0, interval.size)


def opposite(interval: Interval) -> Interval:
    """Return numbers of the other sign."""
    return Interval(-interval.high, -interval.low)


COMPUTED: Mapping[str, Callable[..., Interval]] = {
    "arith.addf": plus,
    "arith.addi": plus,
    "arith.subf": minus,
    "arith.subi": minus,
    "arith.mulf": product,
    "arith.muli": product,
    "arith.negf": opposite,
    "math.absf": absolute,
    "math.absi": absolute,
}
"""Interval arithmetic of operations whose results grow with their operands, by name."""

DIFFERENCES = frozenset({"arith.subf", "arith.subi"})

SUMS = DIFFERENCES | {"arith.addf", "arith.addi"}
"""Operations among them that add up terms."""

CHOSEN: Mapping[str, Callable[[Interval, Interval], Interval]] = {
    "arith.maximumf": greater,
    "arith.maxnumf": greater,
    "arith.maxsi": greater,
    "arith.minimumf": lesser,
    "arith.minnumf": lesser,
    "arith.minsi": lesser,
}
"""Interval arithmetic of operations whose result is one of their operands, by name."""

CONVERTED = frozenset(
    {
        "arith.extf",
        "arith.truncf",
        "arith.sitofp",
        "arith.fptosi",
        "arith.extsi",
        "arith.trunci",
        "arith.index_cast",
    }
)
"""Conversions that keep a number if the new type can represent it."""

UNSIGNED = frozenset({"arith.extui", "arith.uitofp", "arith.index_castui", "arith.fptoui"})
"""Conversions that also need a nonnegative number."""

DIVISIONS = frozenset(
    {
        "arith.divsi",
        "arith.divui",
        "arith.remsi",
        "arith.remui",
        "arith.floordivsi",
        "arith.ceildivsi",
        "arith.ceildivui",
    }
)
"""Divisions of integers, which crash if the divisor is 0."""
