"""Integer operations as z3 terms, and the conditions under which their results are poison.

From the LLVM Language Reference Manual, release 22.
"""

from collections.abc import Callable, Mapping
from typing import Any

from irgym.llvmir.ir.instruction import Instruction

Flags = frozenset[str]

Operation = Callable[[Any, Flags, Any, Any], tuple[Any, list[Any]]]
"""Takes z3, flags and two terms; returns the result, and conditions under which it is poison or undefined."""


def _add(z3: Any, flags: Flags, first: Any, second: Any) -> tuple[Any, list[Any]]:
    poison: list[Any] = []
    if "nuw" in flags:
        poison.append(z3.Not(z3.BVAddNoOverflow(first, second, False)))
    if "nsw" in flags:
        poison += [
            z3.Not(z3.BVAddNoOverflow(first, second, True)),
            z3.Not(z3.BVAddNoUnderflow(first, second)),
        ]
    return first + second, poison


def _sub(z3: Any, flags: Flags, first: Any, second: Any) -> tuple[Any, list[Any]]:
    poison: list[Any] = []
    if "nuw" in flags:
        poison.append(z3.ULT(first, second))
    if "nsw" in flags:
        poison += [
            z3.Not(z3.BVSubNoOverflow(first, second)),
            z3.Not(z3.BVSubNoUnderflow(first, second, True)),
        ]
    return first - second, poison


def _mul(z3: Any, flags: Flags, first: Any, second: Any) -> tuple[Any, list[Any]]:
    poison: list[Any] = []
    if "nuw" in flags:
        poison.append(z3.Not(z3.BVMulNoOverflow(first, second, False)))
    if "nsw" in flags:
        poison += [
            z3.Not(z3.BVMulNoOverflow(first, second, True)),
            z3.Not(z3.BVMulNoUnderflow(first, second)),
        ]
    return first * second, poison


def _shl(z3: Any, flags: Flags, first: Any, second: Any) -> tuple[Any, list[Any]]:
    result = first << second
    poison = [z3.UGE(second, first.size())]
    if "nuw" in flags:
        poison.append(z3.LShR(result, second) != first)
    if "nsw" in flags:
        poison.append((result >> second) != first)
    return result, poison


def _lshr(z3: Any, flags: Flags, first: Any, second: Any) -> tuple[Any, list[Any]]:
    result = z3.LShR(first, second)
    exact = [(result << second) != first] if "exact" in flags else []
    return result, [z3.UGE(second, first.size()), *exact]


def _ashr(z3: Any, flags: Flags, first: Any, second: Any) -> tuple[Any, list[Any]]:
    result = first >> second
    exact = [(result << second) != first] if "exact" in flags else []
    return result, [z3.UGE(second, first.size()), *exact]


def _udiv(z3: Any, flags: Flags, first: Any, second: Any) -> tuple[Any, list[Any]]:
    exact = [z3.URem(first, second) != 0] if "exact" in flags else []
    return z3.UDiv(first, second), [second == 0, *exact]


def _sdiv(z3: Any, flags: Flags, first: Any, second: Any) -> tuple[Any, list[Any]]:
    exact = [z3.SRem(first, second) != 0] if "exact" in flags else []
    return first / second, [second == 0, _overflows(z3, first, second), *exact]


def _urem(z3: Any, flags: Flags, first: Any, second: Any) -> tuple[Any, list[Any]]:
    del flags
    return z3.URem(first, second), [second == 0]


def _srem(z3: Any, flags: Flags, first: Any, second: Any) -> tuple[Any, list[Any]]:
    del flags
    return z3.SRem(first, second), [second == 0, _overflows(z3, first, second)]


def _overflows(z3: Any, first: Any, second: Any) -> Any:
    return z3.And(first == z3.BitVecVal(1 << (first.size() - 1), first.size()), second == -1)


def _or(z3: Any, flags: Flags, first: Any, second: Any) -> tuple[Any, list[Any]]:
    del z3
    return first | second, [(first & second) != 0] if "disjoint" in flags else []


ARITHMETIC: Mapping[str, Operation] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "shl": _shl,
    "lshr": _lshr,
    "ashr": _ashr,
    "udiv": _udiv,
    "sdiv": _sdiv,
    "urem": _urem,
    "srem": _srem,
    "or": _or,
    "and": lambda _, __, first, second: (first & second, []),
    "xor": lambda _, __, first, second: (first ^ second, []),
}
"""Operations on two integers, by name."""

COMPARED: Mapping[str, Callable[[Any, Any, Any], Any]] = {
    "eq": lambda _, first, second: first == second,
    "ne": lambda _, first, second: first != second,
    "slt": lambda _, first, second: first < second,
    "sle": lambda _, first, second: first <= second,
    "sgt": lambda _, first, second: first > second,
    "sge": lambda _, first, second: first >= second,
    "ult": lambda z3, first, second: z3.ULT(first, second),
    "ule": lambda z3, first, second: z3.ULE(first, second),
    "ugt": lambda z3, first, second: z3.UGT(first, second),
    "uge": lambda z3, first, second: z3.UGE(first, second),
}
"""Comparisons of two integers, by name."""


def resized(z3: Any, cast: Instruction, bits: Any, width: int) -> tuple[Any, list[Any]] | None:
    """Convert an integer or an address; None for other conversions.

    Args:
        z3: The module `z3`.
        cast: The conversion.
        bits: The operand.
        width: Width of the result in bits.

    Returns:
        The result, and the conditions under which it is poison.
    """
    more = width - bits.size()
    match cast.opcode:
        case "zext" | "ptrtoint" | "ptrtoaddr" | "inttoptr" if more >= 0:
            negative = [bits < 0] if "nneg" in cast.flags else []
            return z3.ZeroExt(more, bits), negative
        case "sext":
            return z3.SignExt(more, bits), []
        case "trunc" | "ptrtoint" | "ptrtoaddr" | "inttoptr":
            result = z3.Extract(width - 1, 0, bits)
            poison: list[Any] = []
            if "nuw" in cast.flags:
                poison.append(z3.ZeroExt(-more, result) != bits)
            if "nsw" in cast.flags:
                poison.append(z3.SignExt(-more, result) != bits)
            return result, poison
        case "bitcast" if not more:
            return bits, []
        case _:
            return None
