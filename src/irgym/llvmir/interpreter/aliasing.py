"""Type-based aliasing: which accesses LLVM takes for accesses of different memory, by their `!tbaa` tags.

The rules are those of LLVM's `TypeBasedAliasAnalysis` for struct-path tags: two accesses may overlap if one
is to the type of the other or to a part of it at the same offset.
"""

import re
from collections.abc import Mapping
from functools import cache

from irgym.llvmir.ir.syntax import listed

_NODE = re.compile(r"(?:distinct )?!\{(?P<inside>.*)\}$")
_DEEPEST = 64


class Aliasing:
    """The types and tags of a module.

    Args:
        entries: Definitions of the module by name, each a line.
    """

    def __init__(self, entries: Mapping[str, str]) -> None:
        self._entries = entries
        self._known: dict[tuple[str, str], bool] = {}

    def __call__(self, tag: str, other: str) -> bool:
        """Say whether accesses with two tags may overlap; unknown forms of tags may."""
        pair = (tag, other) if tag < other else (other, tag)
        found = self._known.get(pair)
        if found is None:
            found = self._known[pair] = self._overlap(*map(self._tag, pair))
        return found

    def _overlap(self, first: tuple[str, str, int] | None, second: tuple[str, str, int] | None) -> bool:
        if first is None or second is None:
            return True
        above = self._ancestors(first[1])
        common = next((node for node in self._ancestors(second[1]) if node in above), None)
        if common is None:
            return True
        for base, part in ((first, second), (second, first)):
            found = self._part(base, part, common)
            if found is not None:
                return found
        return False

    def _part(self, base: tuple[str, str, int], part: tuple[str, str, int], common: str) -> bool | None:
        """Say whether an access may be to a part of what another accesses; None if the types do not tell."""
        node, accessed, offset = base
        if node == accessed == common:
            return True
        for _ in range(_DEEPEST):
            if node == part[0]:
                return offset == part[2] or node == accessed or part[0] == part[1]
            fields = self._fields(node)
            below = [(start, kind) for kind, start in fields if start <= offset]
            if not below:
                return None
            start, node = max(below, key=lambda field: field[0])
            offset -= start
        return None

    def _ancestors(self, node: str) -> list[str]:
        found: list[str] = []
        while node and node not in found:
            found.append(node)
            fields = self._fields(node)
            node = fields[0][0] if fields else ""
        return found

    def _fields(self, node: str) -> list[tuple[str, int]]:
        """Return the types of a type's fields with their offsets; a scalar has its parent as only field."""
        parts = self._parts(node)[1:]
        found: list[tuple[str, int]] = []
        for place in range(0, len(parts), 2):
            offset = parts[place + 1].rpartition(" ")[2] if place + 1 < len(parts) else "0"
            found.append((parts[place], int(offset)))
        return found

    def _tag(self, name: str) -> tuple[str, str, int] | None:
        parts = self._parts(name)
        if len(parts) < 3 or not parts[0].startswith("!") or not parts[2].startswith("i64 "):
            return None
        return parts[0], parts[1], int(parts[2][4:])

    def _parts(self, name: str) -> list[str]:
        return _parts(self._entries.get(name, ""))


@cache
def _parts(line: str) -> list[str]:
    match = _NODE.match(line.partition(" = ")[2])
    return listed(match["inside"]) if match else []
