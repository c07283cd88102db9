"""Layout of LLVM's types: sizes, offsets, and the scalars of aggregates."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from irgym.llvmir.interpreter.poison import Unsupported
from irgym.llvmir.ir.syntax import listed

POINTER = 8
"""Bytes of a pointer."""

_REPEATED = re.compile(r"[<\[](?P<count>\d+) x (?P<inner>.+)[>\]]$")
_INTEGER = re.compile(r"i(\d+)$")
_FLOATS = {"float": 4, "double": 8}


@dataclass(frozen=True)
class Kind:
    """A scalar type, and the promised range of values in memory.

    Attributes:
        name: The type: `i32`, `ptr`, `float`.
        size: Bytes in memory.
        bits: Bits of a value.
        low: Least value by `!range`, unsigned.
        high: One more than the greatest value; equal to `low` if nothing is promised.
    """

    name: str
    size: int
    bits: int
    low: int = 0
    high: int = 0

    @cached_property
    def mask(self) -> int:
        """The greatest unsigned value."""
        return (1 << self.bits) - 1

    @cached_property
    def ones(self) -> bytes:
        """A mark for each byte."""
        return b"\1" * self.size

    @property
    def floating(self) -> bool:
        """Whether values are floating-point numbers."""
        return self.name in _FLOATS


def kind_of(name: str) -> Kind | None:
    """Return the scalar type of a name; None for aggregates and other types."""
    if found := _INTEGER.match(name):
        bits = int(found[1])
        return Kind(name, -(-bits // 8), bits)
    if name == "ptr":
        return Kind(name, POINTER, 8 * POINTER)
    if name in _FLOATS:
        return Kind(name, _FLOATS[name], 8 * _FLOATS[name])
    return None


class Layout:
    """Sizes and offsets of types, named types of a module included.

    Args:
        entries: Definitions of the module by name, each a line.
    """

    def __init__(self, entries: Mapping[str, str]) -> None:
        self._entries = entries
        self._sizes: dict[str, tuple[int, int]] = {}
        self._fields: dict[str, tuple[tuple[int, str], ...]] = {}
        self._scalars: dict[str, tuple[tuple[int, Kind], ...]] = {}

    def size(self, name: str) -> int:
        """Return the size of a type as an array element, in bytes.

        Raises:
            Unsupported: The interpreter has no values of this type.
        """
        return self._measured(name)[0]

    def fields(self, name: str) -> tuple[tuple[int, str], ...]:
        """Return offset and type of each element of a struct, an array or a vector."""
        found = self._fields.get(name)
        if found is None:
            found = self._fields[name] = self._found_fields(self.spelled(name))
        return found

    def scalars(self, name: str) -> tuple[tuple[int, Kind], ...]:
        """Return offset and kind of each scalar in a type, in order."""
        found = self._scalars.get(name)
        if found is None:
            kind = kind_of(name)
            found = ((0, kind),) if kind else tuple(self._inner(name))
            self._scalars[name] = found
        return found

    def packed(self, name: str) -> int:
        """Return the number of bits of a vector whose elements are no whole bytes; 0 for other types."""
        repeated = _REPEATED.match(name) if name.startswith("<") else None
        inner = kind_of(repeated["inner"]) if repeated else None
        return inner.bits * int(repeated["count"]) if repeated and inner and inner.bits % 8 else 0

    def spelled(self, name: str) -> str:
        """Return the definition of a named struct; other types are unchanged."""
        while name.startswith("%"):
            name = self._entries.get(name, "").partition(" = type ")[2]
            if not name or name == "opaque":
                raise Unsupported("a type without a size")
        return name

    def _inner(self, name: str) -> list[tuple[int, Kind]]:
        return [
            (offset + place, kind)
            for offset, inner in self.fields(name)
            for place, kind in self.scalars(inner)
        ]

    def _found_fields(self, name: str) -> tuple[tuple[int, str], ...]:
        if repeated := _REPEATED.match(name):
            inner = repeated["inner"]
            step = self.size(inner)
            return tuple((step * place, inner) for place in range(int(repeated["count"])))
        packed = name.startswith("<{")
        if not packed and not name.startswith("{"):
            raise Unsupported(f"values of type {name}")
        text = name[2:-2] if packed else name[1:-1]
        end = 0
        found: list[tuple[int, str]] = []
        for element in listed(text.strip()) if text.strip() else ():
            size, align = self._measured(element)
            begin = end if packed else -(-end // align) * align
            found.append((begin, element))
            end = begin + size
        return tuple(found)

    def _measured(self, name: str) -> tuple[int, int]:
        """Return size and alignment."""
        if name not in self._sizes:
            self._sizes[name] = self._found_size(self.spelled(name))
        return self._sizes[name]

    def _found_size(self, name: str) -> tuple[int, int]:
        if kind := kind_of(name):
            align = 1 << (kind.size - 1).bit_length()
            return (kind.size if kind.size in (1, 2, 4, 8) else -(-kind.size // align) * align), min(
                align, 16
            )
        if name in ("x86_fp80", "fp128"):
            return 16, 16
        if name in ("half", "bfloat"):
            return 2, 2
        if repeated := _REPEATED.match(name):
            size, align = self._measured(repeated["inner"])
            whole = size * int(repeated["count"])
            if not name.startswith("<"):
                return whole, align
            if bits := self.packed(name):
                whole = -(-bits // 8)
            rounded = 1 << (whole - 1).bit_length()
            return rounded, rounded
        fields = self._found_fields(name)
        sizes = [self._measured(element) for _, element in fields]
        if not fields:
            return 0, 1
        end = fields[-1][0] + sizes[-1][0]
        align = 1 if name.startswith("<{") else max(align for _, align in sizes)
        return -(-end // align) * align, align
