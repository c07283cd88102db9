"""Approximate costs of machine instructions, in cycles of a core that issues four simple ones per cycle.

The figures are rounded from measured throughputs of recent cores (uops.info; Arm's optimisation guide of the
Neoverse N1). They rank choices; they do not predict times.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from irgym.llvmir.ir.syntax import listed

SIMPLE = 0.25
"""Cost of an instruction that is in no table."""

LOAD = 0.75
"""Cost of a separate load."""

FOLDED_LOAD = 0.5
"""Cost of a load folded into another instruction."""

STORE = 1.0
"""Cost of a store."""

Table = Sequence[tuple[re.Pattern[str], float]]


def _table(*entries: tuple[str, float]) -> Table:
    return tuple((re.compile(pattern), cost) for pattern, cost in entries)


X86 = _table(
    (r"div[bwlq]|idiv[bwlq]", 20.0),
    (r"v?(?:div|sqrt)[sp][sd]", 4.5),
    (r"f(?:i?div|sqrt)", 15.0),
    (r"i?mul[bwlq]|mulx", 1.0),
    (r"v?cvt|v?p?mull|v?pmadd", 1.0),
    (r"v?(?:add|sub|mul|min|max)[sp][sd]|vfn?m(?:add|sub)", 0.5),
    (r"call", 2.0),
    (r"push|pop|ret", 1.0),
    (r"j|set|cmov|lea|bs[fr]|[lt]zcnt|popcnt|movabs|cl?td|cqto", 0.5),
)
"""Costs on x86 by prefix of the mnemonic, first match; memory operands are added."""

AARCH64 = _table(
    (r"[su]div", 12.0),
    (r"fdiv|fsqrt", 7.0),
    (r"bl", 2.0),
    (r"ret|br\b", 1.0),
    (r"m(?:add|sub|ul|neg)|[su]m(?:ull|addl|subl|ulh)", 1.0),
    (r"[su]cvtf|fcvt", 1.0),
    (r"fn?m(?:add|sub|ul)|fadd|fsub|fmin|fmax", 0.5),
    (r"b|cb|tb", 0.5),
    (r"ldp", 1.25),
    (r"ld", 1.0),
    (r"stp", 1.5),
    (r"st", 1.25),
)
"""Costs on AArch64, likewise; loads and stores are separate instructions."""

_NO_ACCESS = re.compile(r"lea|nop|prefetch|call|j")
_COMPARES = re.compile(r"cmp|test|v?u?comis|bt[lqw]?$|push|v?ptest|i?div|i?mul[bwlq]?$")
_MOVES = re.compile(r"v?mov|f(?:ld|stp?|ild|istp)")


def x86(mnemonic: str, operands: str) -> float:
    """Return the cost of an x86 instruction in AT&T syntax."""
    base = _cost(mnemonic, "x86")
    if "(" not in operands and _plain(operands):
        return base
    if _NO_ACCESS.match(mnemonic):
        return base
    in_memory = [_in_memory(operand) for operand in listed(operands)]
    if not any(in_memory):
        return base
    moves = bool(_MOVES.match(mnemonic))
    if not in_memory[-1] or _COMPARES.match(mnemonic):
        return base + (LOAD if moves else FOLDED_LOAD)
    return base + STORE + (0.0 if moves or mnemonic.startswith("set") else LOAD)


def aarch64(mnemonic: str, operands: str) -> float:
    """Return the cost of an AArch64 instruction."""
    del operands
    return _cost(mnemonic, "aarch64")


COSTS: Mapping[str, Callable[[str, str], float]] = {"x86_64": x86, "i686": x86, "aarch64": aarch64}
"""Cost functions by architecture."""

_TABLES = {"x86": X86, "aarch64": AARCH64}


@cache
def _cost(mnemonic: str, table: str) -> float:
    return next((cost for pattern, cost in _TABLES[table] if pattern.match(mnemonic)), SIMPLE)


def _plain(operands: str) -> bool:
    """Say whether all operands are plainly registers or immediates."""
    return all(part.lstrip()[:1] in ("%", "$", "") for part in operands.split(","))


def _in_memory(operand: str) -> bool:
    return not operand.startswith(("%", "$", "{", "*"))
