"""The kinds of values that functions read from memory, and where they are in larger ones."""

import re
from collections.abc import Mapping

from irgym.envs.cse.ir.syntax import listed

SIZES: Mapping[str, int] = {
    **{"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "float": 4, "double": 8, "ptr": 8},
    **dict.fromkeys(("code integer", "code float", "code double", "code ptr"), 8),
}
"""Bytes of each kind; those of pointers to code tell what the code returns."""

_REPEATED = re.compile(r"[<\[](\d+) x (.+)[>\]]$")
_MOST = 64


def scalars(kind: str) -> list[tuple[int, str]] | None:
    """Return the places and the kinds of the values that a type of LLVM consists of; None for other types."""
    if kind in SIZES:
        return [(0, kind)]
    if repeated := _REPEATED.match(kind):
        inner, count = scalars(repeated[2]), int(repeated[1])
        if inner is None or count > _MOST:
            return None
        step = size_of(inner)
        return [(number * step + place, one) for number in range(count) for place, one in inner]
    if kind.startswith("{ "):
        return _in_turn(listed(kind[2:-2]))
    return None


def size_of(values: list[tuple[int, str]]) -> int:
    """Return how many bytes some values take, with what aligns the next ones."""
    widest = max((SIZES[kind] for _, kind in values), default=1)
    return -(-max((place + SIZES[kind] for place, kind in values), default=0) // widest) * widest


def _in_turn(kinds: list[str]) -> list[tuple[int, str]] | None:
    found: list[tuple[int, str]] = []
    end = 0
    for kind in kinds:
        inner = scalars(kind)
        if inner is None:
            return None
        widest = max((SIZES[one] for _, one in inner), default=1)
        begin = -(-end // widest) * widest
        found += [(begin + place, one) for place, one in inner]
        end = begin + size_of(inner)
    return found
