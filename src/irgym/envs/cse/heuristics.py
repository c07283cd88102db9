"""What compilers choose without looking at the code: share all, or what a test of costs lets pass."""

from collections.abc import Mapping

from irgym.envs.cse.ir.facts import Facts
from irgym.envs.cse.ir.types import Register

Registers = Mapping[Register, tuple[int, int]]
"""By class, how many registers outlive a call, and how many there are."""

_X86_64: Registers = {"integer": (6, 14), "float": (0, 16), "vector": (0, 16)}

REGISTERS: Mapping[str, Registers] = {
    "x86-64": _X86_64,
    "x86-64-v3": _X86_64,
    "x86-64-v4": {"integer": (6, 14), "float": (0, 32), "vector": (0, 32)},
    "i686": {"integer": (4, 6), "float": (0, 8), "vector": (0, 8)},
    "aarch64": {"integer": (10, 28), "float": (8, 32), "vector": (0, 32)},
}
"""Registers that values may be kept in, by target: those of the C calling conventions, less the stack's and
one that code needs for itself."""


def passes(facts: Facts, target: str) -> bool:
    """Say whether a test of costs lets a candidate be shared.

    It has the form of the one in the .NET JIT (optcse.cpp, `CSE_Heuristic`): what computing the value again
    costs, and reading its operands, against what keeping it does. That depends on whether registers are
    plenty, and on calls.

    Args:
        facts: The candidate.
        target: What code is made for.
    """
    lasting, whole = REGISTERS[target].get(facts.register, (0, 0))
    there = lasting if facts.across_calls else whole
    if facts.pressure < there / 2:
        define, use = 1.0, 1.0
    elif facts.pressure < there:
        define, use = 2.0, 1.0
    else:  # it goes to the stack, and back for every use
        define, use = 2.0, 3.0 if facts.across_calls else 2.0
    keeping = define * facts.made + use * facts.saved
    return keeping <= (facts.cost + facts.reads) * facts.saved
