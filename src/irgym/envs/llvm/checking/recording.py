"""Runs of a function in a world, of which what others can observe is recorded.

External functions are answered at random: they return random values, and overwrite some of the memory that
they may write. Functions of the module are executed, so that inlining makes no difference.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from irgym.envs.llvm.checking.reaching import Reach
from irgym.envs.llvm.checking.records import Happening, is_local
from irgym.llvmir.interpreter.calls import Access, Call
from irgym.llvmir.interpreter.layout import Kind
from irgym.llvmir.interpreter.machine import EVENTS
from irgym.llvmir.interpreter.making import ARGUMENTS, SLOTS
from irgym.llvmir.interpreter.memory import KNOWN, Region
from irgym.llvmir.interpreter.memory_map import CODE, GLOBALS, MIDDLE, REGION_BITS, SOLE, STACK
from irgym.llvmir.interpreter.numbers import Value
from irgym.llvmir.interpreter.operands import Operand
from irgym.llvmir.interpreter.poison import POISON, Undefined
from irgym.llvmir.interpreter.running import Running

ALLOCATIONS = EVENTS + ARGUMENTS
"""First key of the results of allocations."""

WORD = Kind("i64", 8, 64)
"""The type as which content is passed by value."""

OFFSETS = (1 << REGION_BITS) - 1
"""Bits of an address within its region."""

_FIRST = STACK >> REGION_BITS
_LOOKED_AT, _MOST_WRITES = 96, 24
_RESULTS, _VARIADIC = 64, 1 << 17
"""Number of the first object that a callee returns as new, and of the first variable arguments."""


@dataclass
class Recording(Running):
    """A run that records what others can observe.

    Args:
        program: The module.
        world: The random world.
        steps: Limit on instructions.
        reference: Record of the original's run to compare with, if any.
        turn: Whether to use the alternative undefined values.

    Attributes:
        initial: Content of random memory, byte by byte.
        allocations: Allocations, in order: function, size, and whether it succeeded.
        happenings: The observable events.
    """

    initial: dict[int, int] = field(default_factory=dict[int, int])
    allocations: list[tuple[str, int, bool]] = field(default_factory=list[tuple[str, int, bool]])
    happenings: list[Happening] = field(default_factory=list[Happening])
    _zeros: set[int] = field(default_factory=set[int])
    _escaped: frozenset[int] = frozenset()
    _lists: int = 0

    def __post_init__(self) -> None:
        """Create an empty memory."""
        super().__post_init__()
        self._reach = Reach(self.program, self.memory)

    def _bits(self, key: int, kind: Kind) -> int:
        bits = super()._bits(key, kind)
        if is_local(bits):
            raise Undefined("an address that nothing outside can know")
        if key >= ARGUMENTS:
            return bits
        drawn = bits.to_bytes(kind.size, "little")
        known = [self.initial.setdefault(key + place, byte) for place, byte in enumerate(drawn)]
        return int.from_bytes(known, "little")

    def _defined(self, name: str, arguments: tuple[Value, ...]) -> Value:
        first = self._regions
        result = super()._defined(name, arguments)
        self.leave(first)
        return result

    def leave(self, first: int) -> None:
        """End the life of the variables after the first ones, as a function returns."""
        for number in range(_FIRST + first + 1, _FIRST + self._regions + 1):
            if number in self.memory.regions:
                self.memory.free(number << REGION_BITS | MIDDLE)

    def _lives(self) -> tuple[frozenset[int], frozenset[int]]:
        """Return the objects whose life ended since the last event, and those that began another life."""
        turns = frozenset(self.memory.turns)
        self.memory.turns.clear()
        ended = turns & self.memory.dead
        return ended, turns - ended

    def by_value(self, operand: Operand, value: Value) -> Value:
        """Return what a callee receives: the content of an argument that is passed by value."""
        if operand.by_value is None:
            return value
        size = self.program.layout.size(operand.by_value)
        content, marks = self.memory.get(value, size, WORD)
        words: list[Value] = []
        for place in range(0, size, WORD.size):
            word, known = content[place : place + WORD.size], marks[place : place + WORD.size]
            if known.count(KNOWN) == WORD.size:
                words.append(int.from_bytes(word, "little"))
            else:
                words += [byte if mark == KNOWN else POISON for byte, mark in zip(word, known, strict=True)]
        return tuple(words)

    def nameless(self, value: Value) -> Value:
        """Return a value without the numbers of private regions, which differ from form to form."""
        if isinstance(value, tuple):
            return tuple(map(self.nameless, value))  # pyright: ignore[reportUnknownArgumentType]
        return value & OFFSETS if isinstance(value, int) and self._reach.private(value) else value

    def recorded(
        self, what: object, arguments: tuple[Any, ...], call: Call | None, access: Access
    ) -> Happening:
        """Return an event with what others see of it, and what they do.

        Args:
            what: Name of the function, or what else happens.
            arguments: What it takes.
            call: The call, if it is one.
            access: Memory that it may access.
        """
        changes = self.memory.changes()
        ended, renewed = self._lives()
        self._escaped -= ended | renewed
        taken = list(zip(call.operands, arguments, strict=False)) if call is not None else []  # pyright: ignore[reportArgumentType]
        captured = self._reach.pointed(tuple(value for operand, value in taken if operand.captured))
        self._escaped = self._reach.behind(
            {*self._escaped, *captured, *self._reach.stored(changes, self._escaped)}
        )
        pointers = [(operand, value >> REGION_BITS) for operand, value in taken if _pointer(operand, value)]
        lent = {number for _, number in pointers if self._reach.private(number << REGION_BITS)}
        seen = self._reach.behind({*self._escaped, *lent})
        read = frozenset(number for operand, number in pointers if operand.readable)
        scope = None if access.reads_rest else read if access.reads_arguments else frozenset[int]()
        answer, writes, handed = None, tuple[tuple[int, Kind, int], ...](), frozenset[int]()
        if call is not None:
            key = EVENTS + len(self.happenings) * SLOTS
            written = {number for operand, number in pointers if operand.writable}
            handed = frozenset(
                {*(written if access.writes_arguments else ()), *(seen if access.writes_rest else ())}
            )
            writes = tuple(islice(self._writes(access, key, handed), _MOST_WRITES))
            answer = self.answered(call, key)
        return Happening(
            what,
            arguments,
            changes,
            answer,
            writes,
            seen=seen,
            scope=scope,
            handed=handed,
            escaped=self._escaped,
            ended=ended,
            renewed=renewed,
        )

    def _writes(self, access: Access, key: int, handed: frozenset[int]) -> Iterator[tuple[int, Kind, int]]:
        """Yield the writes of a call."""
        for address, kind in islice(self._writable(access, handed), _LOOKED_AT):
            if self.world.writes(key ^ address, kind.name == "ptr"):
                yield address, kind, self.world.bits(key ^ address, kind) & kind.mask

    def _writable(self, access: Access, handed: frozenset[int]) -> Iterator[tuple[int, Kind]]:
        """Yield places that a call may write, those touched last first."""
        for address, kind in reversed(self.memory.touched.items()):
            number = address >> REGION_BITS
            allowed = number in handed or (access.writes_other(kind) and not self._reach.private(address))
            if allowed and number not in self.memory.dead and not self._constant(address):
                yield address, kind

    def _constant(self, address: int) -> bool:
        if not GLOBALS <= address < CODE:
            return False
        region = self.region_at(address)
        return region is not None and region.constant

    def answered(self, call: Call, key: int) -> Value:
        """Return the random result of a call."""
        if call.returns == "void":
            return None
        if call.returns == "ptr" and "noalias" in call.words and not call.quiet:
            return SOLE + (_RESULTS + len(self.happenings) << REGION_BITS) + MIDDLE
        never_null = "nonnull" in call.words or "dereferenceable" in call.words
        return self.made(call.returns, key, never_null)

    def variadic(self) -> int:
        """Return the address of the variable arguments of a function: the caller's memory."""
        self._lists += 1
        return SOLE + (_VARIADIC + self._lists << REGION_BITS) + MIDDLE

    def allocate(self, name: str, size: int, zeros: bool) -> int:
        """Return new memory of some bytes; 0 if the world has none left."""
        key = ALLOCATIONS + len(self.allocations) * SLOTS
        given = size <= 1 << 30 and bool(self.made("ptr", key))
        self.allocations.append((name, size, given))
        if not given:
            return 0
        address = self.allocated(Region(size, zeros=zeros))
        if zeros:
            self._zeros.add(address >> REGION_BITS)
        return address


def _pointer(operand: Operand, value: Value) -> bool:
    return operand.kind == "ptr" and isinstance(value, int) and value > 0
