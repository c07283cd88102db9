"""Runs of a function in a random world, which are recorded or compared with a recorded run."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from irgym.llvmir.interpreter.calls import Call
from irgym.llvmir.interpreter.layout import Kind
from irgym.llvmir.interpreter.making import SLOTS
from irgym.llvmir.interpreter.memory_map import GLOBALS, HEAP, REGION_BITS, STACK
from irgym.llvmir.interpreter.numbers import Value
from irgym.llvmir.interpreter.poison import POISON, Left, Undefined, Unwound
from irgym.llvmir.interpreter.program import Code
from irgym.llvmir.interpreter.running import Running
from irgym.llvmir.interpreter.traces import Differs, Event, Trace, plain, same

EVENTS, PURE = 1 << 61, 1 << 62
"""First keys of the results of calls, and of the results of pure functions."""

_LOOKED_AT, _MOST_WRITES = 96, 24


@dataclass
class Machine(Running):
    """A run.

    Args:
        program: The module.
        world: The random world.
        steps: Limit on instructions.
        reference: Trace of the run to compare with, if any.
        turn: Whether to use the alternative undefined values.
    """

    _events: list[Event] = field(default_factory=list[Event])
    _expected: dict[int, int] = field(default_factory=dict[int, int])

    def run(self, code: Code) -> Trace:
        """See `Running.run`."""
        steps = self.steps
        blocks: set[int] = set()
        ended = ""
        try:
            arguments = tuple(
                self.argument(place, parameter) for place, parameter in enumerate(code.parameters)
            )
            result = self.executed(code, arguments, blocks)
        except Left as error:
            ended, result = str(error), None
        except Unwound:
            ended, result = "an exception", None
        changes = self.memory.changes()
        outside = {place: byte for place, byte in changes.items() if not STACK <= place < HEAP}
        trace = Trace(
            tuple(self._events),
            result,
            outside,
            ended,
            self.drawn,
            self.seen,
            frozenset(self.edges),
            frozenset(blocks),
            frozenset(self.features),
            self.operands,
            steps - self.steps + self.work,
            self.vague or self.memory.undefined,
        )
        if self.reference is not None:
            self._compare_ends(self.reference, trace)
        return trace

    def external(self, call: Call, target: object, arguments: tuple[Value, ...], invoked: bool) -> Value:
        """See `Running.external`."""
        if poisoned(arguments):
            if call.pure:
                return POISON
            raise Undefined("a call takes poison")
        if call.pure:
            key = PURE + SLOTS * (hash((callee_number(target), plain(arguments))) & 0xFFFFFFFFFFFF)
            return self._answer(call, key)
        event = self._happens(target, arguments, call, invoked)
        if "noreturn" in call.words:
            raise Left("a call that does not return")
        if event.thrown:
            raise Unwound
        return event.answer

    def event(self, what: str, arguments: tuple[Value, ...]) -> None:
        """Record an observable event, or compare it with the reference."""
        self._happens(what, arguments, None, False)

    def _happens(self, what: object, arguments: object, call: Call | None, invoked: bool) -> Event:
        changes = self.memory.changes()
        passed = plain(arguments)
        number = len(self._events)
        if self.reference is not None:
            event = self._compare(self.reference, number, what, passed, changes)
        else:
            event = Event(what, passed, changes)
            if call is not None:
                event = self._answered(event, call, number, invoked, arguments)
        self._events.append(event)
        for address, kind, bits in event.writes:
            self.memory.store(address, kind, bits)
        self.memory.written.clear()
        if call is not None:
            self._hand_over(call, arguments)
        return event

    def _answered(self, event: Event, call: Call, number: int, invoked: bool, arguments: Any) -> Event:
        key = EVENTS + number * SLOTS
        thrown = invoked and "nounwind" not in call.words and self.world.throws(key + SLOTS - 1)
        writes = tuple(self._writes(call, key, arguments))
        return Event(event.what, event.arguments, event.changes, self._answer(call, key), writes, thrown)

    def answer_key(self) -> int:
        """Return the key of the next event's result."""
        return EVENTS + len(self._events) * SLOTS

    def _answer(self, call: Call, key: int) -> Value:
        if call.returns == "void":
            return None
        never_null = "nonnull" in call.words or "dereferenceable" in call.words
        return self.made(call.returns, key, never_null)

    def _writes(self, call: Call, key: int, arguments: Any) -> Iterable[tuple[int, Kind, int]]:
        access = call.access
        if not (access.writes_arguments or access.writes_rest or access.writes_errno):
            return
        reached = self._reached(call, arguments)
        count = 0
        for address, kind in list(reversed(self.memory.touched.items()))[:_LOOKED_AT]:
            region = address >> REGION_BITS
            outside = address < STACK or address >= HEAP or region in self.escaped
            if not (region in reached or (access.writes_other(kind) and outside)):
                continue
            if GLOBALS <= address < STACK and self._constant(address):
                continue
            if self.world.writes(key ^ address, kind.name == "ptr"):
                yield address, kind, self.world.bits(key ^ address, kind) & kind.mask
                count += 1
                if count >= _MOST_WRITES:
                    return

    def _reached(self, call: Call, arguments: Any) -> set[int]:
        """Return the regions that a call may write through its arguments."""
        if not call.access.writes_arguments:
            return set()
        return {
            value >> REGION_BITS
            for operand, value in zip(call.operands, arguments, strict=False)
            if operand.kind == "ptr" and not {"readonly", "readnone"} & {*operand.attributes}
        }

    def _hand_over(self, call: Call, arguments: Any) -> None:
        """Mark the variables whose addresses a call takes as known to others."""
        reached = self._reached(call, arguments)
        for operand, value in zip(call.operands, arguments, strict=False):
            if operand.kind != "ptr" or value < STACK:
                continue
            region = value >> REGION_BITS
            if region in reached and region in self.memory.regions:
                self.memory.regions[region].made_up = True
            if operand.named("captures") != "none" and "nocapture" not in operand.attributes:
                self.escaped.add(region)

    def _constant(self, address: int) -> bool:
        region = self.program.region(address >> REGION_BITS << REGION_BITS, self.world.changed)
        return region is not None and region.constant

    def landed(self, kind: str) -> Value:
        """Return the value of a caught exception."""
        return self.made(kind, EVENTS + len(self._events) * SLOTS + SLOTS // 2)

    def unwinds(self) -> None:
        """Unwind with an exception."""
        raise Unwound

    def _compare(
        self, reference: Trace, number: int, what: object, arguments: object, changes: Mapping[int, int]
    ) -> Event:
        if number >= len(reference.events):
            raise Differs("there is an additional call or access")
        event = reference.events[number]
        if event.what != what or event.arguments != arguments:
            raise Differs(f"call or access number {number + 1} differs")
        self._compare_memory(event.changes, changes)
        for address, kind, bits in event.writes:
            content = bits.to_bytes(kind.size, "little")
            self._expected.update({address + place: byte for place, byte in enumerate(content)})
        return event

    def _compare_memory(self, wanted: Mapping[int, int], found: Mapping[int, int]) -> None:
        for address, byte in wanted.items():
            if byte >= 0 and self.memory.byte(address) != byte:
                raise Differs("the memory differs")
        self._expected.update(wanted)
        for address, byte in found.items():
            if address not in wanted and self._expected.get(address, byte + 1) not in (byte, -1):
                raise Differs("the memory differs")

    def _compare_ends(self, reference: Trace, trace: Trace) -> None:
        if len(reference.events) != len(trace.events):
            raise Differs("a call or an access is missing")
        if reference.ended != trace.ended:
            raise Differs("it ends differently")
        if not same(reference.result, trace.result):
            raise Differs("the result differs")
        self._compare_memory(reference.changes, trace.changes)


def poisoned(values: Iterable[Value]) -> bool:
    """Say whether one of some values is poison, or has a part that is."""
    return any(
        value is POISON or (isinstance(value, tuple) and poisoned(value))  # pyright: ignore[reportUnknownArgumentType]
        for value in values
    )


def callee_number(target: object) -> int:
    """Return a number that tells callees apart, by address or by name."""
    return target if isinstance(target, int) else crc32(str(target).encode())
