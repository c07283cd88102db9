"""Memory that code outside the module can reach."""

import struct
from collections.abc import Iterable, Mapping
from typing import cast

from irgym.llvmir.interpreter.memory import PAGE, Memory
from irgym.llvmir.interpreter.memory_map import CODE, GLOBALS, REGION_BITS, SOLE, STACK
from irgym.llvmir.interpreter.numbers import Value
from irgym.llvmir.interpreter.program import Program

_WORDS = struct.Struct(f"<{PAGE // 8}Q")


class Reach:
    """Says which objects of a run can be reached from where.

    Private objects are variables and allocations of the run, and variables of the module with internal
    linkage: nothing outside reaches them unless it is given their address.

    Args:
        program: The module.
        memory: Memory of the run.
    """

    def __init__(self, program: Program, memory: Memory) -> None:
        self._program = program
        self._memory = memory

    def private(self, address: int) -> bool:
        """Say whether an address is that of a private object."""
        if address < GLOBALS or address >= SOLE:
            return False
        return address >= STACK or (address < CODE and self._program.internal(address >> REGION_BITS))

    def behind(self, numbers: Iterable[int]) -> frozenset[int]:
        """Return the living private regions to which pointers lead from some, these included."""
        found: set[int] = set()
        waiting = list(numbers)
        while waiting:
            number = waiting.pop()
            if number not in found and number not in self._memory.dead:
                found.add(number)
                waiting += self._inside(number)
        return frozenset(found)

    def stored(self, changes: Mapping[int, int], seen: frozenset[int]) -> set[int]:
        """Return the private regions to which pointers were written where others see them.

        Args:
            changes: The content of written bytes by address.
            seen: The private regions that others see.
        """
        found: set[int] = set()
        for address in changes:
            if not address % 8 and (address >> REGION_BITS in seen or not self.private(address)):
                content, marks = self._memory.raw(address, 8)
                word = int.from_bytes(content, "little")
                if marks == b"\1" * 8 and self.private(word):
                    found.add(word >> REGION_BITS)
        return found

    def pointed(self, values: Value) -> set[int]:
        """Return the private regions to which some values point."""
        if isinstance(values, tuple):
            elements = cast(tuple[Value, ...], values)
            return {number for value in elements for number in self.pointed(value)}
        if isinstance(values, int) and self.private(values):
            return {values >> REGION_BITS}
        return set()

    def _inside(self, number: int) -> list[int]:
        found: list[int] = []
        for page in self._memory.pages_of(number):
            words = _WORDS.unpack(self._memory.pages[page][0])
            found += [word >> REGION_BITS for word in words if word >= GLOBALS and self.private(word)]
        return found
