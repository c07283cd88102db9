"""Arithmetic of LLVM's IR on Python numbers.

Integers are unsigned; values of type `float` are rounded to single precision. Poison among the operands makes
the result poison.
"""

import math
import struct
from collections.abc import Callable
from ctypes import c_float
from typing import Any

from irgym.llvmir.interpreter.memory_map import REGION_BITS
from irgym.llvmir.interpreter.poison import POISON, Undefined

Value = Any
"""A number or poison; a tuple of values for vectors and structs."""


def signed(value: Value, sign: int) -> Value:
    """Return an unsigned integer as a signed one; `sign` is the value of the sign bit."""
    return (value ^ sign) - sign


def add(a: Value, b: Value, mask: int, flags: str) -> Value:
    """Return a sum, or poison if one of `flags` is violated."""
    return _kept(a, b, mask, flags, lambda x, y: x + y)


def sub(a: Value, b: Value, mask: int, flags: str) -> Value:
    """Return a difference."""
    return _kept(a, b, mask, flags, lambda x, y: x - y)


def mul(a: Value, b: Value, mask: int, flags: str) -> Value:
    """Return a product."""
    return _kept(a, b, mask, flags, lambda x, y: x * y)


def _kept(a: Value, b: Value, mask: int, flags: str, operate: Callable[[int, int], int]) -> Value:
    if a is POISON or b is POISON:
        return POISON
    if "nuw" in flags and not 0 <= operate(a, b) <= mask:
        return POISON
    if "nsw" in flags:
        sign = (mask >> 1) + 1
        if not -sign <= operate(signed(a, sign), signed(b, sign)) < sign:
            return POISON
    return operate(a, b) & mask


def shl(a: Value, b: Value, bits: int, flags: str) -> Value:
    """Return a left shift."""
    if a is POISON or b is POISON or b >= bits:
        return POISON
    mask = (1 << bits) - 1
    found = (a << b) & mask
    if "nuw" in flags and found >> b != a:
        return POISON
    sign = (mask >> 1) + 1
    if "nsw" in flags and signed(found, sign) >> b != signed(a, sign):
        return POISON
    return found


def lshr(a: Value, b: Value, bits: int, exact: bool) -> Value:
    """Return a logical right shift."""
    if a is POISON or b is POISON or b >= bits or (exact and a & ((1 << b) - 1)):
        return POISON
    return a >> b


def ashr(a: Value, b: Value, bits: int, exact: bool) -> Value:
    """Return an arithmetic right shift."""
    if a is POISON or b is POISON or b >= bits or (exact and a & ((1 << b) - 1)):
        return POISON
    return (signed(a, 1 << (bits - 1)) >> b) & ((1 << bits) - 1)


def divided(name: str, a: Value, b: Value, bits: int, exact: bool) -> Value:
    """Return a quotient or a remainder of integers, by the name of the operation."""
    if b is POISON or b == 0:
        raise Undefined("a division by zero or poison")
    if a is POISON:
        return POISON
    sign, mask = 1 << (bits - 1), (1 << bits) - 1
    if name[0] == "u":
        quotient, rest = divmod(a, b)
    else:
        first, second = signed(a, sign), signed(b, sign)
        if first == -sign and second == -1:
            raise Undefined("a division overflows")
        quotient = abs(first) // abs(second) * (1 if (first < 0) == (second < 0) else -1)
        rest = first - quotient * second
    if exact and rest:
        return POISON
    return (quotient if name.endswith("div") else rest) & mask


def disjoint(a: Value, b: Value) -> Value:
    """Return a bitwise or; poison if the operands have a bit in common."""
    if a is POISON or b is POISON or a & b:
        return POISON
    return a | b


def same_sign(a: Value, b: Value, sign: int, found: Value) -> Value:
    """Return the result of a comparison; poison if the signs differ."""
    if a is POISON or b is POISON or (a ^ b) & sign:
        return POISON
    return found


def non_negative(value: Value, sign: int) -> Value:
    """Return a value; poison if its sign bit is set."""
    return POISON if value is POISON or value & sign else value


def truncated(value: Value, bits: int, old: int, flags: str) -> Value:
    """Return the lower bits of a value of `old` bits."""
    if value is POISON:
        return POISON
    found = value & ((1 << bits) - 1)
    if "nuw" in flags and found != value:
        return POISON
    if "nsw" in flags and signed(found, 1 << (bits - 1)) != signed(value, 1 << (old - 1)):
        return POISON
    return found


def chosen(condition: Value, first: Value, second: Value) -> Value:
    """Return one of two values; poison if the condition is."""
    if condition is POISON:
        return (POISON,) * len(first) if isinstance(first, tuple) else POISON  # pyright: ignore[reportUnknownArgumentType]
    return first if condition else second


def frozen(value: Value) -> Value:
    """Return a value with 0 in place of poison."""
    if isinstance(value, tuple):
        return tuple(map(frozen, value))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return 0 if value is POISON else value


def zeroed(value: Value) -> Value:
    """Return 0 in place of each number."""
    if isinstance(value, tuple):
        return tuple(map(zeroed, value))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return 0.0 if isinstance(value, float) else 0


def single(value: Value) -> Value:
    """Return the nearest single."""
    return POISON if value is POISON else c_float(value).value


def arithmetic(value: Value) -> Value:
    """Return the result of an operation, with all NaNs replaced by one.

    Sign and payload of computed NaNs are unspecified. Python's differ from run to run: they depend on the
    order of operands, which changes once an operation has run often enough to be specialised.
    """
    return value if value is POISON or value == value else math.nan


def quotient(a: Value, b: Value) -> Value:
    """Return a quotient of floating-point numbers."""
    if a is POISON or b is POISON:
        return POISON
    if b:
        return a / b
    if a == 0.0 or a != a:
        return math.nan
    return math.copysign(math.inf, math.copysign(1.0, a) * math.copysign(1.0, b))


def remainder(a: Value, b: Value) -> Value:
    """Return a remainder of floating-point numbers, with the dividend's sign."""
    if a is POISON or b is POISON:
        return POISON
    if a != a or b != b or math.isinf(a) or not b:
        return math.nan
    return math.fmod(a, b)


def fast(found: Value, operands: tuple[Value, ...], flags: str, turn: bool) -> Value:
    """Return the result of an operation with fast-math flags.

    Args:
        found: The result without them.
        operands: Its floating-point operands.
        flags: The flags.
        turn: Whether to flip the sign of zeros whose sign is insignificant.
    """
    values = [operand for operand in (found, *operands) if isinstance(operand, float)]
    if "nnan" in flags and any(value != value for value in values):
        return POISON
    if "ninf" in flags and any(math.isinf(value) for value in values):
        return POISON
    if "nsz" in flags and turn and isinstance(found, float) and found == 0.0:
        return -found
    return found


def compared(name: str, a: Value, b: Value) -> Value:
    """Return whether a relation of floating-point numbers holds, by its name in `fcmp`."""
    if a is POISON or b is POISON:
        return POISON
    unordered = a != a or b != b
    match name:
        case "ord" | "uno":
            return unordered == (name == "uno")
        case "true" | "false":
            return name == "true"
        case _ if unordered:
            return name[0] == "u"
        case _:
            return {
                "eq": a == b,
                "ne": a != b,
                "lt": a < b,
                "le": a <= b,
                "gt": a > b,
                "ge": a >= b,
            }[name[1:]]


def to_integer(value: Value, bits: int, sign: bool) -> Value:
    """Return the integer part of a floating-point number; poison if it does not fit."""
    if value is POISON or value != value or math.isinf(value):
        return POISON
    whole = int(value)
    low, high = (-(1 << (bits - 1)), 1 << (bits - 1)) if sign else (0, 1 << bits)
    return whole & ((1 << bits) - 1) if low <= whole < high else POISON


def saturated(value: Value, bits: int, sign: bool) -> Value:
    """Return the integer part of a floating-point number, clamped to the type; 0 for NaN."""
    if value is POISON:
        return POISON
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if sign else (0, (1 << bits) - 1)
    if value != value:
        return 0
    whole = (high if value > 0 else low) if math.isinf(value) else min(max(int(value), low), high)
    return whole & ((1 << bits) - 1)


def to_float(value: Value, is_single: bool) -> Value:
    """Return the nearest floating-point number of a signed integer."""
    if value is POISON:
        return POISON
    if not is_single:
        return float(value)
    size = abs(value)
    more = max(size.bit_length() - 53, 0)
    if more:  # a sticky bit keeps the second rounding from going the wrong way
        size = ((size >> more) | bool(size & ((1 << more) - 1))) << more
    return single(math.copysign(float(size), value))


_FORMATS = {4: "<f", 8: "<d"}


def bits_of(value: Value, size: int) -> Value:
    """Return the bits of a floating-point number of `size` bytes."""
    if value is POISON:
        return POISON
    return int.from_bytes(struct.pack(_FORMATS[size], value), "little")


def float_of(bits: Value, size: int) -> Value:
    """Return the floating-point number of `size` bytes with some bits."""
    if bits is POISON:
        return POISON
    return struct.unpack(_FORMATS[size], bits.to_bytes(size, "little"))[0]


def within(base: Value, found: Value) -> Value:
    """Return an address; poison if it leaves the region of its base."""
    if base is POISON or found is POISON or (base ^ found) >> REGION_BITS:
        return POISON
    return found


def upwards(base: Value, found: Value) -> Value:
    """Return an address; poison if it is below its base."""
    if base is POISON or found is POISON or found < base:
        return POISON
    return found


def in_range(value: Value, low: int, high: int, mask: int) -> Value:
    """Return a value; poison unless it is in a range, which may wrap around."""
    return value if value is not POISON and (value - low) & mask < (high - low) & mask else POISON


def decided(value: Value) -> Value:
    """Return a value on which control flow depends.

    Raises:
        Undefined: It is poison.
    """
    if value is POISON:
        raise Undefined("a decision depends on poison")
    return value


def element(vector: Value, place: Value) -> Value:
    """Return an element of a vector."""
    return POISON if place is POISON or place >= len(vector) else vector[place]


def inserted(whole: Value, value: Value, places: tuple[Value, ...]) -> Value:
    """Return a vector or a struct with one element replaced."""
    first, *rest = places
    if first is POISON or first >= len(whole):
        return (POISON,) * len(whole)
    element = inserted(whole[first], value, tuple(rest)) if rest else value
    return (*whole[:first], element, *whole[first + 1 :])


def shuffled(first: Value, second: Value, places: tuple[int, ...]) -> Value:
    """Return elements of two concatenated vectors by their places; -1 stands for poison."""
    both = (*first, *second)
    return tuple(POISON if place < 0 or place >= len(both) else both[place] for place in places)
