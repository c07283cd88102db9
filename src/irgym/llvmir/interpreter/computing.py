"""LLVM's arithmetic intrinsics."""

import math
from collections.abc import Callable, Mapping
from fractions import Fraction

from irgym.llvmir.interpreter.calls import Call
from irgym.llvmir.interpreter.layout import Kind, kind_of
from irgym.llvmir.interpreter.making import Making
from irgym.llvmir.interpreter.numbers import (
    Value,
    add,
    arithmetic,
    mul,
    saturated,
    shl,
    signed,
    single,
    sub,
)
from irgym.llvmir.interpreter.poison import POISON, Unsupported

Intrinsic = Callable[[Making, Call, tuple[Value, ...]], Value]
"""Runs a call; takes the machine, the call and the arguments."""


def _number(compute: Callable[..., Value]) -> Intrinsic:
    """Return an intrinsic that applies a function to numbers, or to each element of vectors."""

    def run(_: Making, call: Call, arguments: tuple[Value, ...]) -> Value:
        kind = kind_of(call.operands[0].kind)
        if kind is not None:
            return _computed(compute, kind, arguments)
        inner = kind_of(call.operands[0].kind[1:-1].partition(" x ")[2])
        if inner is None:
            raise Unsupported(f"calls of {call.callee}")
        columns: list[tuple[Value, ...]] = [
            argument if isinstance(argument, tuple) else (argument,) * len(arguments[0])  # pyright: ignore[reportUnknownVariableType]
            for argument in arguments
        ]
        rows = zip(*columns, strict=True)
        return tuple(_computed(compute, inner, row) for row in rows)

    return run


def _computed(compute: Callable[..., Value], kind: Kind, arguments: tuple[Value, ...]) -> Value:
    if any(argument is POISON for argument in arguments):
        return POISON
    found = compute(kind, *arguments)
    return single(found) if kind.size == 4 and isinstance(found, float) else found


def _pair(compute: Callable[[Kind, int, int], tuple[int, bool]]) -> Intrinsic:
    def run(_: Making, call: Call, arguments: tuple[Value, ...]) -> Value:
        kind = kind_of(call.operands[0].kind)
        if kind is None:
            raise Unsupported(f"calls of {call.callee}")
        if any(argument is POISON for argument in arguments):
            return POISON, POISON
        return compute(kind, *arguments)

    return run


def _overflowing(name: str) -> Callable[[Kind, int, int], tuple[int, bool]]:
    operate = {"add": add, "sub": sub, "mul": mul}[name[1:]]
    flag = "nsw" if name[0] == "s" else "nuw"

    def compute(kind: Kind, a: int, b: int) -> tuple[int, bool]:
        return operate(a, b, kind.mask, ""), operate(a, b, kind.mask, flag) is POISON

    return compute


def _saturating(name: str) -> Callable[[Kind, int, int], Value]:
    def compute(kind: Kind, a: int, b: int) -> Value:
        if name == "ushl" or name == "sshl":
            return _shifted(name, kind, a, b)
        sign = 1 << (kind.bits - 1)
        low, high = (-sign, sign - 1) if name[0] == "s" else (0, kind.mask)
        first, second = (signed(a, sign), signed(b, sign)) if name[0] == "s" else (a, b)
        found = first + second if name.endswith("add") else first - second
        return min(max(found, low), high) & kind.mask

    return compute


def _shifted(name: str, kind: Kind, a: int, b: int) -> Value:
    flag, sign = ("nuw", 0) if name[0] == "u" else ("nsw", 1 << (kind.bits - 1))
    if b >= kind.bits:
        return POISON
    found = shl(a, b, kind.bits, flag)
    if found is not POISON:
        return found
    return kind.mask if not sign else (sign if a & sign else sign - 1)


def _extreme(name: str) -> Callable[[Kind, int, int], int]:
    pick = max if name.endswith("max") else min

    def compute(kind: Kind, a: int, b: int) -> int:
        sign = 1 << (kind.bits - 1) if name[0] == "s" else 0
        return pick(a, b, key=lambda value: value ^ sign)

    return compute


def _absolute(kind: Kind, value: int, strict: int) -> Value:
    sign = 1 << (kind.bits - 1)
    if value == sign and strict:
        return POISON
    return abs(signed(value, sign)) & kind.mask


def _leading(kind: Kind, value: int, strict: int) -> Value:
    return POISON if not value and strict else kind.bits - value.bit_length()


def _trailing(kind: Kind, value: int, strict: int) -> Value:
    if not value:
        return POISON if strict else kind.bits
    return (value & -value).bit_length() - 1


def _funnel(left: bool) -> Callable[[Kind, int, int, int], int]:
    def compute(kind: Kind, a: int, b: int, count: int) -> int:
        count %= kind.bits
        both = (a << kind.bits) | b
        return (both >> (kind.bits - count) if left else both >> count) & kind.mask

    return compute


def _three_way(name: str) -> Intrinsic:
    def run(_: Making, call: Call, arguments: tuple[Value, ...]) -> Value:
        source, result = kind_of(call.operands[0].kind), kind_of(call.returns)
        if source is None or result is None:
            raise Unsupported(f"calls of {call.callee}")
        a, b = arguments
        if a is POISON or b is POISON:
            return POISON
        sign = 1 << (source.bits - 1) if name == "scmp" else 0
        return (((a ^ sign) > (b ^ sign)) - ((a ^ sign) < (b ^ sign))) & result.mask

    return run


def _function(compute: Callable[[float], float]) -> Callable[[Kind, float], float]:
    """Return a function of real numbers that is NaN or infinite where `compute` raises an error."""

    def guarded(_: Kind, value: float) -> float:
        try:
            return compute(value)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return guarded


def _rounded(compute: Callable[[float], float]) -> Callable[[Kind, float], float]:
    def guarded(_: Kind, value: float) -> float:
        if value != value or math.isinf(value):
            return value
        return math.copysign(float(compute(value)), value)

    return guarded


def _half_away(value: float) -> float:
    whole = math.floor(abs(value))
    return whole + (abs(value) - whole >= 0.5)


def _smaller(_: Kind, a: float, b: float) -> float:
    if a != a or b != b:
        return b if a != a else a
    return min(a, b)


def _larger(_: Kind, a: float, b: float) -> float:
    if a != a or b != b:
        return b if a != a else a
    return max(a, b)


def _fused(_: Kind, a: float, b: float, c: float) -> float:
    """Return a * b + c, rounded once if all operands are finite."""
    found = arithmetic(a * b + c)
    if found != found or math.isinf(a) or math.isinf(b) or math.isinf(c):
        return found
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        return float(exact) if exact else found
    except OverflowError:
        return found


def _converted(sign: bool) -> Intrinsic:
    def run(_: Making, call: Call, arguments: tuple[Value, ...]) -> Value:
        kind = kind_of(call.returns)
        if kind is None:
            raise Unsupported(f"calls of {call.callee}")
        return saturated(arguments[0], kind.bits, sign)

    return run


def _classified(_: Making, call: Call, arguments: tuple[Value, ...]) -> Value:
    value, wanted = arguments
    if kind_of(call.operands[0].kind) is None:
        raise Unsupported(f"calls of {call.callee}")
    return value if value is POISON else int(bool(_class(value, call.operands[0].kind) & wanted))


def _class(value: float, kind: str) -> int:
    """Return the class of a number as a bit of the mask that `llvm.is.fpclass` takes."""
    if value != value:
        return 3
    least = 2.0**-126 if kind == "float" else 2.0**-1022
    below = math.copysign(1.0, value) < 0
    if math.isinf(value):
        return 1 << 2 if below else 1 << 9
    if value == 0.0:
        return 1 << 5 if below else 1 << 6
    if abs(value) < least:
        return 1 << 4 if below else 1 << 7
    return 1 << 3 if below else 1 << 8


def _reduced(compute: Callable[[int, int], int]) -> Intrinsic:
    def run(_: Making, call: Call, arguments: tuple[Value, ...]) -> Value:
        kind = kind_of(call.returns)
        if kind is None:
            raise Unsupported(f"calls of {call.callee}")
        first, *rest = arguments[-1]
        for element in rest:
            first = compute(first, element)
        return first & kind.mask

    return run


def _reduced_extreme(name: str) -> Intrinsic:
    def run(_: Making, call: Call, arguments: tuple[Value, ...]) -> Value:
        kind = kind_of(call.returns)
        if kind is None:
            raise Unsupported(f"calls of {call.callee}")
        if any(element is POISON for element in arguments[0]):
            return POISON
        found = arguments[0][0]
        for element in arguments[0][1:]:
            found = _extreme(name)(kind, found, element)
        return found

    return run


def _folded(operate: Callable[[float, float], float]) -> Intrinsic:
    """Return a reduction of floating-point numbers, in order."""

    def run(_: Making, call: Call, arguments: tuple[Value, ...]) -> Value:
        kind = kind_of(call.returns)
        if kind is None:
            raise Unsupported(f"calls of {call.callee}")
        found, elements = arguments
        for element in elements:
            if found is POISON or element is POISON:
                return POISON
            found = arithmetic(_single_or(kind, operate(found, element)))
        return found

    return run


def _single_or(kind: Kind, value: float) -> Value:
    return single(value) if kind.size == 4 else value


def _ones(_: Kind, value: int) -> int:
    return value.bit_count()


def _swapped(kind: Kind, value: int) -> int:
    return int.from_bytes(value.to_bytes(kind.size, "little"), "big")


def _reversed(kind: Kind, value: int) -> int:
    return int(f"{value:0{kind.bits}b}"[::-1], 2)


def _magnitude(_: Kind, value: float) -> float:
    return abs(value)


def _signed_as(_: Kind, value: float, sign: float) -> float:
    return math.copysign(value, sign)


def _product_and_sum(kind: Kind, a: float, b: float, c: float) -> float:
    return arithmetic(_single_or(kind, a * b) + c)


def _half_even(value: float) -> float:
    return abs(round(value))


def _either(a: int, b: int) -> int:
    return a | b


def _both(a: int, b: int) -> int:
    return a & b


def _one_of(a: int, b: int) -> int:
    return a ^ b


def _sum(a: int, b: int) -> int:
    return a + b


def _product(a: int, b: int) -> int:
    return a * b


def _sum_of_floats(a: float, b: float) -> float:
    return a + b


def _product_of_floats(a: float, b: float) -> float:
    return a * b


COMPUTED: Mapping[str, Intrinsic] = {
    **{
        f"{name}.with.overflow": _pair(_overflowing(name))
        for name in ("sadd", "ssub", "smul", "uadd", "usub", "umul")
    },
    **{
        f"{name}.sat": _number(_saturating(name)) for name in ("sadd", "ssub", "uadd", "usub", "sshl", "ushl")
    },
    **{name: _number(_extreme(name)) for name in ("smax", "smin", "umax", "umin")},
    **dict.fromkeys(("minnum", "minimumnum"), _number(_smaller)),
    **dict.fromkeys(("maxnum", "maximumnum"), _number(_larger)),
    **dict.fromkeys(("rint", "nearbyint", "roundeven"), _number(_rounded(_half_even))),
    **{name: _three_way(name) for name in ("scmp", "ucmp")},
    "ctpop": _number(_ones),
    "ctlz": _number(_leading),
    "cttz": _number(_trailing),
    "abs": _number(_absolute),
    "bswap": _number(_swapped),
    "bitreverse": _number(_reversed),
    "fshl": _number(_funnel(left=True)),
    "fshr": _number(_funnel(left=False)),
    "fabs": _number(_magnitude),
    "copysign": _number(_signed_as),
    "sqrt": _number(_function(math.sqrt)),
    "floor": _number(_rounded(math.floor)),
    "ceil": _number(_rounded(math.ceil)),
    "trunc": _number(_rounded(math.trunc)),
    "round": _number(_rounded(_half_away)),
    "fma": _number(_fused),
    "fmuladd": _number(_product_and_sum),
    "fptosi.sat": _converted(sign=True),
    "fptoui.sat": _converted(sign=False),
    "is.fpclass": _classified,
    **{f"vector.reduce.{name}": _reduced_extreme(name) for name in ("smax", "smin", "umax", "umin")},
    "vector.reduce.add": _reduced(_sum),
    "vector.reduce.mul": _reduced(_product),
    "vector.reduce.fadd": _folded(_sum_of_floats),
    "vector.reduce.fmul": _folded(_product_of_floats),
    "vector.reduce.or": _reduced(_either),
    "vector.reduce.and": _reduced(_both),
    "vector.reduce.xor": _reduced(_one_of),
}
"""Arithmetic intrinsics by name."""
