"""The scalars of a type's values, and their widths."""

import re
from collections.abc import Sequence

from irgym.llvmir.ir.syntax import listed

_COUNTED = re.compile(r"(\d+) x (.*)")
_FLOATS = {"half": 16, "bfloat": 16, "float": 32, "double": 64, "x86_fp80": 80, "fp128": 128}

WIDEST, MOST = 1024, 64
"""Greatest width of an integer, and number of elements of a value, for which proofs are tried."""


class UnsupportedError(Exception):
    """The expression has no translation to z3."""


def pointer_bits(target: Sequence[str]) -> int:
    """Return the width of a pointer in bits.

    Args:
        target: The lines that name a module's target.
    """
    layout = next((line for line in target if line.startswith("target datalayout")), "")
    found = re.search(r"\bp:(\d+):", layout)
    return int(found[1]) if found else 64


def bits_of_lanes(kind: str, pointer: int) -> tuple[int, ...]:
    """Return the width in bits of each scalar in a value of a type.

    Args:
        kind: The type, as LLVM prints it.
        pointer: Width of a pointer in bits.

    Raises:
        UnsupportedError: The type is not supported, or has too many scalars.
    """
    if kind[:1] == "i" and kind[1:].isdigit() and int(kind[1:]) <= WIDEST:
        return (int(kind[1:]),)
    if kind == "ptr":
        return (pointer,)
    if kind in _FLOATS:
        return (_FLOATS[kind],)
    if kind[:1] in "<[{" and kind[-1:] in ">]}":
        return sum((bits_of_lanes(element, pointer) for element in elements_of(kind)), start=())
    raise UnsupportedError(f"the type {kind}")


def elements_of(kind: str) -> Sequence[str]:
    """Return the types of the elements of a vector, an array or a struct.

    Raises:
        UnsupportedError: There are too many elements, or their number is unknown.
    """
    inner = kind[1:-1].strip()
    if kind.startswith("{"):
        return listed(inner)
    counted = _COUNTED.fullmatch(inner)
    if counted is None or int(counted[1]) > MOST:
        raise UnsupportedError(f"the type {kind}")
    return [counted[2]] * int(counted[1])
