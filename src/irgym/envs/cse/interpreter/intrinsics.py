"""LLVM's intrinsic functions, and those of the C library that work on memory."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from irgym.envs.cse.interpreter.calls import Call
from irgym.envs.cse.interpreter.layout import Kind, kind_of
from irgym.envs.cse.interpreter.memory import Region
from irgym.envs.cse.interpreter.memory_map import MIDDLE, REGION_BITS, STACK
from irgym.envs.cse.interpreter.numbers import (
    Value,
    add,
    mul,
    saturated,
    shl,
    signed,
    single,
    sub,
)
from irgym.envs.cse.interpreter.poison import POISON, Left, Undefined, Unsupported

if TYPE_CHECKING:
    from irgym.envs.cse.interpreter.machine import Machine

Intrinsic = Callable[["Machine", Call, tuple[Value, ...]], Value]
"""Runs a call: takes the machine, the call, and what is passed."""


@dataclass(frozen=True, eq=False)
class Site:
    """A call in a function, ready to run.

    Attributes:
        call: The call.
        intrinsic: What runs it; None for functions that are defined or made up.
    """

    call: Call
    intrinsic: Intrinsic | None

    @staticmethod
    def of(call: Call) -> "Site":
        """Return the site of a call.

        Raises:
            Unsupported: It calls an intrinsic function that the interpreter cannot run.
        """
        return Site(call, intrinsic_of(call))


_MADE_UP = (1 << 34) - 1
"""Bytes of an allocation that anything may be in."""


def intrinsic_of(call: Call) -> Intrinsic | None:
    """Return what runs a call; None for functions that are defined or made up.

    Raises:
        Unsupported: It is an intrinsic function that the interpreter cannot run.
    """
    name = call.callee.removeprefix("@")
    if name in _LIBRARY:
        return _LIBRARY[name]
    if not name.startswith("llvm."):
        return None
    words = name.split(".")[1:]
    for count in range(len(words), 0, -1):
        found = _INTRINSICS.get(".".join(words[:count]))
        if found is not None:
            return found
    if call.access.none:
        return None  # it answers by its arguments, whatever it computes
    raise Unsupported(f"calls of {call.callee}")


def _none(*_: object) -> None:
    return None


def _first(_: object, __: object, arguments: tuple[Value, ...]) -> Value:
    return arguments[0]


def _trap(*_: object) -> Value:
    raise Left("a trap")


def _assume(_: object, __: object, arguments: tuple[Value, ...]) -> None:
    if arguments[0] is POISON or not arguments[0]:
        raise Undefined("an assumption that does not hold")


def _copy(machine: "Machine", call: Call, arguments: tuple[Value, ...]) -> None:
    target, source, size = arguments[:3]
    if len(arguments) > 3 and arguments[3] == 1:
        machine.event(call.callee, (target, source, size))
    machine.copied(target, source, size)


def _fill(machine: "Machine", call: Call, arguments: tuple[Value, ...]) -> None:
    target, byte, size = arguments[:3]
    if len(arguments) > 3 and arguments[3] == 1:
        machine.event(call.callee, (target, byte, size))
    machine.filled(target, byte, size)


def _begins(machine: "Machine", _: Call, arguments: tuple[Value, ...]) -> None:
    address = arguments[-1]
    region = None if address is POISON else machine.memory.regions.get(address >> REGION_BITS)
    if region is not None:
        machine.memory.forget((address >> REGION_BITS << REGION_BITS) + MIDDLE, region.size)


def _variadic(machine: "Machine", _: Call, arguments: tuple[Value, ...]) -> None:
    """Write a list of arguments that are all in memory (System V ABI for x86-64)."""
    place = arguments[0]
    area = machine.allocated(Region(_MADE_UP, made_up=True))
    for offset, kind, value in ((0, "i32", 48), (4, "i32", 176), (8, "ptr", area), (16, "ptr", area)):
        machine.stored(place + offset, kind, value)


def _copied_list(machine: "Machine", _: Call, arguments: tuple[Value, ...]) -> None:
    machine.copied(arguments[0], arguments[1], 24)


def _number(compute: Callable[..., Value]) -> Intrinsic:
    """Return what computes a number, or one for each element of a vector."""

    def run(_: "Machine", call: Call, arguments: tuple[Value, ...]) -> Value:
        kind = kind_of(call.operands[0].kind)
        if kind is not None:
            return _computed(compute, kind, arguments)
        inner = kind_of(call.operands[0].kind[1:-1].partition(" x ")[2])
        if inner is None:
            raise Unsupported(f"calls of {call.callee}")
        rows = zip(
            *(one if isinstance(one, tuple) else [one] * len(arguments[0]) for one in arguments), strict=True
        )
        return tuple(_computed(compute, inner, row) for row in rows)

    return run


def _computed(compute: Callable[..., Value], kind: Kind, arguments: tuple[Value, ...]) -> Value:
    if any(one is POISON for one in arguments):
        return POISON
    found = compute(kind, *arguments)
    return single(found) if kind.size == 4 and isinstance(found, float) else found


def _pair(compute: Callable[[Kind, int, int], tuple[int, bool]]) -> Intrinsic:
    def run(_: "Machine", call: Call, arguments: tuple[Value, ...]) -> Value:
        kind = kind_of(call.operands[0].kind)
        if kind is None:
            raise Unsupported(f"calls of {call.callee}")
        if any(one is POISON for one in arguments):
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
        return pick(a, b, key=lambda one: one ^ sign)

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
    def run(_: "Machine", call: Call, arguments: tuple[Value, ...]) -> Value:
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
    """Return a function of real numbers that is NaN or infinite where it is not defined."""

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
    """Return a product and a sum, rounded once where all is finite."""
    found = a * b + c
    if found != found or math.isinf(a) or math.isinf(b) or math.isinf(c):
        return found
    from fractions import Fraction

    exact = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        return float(exact) if exact else found
    except OverflowError:
        return found


def _converted(sign: bool) -> Intrinsic:
    def run(_: "Machine", call: Call, arguments: tuple[Value, ...]) -> Value:
        kind = kind_of(call.returns)
        if kind is None:
            raise Unsupported(f"calls of {call.callee}")
        return saturated(arguments[0], kind.bits, sign)

    return run


def _classified(_: "Machine", call: Call, arguments: tuple[Value, ...]) -> Value:
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


def _size_of(machine: "Machine", call: Call, arguments: tuple[Value, ...]) -> Value:
    kind = kind_of(call.returns)
    mask = kind.mask if kind else 0
    address = arguments[0]
    region = machine.memory.regions.get(address >> REGION_BITS) if address is not POISON else None
    if region is None or region.made_up:
        return 0 if arguments[1] else mask
    left = region.size - (address & ((1 << REGION_BITS) - 1)) + MIDDLE
    return max(left, 0)


def _reduced(compute: Callable[[int, int], int]) -> Intrinsic:
    def run(_: "Machine", call: Call, arguments: tuple[Value, ...]) -> Value:
        kind = kind_of(call.returns)
        if kind is None:
            raise Unsupported(f"calls of {call.callee}")
        first, *rest = arguments[-1]
        for one in rest:
            first = compute(first, one)
        return first & kind.mask

    return run


def _allocation(machine: "Machine", call: Call, arguments: tuple[Value, ...]) -> Value:
    """Return new memory; null where the world says so, or the size is impossible."""
    name = call.callee.removeprefix("@")
    if any(one is POISON for one in arguments):
        raise Undefined("a call takes poison")
    machine.event(call.callee, arguments)
    size = arguments[-1] * (arguments[0] if name == "calloc" else 1)
    if size > 1 << 30 or not machine.made("ptr", machine.answer_key()):
        return 0
    content = (bytes(size), b"\1" * size) if name == "calloc" and size <= 1 << 16 else None
    address = machine.allocated(Region(size, content, made_up=name == "calloc" and content is None))
    if name == "realloc" and arguments[0]:
        _keep(machine, arguments[0], address, size)
    return address


def _keep(machine: "Machine", old: int, new: int, size: int) -> None:
    """Copy what an allocation holds to a new one."""
    region = machine.memory.region(old)
    kept = min(size, region.size if region is not None else size, 1 << 12)
    content, marks = machine.memory.raw(old, kept)
    if region is None or region.made_up:
        machine.memory.regions[new >> REGION_BITS].made_up = True
    if kept:
        machine.memory.put(new, content, marks)


def _returned_copy(machine: "Machine", call: Call, arguments: tuple[Value, ...]) -> Value:
    _copy(machine, call, arguments[:3])
    return arguments[0]


def _returned_fill(machine: "Machine", _: Call, arguments: tuple[Value, ...]) -> Value:
    target, byte, size = arguments
    machine.filled(target, byte & 255, size)
    return target


def _single_or(kind: Kind, value: float) -> Value:
    return single(value) if kind.size == 4 else value


_LIBRARY: Mapping[str, Intrinsic] = {
    **dict.fromkeys(("memcpy", "memmove"), _returned_copy),
    **dict.fromkeys(("malloc", "calloc", "realloc"), _allocation),
    "memset": _returned_fill,
}
_INTRINSICS: Mapping[str, Intrinsic] = {
    **dict.fromkeys(("dbg", "lifetime.end", "donothing", "sideeffect", "pseudoprobe"), _none),
    **dict.fromkeys(("prefetch", "experimental.noalias.scope.decl", "var.annotation"), _none),
    **dict.fromkeys(("invariant.end", "va_end", "stackrestore", "clear_cache"), _none),
    **dict.fromkeys(("expect", "ptr.annotation", "annotation", "launder.invariant.group"), _first),
    **dict.fromkeys(("strip.invariant.group", "threadlocal.address", "ssa.copy"), _first),
    **dict.fromkeys(("arithmetic.fence", "canonicalize", "expect.with.probability"), _first),
    **dict.fromkeys(("memcpy", "memmove"), _copy),
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
    **dict.fromkeys(("rint", "nearbyint", "roundeven"), _number(_rounded(lambda value: abs(round(value))))),
    **dict.fromkeys(("trap", "ubsantrap"), _trap),
    **{name: _three_way(name) for name in ("scmp", "ucmp")},
    "debugtrap": lambda machine, call, _: machine.event(call.callee, ()),
    "assume": _assume,
    "memset": _fill,
    "lifetime.start": _begins,
    "va_start": _variadic,
    "va_copy": _copied_list,
    "stacksave": lambda *_: STACK,
    "is.constant": lambda *_: 0,
    "eh.typeid.for": lambda _, call, __: len(call.operands) + 1,
    "ctpop": _number(lambda _, value: value.bit_count()),
    "ctlz": _number(_leading),
    "cttz": _number(_trailing),
    "abs": _number(_absolute),
    "bswap": _number(lambda kind, value: int.from_bytes(value.to_bytes(kind.size, "little"), "big")),
    "bitreverse": _number(lambda kind, value: int(f"{value:0{kind.bits}b}"[::-1], 2)),
    "fshl": _number(_funnel(left=True)),
    "fshr": _number(_funnel(left=False)),
    "fabs": _number(lambda _, value: abs(value)),
    "copysign": _number(lambda _, value, sign: math.copysign(value, sign)),
    "sqrt": _number(_function(math.sqrt)),
    "floor": _number(_rounded(lambda value: math.floor(value))),
    "ceil": _number(_rounded(lambda value: math.ceil(value))),
    "trunc": _number(_rounded(lambda value: math.trunc(value))),
    "round": _number(_rounded(_half_away)),
    "fma": _number(_fused),
    "fmuladd": _number(lambda kind, a, b, c: _single_or(kind, a * b) + c),
    "fptosi.sat": _converted(sign=True),
    "fptoui.sat": _converted(sign=False),
    "is.fpclass": _classified,
    "objectsize": _size_of,
    "ptrmask": lambda _, __, arguments: arguments[0] & arguments[1],
    "vector.reduce.add": _reduced(lambda a, b: a + b),
    "vector.reduce.or": _reduced(lambda a, b: a | b),
    "vector.reduce.and": _reduced(lambda a, b: a & b),
    "vector.reduce.xor": _reduced(lambda a, b: a ^ b),
}
