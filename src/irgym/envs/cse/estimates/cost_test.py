"""The cost test: a heuristic of compilers that decides for each candidate alone whether sharing it pays."""

from collections.abc import Mapping

from irgym.envs.cse.estimates.facts import Facts
from irgym.llvmir.ir.types import Register

Registers = Mapping[Register, tuple[int, int]]
"""By class, the number of callee-saved registers and of all registers."""

_X86_64: Registers = {"integer": (6, 14), "float": (0, 16), "vector": (0, 16)}

REGISTERS: Mapping[str, Registers] = {
    "x86-64": _X86_64,
    "x86-64-v3": _X86_64,
    "x86-64-v4": {"integer": (6, 14), "float": (0, 32), "vector": (0, 32)},
    "i686": {"integer": (4, 6), "float": (0, 8), "vector": (0, 8)},
    "aarch64": {"integer": (10, 28), "float": (8, 32), "vector": (0, 32)},
}
"""Registers for values by target: those of the C calling conventions, without the stack pointer and one
scratch register."""


def passes(facts: Facts, target: str) -> bool:
    """Say whether a candidate passes the cost test.

    The test has the form of the .NET JIT's (optcse.cpp, `CSE_Heuristic`): it compares the cost of computing
    the value again, reads of operands included, with the cost of keeping it, which depends on register
    pressure and on calls.

    Args:
        facts: The candidate.
        target: Name of the target.
    """
    lasting, total = REGISTERS[target].get(facts.register, (0, 0))
    available = lasting if facts.across_calls else total
    if facts.pressure < available / 2:
        define, use = 1.0, 1.0
    elif facts.pressure < available:
        define, use = 2.0, 1.0
    else:  # the value is spilled, and reloaded for every use
        define, use = 2.0, 3.0 if facts.across_calls else 2.0
    keeping = define * facts.made + use * facts.saved
    return keeping <= (facts.cost + facts.reads) * facts.saved
