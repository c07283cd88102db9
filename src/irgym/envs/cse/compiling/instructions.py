"""What instructions of processors cost, roughly, in cycles of a core that begins four simple ones in each.

The figures are rounded from measured throughputs of recent cores (uops.info; Arm's optimisation guide of the
Neoverse N1). They order choices; they do not predict times.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from irgym.envs.cse.ir.syntax import listed

SIMPLE = 0.25
"""What an instruction costs that is in no table."""

LOAD = 0.75
"""What a load costs, beside what is done with it."""

FOLDED_LOAD = 0.5
"""The same as a part of another instruction."""

STORE = 1.0
"""What a store costs, beside what is done with it."""

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
"""x86, by how instructions begin, the first that fits; memory operands are added."""

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
"""AArch64, likewise; memory operands are in the instructions themselves."""

_NO_ACCESS = re.compile(r"lea|nop|prefetch|call|j")
_COMPARES = re.compile(r"cmp|test|v?u?comis|bt[lqw]?$|push|v?ptest|i?div|i?mul[bwlq]?$")
_MOVES = re.compile(r"v?mov|f(?:ld|stp?|ild|istp)")


def x86(mnemonic: str, operands: str) -> float:
    """Return what an instruction of x86 costs, in AT&T's syntax."""
    own = _cost(mnemonic, "x86")
    if "(" not in operands and _plain(operands):
        return own
    if _NO_ACCESS.match(mnemonic):
        return own
    parts = listed(operands)
    there = [_in_memory(part) for part in parts]
    if not any(there):
        return own
    moves = bool(_MOVES.match(mnemonic))
    if not there[-1] or _COMPARES.match(mnemonic):
        return own + (LOAD if moves else FOLDED_LOAD)
    return own + STORE + (0.0 if moves or mnemonic.startswith("set") else LOAD)


def aarch64(mnemonic: str, operands: str) -> float:
    """Return what an instruction of AArch64 costs."""
    del operands
    return _cost(mnemonic, "aarch64")


COSTS: Mapping[str, Callable[[str, str], float]] = {"x86_64": x86, "i686": x86, "aarch64": aarch64}
"""Costs by architecture."""

_TABLES = {"x86": X86, "aarch64": AARCH64}


@cache
def _cost(mnemonic: str, table: str) -> float:
    return next((cost for pattern, cost in _TABLES[table] if pattern.match(mnemonic)), SIMPLE)


def _plain(operands: str) -> bool:
    """Say whether all operands are registers or numbers, at a glance."""
    return all(part.lstrip()[:1] in ("%", "$", "") for part in operands.split(","))


def _in_memory(operand: str) -> bool:
    return not operand.startswith(("%", "$", "{", "*"))
