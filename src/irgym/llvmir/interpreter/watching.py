"""Features of an instruction's operands: the cases that tell similar operations apart.

Signed and unsigned operations differ for negative numbers only, comparisons at and next to ties, and those of
floating-point numbers at NaN, infinities and zeros.
"""

import math
from collections.abc import Iterator

from irgym.llvmir.interpreter.numbers import Value
from irgym.llvmir.interpreter.poison import POISON

Feature = tuple[str, str]
"""A result and a case."""

CASES = {
    "icmp": ("tie", "above", "below", "negative", "other negative"),
    "fcmp": ("tie", "nan", "other nan"),
    "ashr": ("negative",),
    "lshr": ("negative",),
    "sext": ("negative",),
    "zext": ("negative",),
    "trunc": ("negative",),
    **dict.fromkeys(("sdiv", "udiv", "srem", "urem"), ("negative", "other negative", "tie")),
    **dict.fromkeys(
        ("fadd", "fsub", "fmul", "fdiv"), ("zero result", "minus zero result", "nan", "infinite")
    ),
    "fneg": ("zero result", "minus zero result", "nan", "infinite"),
    "fptosi": ("negative",),
    "sitofp": ("negative",),
    "uitofp": ("negative",),
}
"""Cases of interest by operation."""


def cases(operands: tuple[Value, ...], result: Value, sign: int) -> Iterator[str]:
    """Yield the cases in which some operands fall.

    Args:
        operands: One or two numbers.
        result: Result of the instruction.
        sign: The sign bit of integers.
    """
    if any(value is POISON or isinstance(value, tuple) for value in (*operands, result)):
        return
    first, second = operands[0], operands[-1]
    if isinstance(first, float):
        yield from _floating(first, second, result)
        return
    if first & sign:
        yield "negative"
    if len(operands) > 1:
        if second & sign:
            yield "other negative"
        if -2 < first - second < 2:
            yield ("tie", "above", "below")[first - second]


def _floating(first: float, second: float, result: Value) -> Iterator[str]:
    if first == second:
        yield "tie"
    if first != first:
        yield "nan"
    if second != second:
        yield "other nan"
    if math.isinf(first) or math.isinf(second):
        yield "infinite"
    if isinstance(result, float) and result == 0.0:
        yield "minus zero result" if math.copysign(1.0, result) < 0 else "zero result"


def wished(case: str, operands: tuple[Value, ...], sign: int) -> Iterator[tuple[int, Value]]:
    """Yield values of operands for which a case arises: place and value."""
    for place, other in ((0, operands[-1]), (len(operands) - 1, operands[0])):
        match case:
            case "tie":
                yield place, other
            case "above" | "below" if not isinstance(other, float):
                yield place, other + (1 if (case == "above") == (place == 0) else -1)
            case "negative" | "other negative" if not isinstance(operands[place], float):
                if (place == 0) == (case == "negative"):
                    yield from (
                        (place, value) for value in (operands[place] | sign, -1, -7, sign, -(1 << 20))
                    )
            case "nan" | "other nan":
                if (place == 0) == (case == "nan"):
                    yield place, math.nan
            case "infinite":
                yield place, math.inf
            case "zero result" | "minus zero result":
                yield from ((place, value) for value in (0.0, -0.0))
                if isinstance(other, float):
                    yield from ((place, value) for value in (-other, other))
            case _:
                pass
