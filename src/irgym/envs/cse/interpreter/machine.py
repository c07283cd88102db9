"""Runs of a function: what it reads is made up, what it does is recorded, or compared with a record."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from zlib import crc32

from irgym.envs.cse.interpreter.calls import Call
from irgym.envs.cse.interpreter.constants import UNDEFINED
from irgym.envs.cse.interpreter.intrinsics import Site
from irgym.envs.cse.interpreter.layout import Kind, kind_of
from irgym.envs.cse.interpreter.memory import KNOWN, Memory, Region
from irgym.envs.cse.interpreter.memory_map import GLOBALS, HEAP, MIDDLE, REGION_BITS, STACK
from irgym.envs.cse.interpreter.numbers import Value, bits_of, float_of
from irgym.envs.cse.interpreter.operands import Operand
from irgym.envs.cse.interpreter.poison import POISON, Endless, Left, Undefined, Unwound
from irgym.envs.cse.interpreter.program import Code, Program
from irgym.envs.cse.interpreter.translate import translated
from irgym.envs.cse.interpreter.watching import Feature, cases

ARGUMENTS, EVENTS, PURE = 1 << 60, 1 << 61, 1 << 62
"""Keys of made-up values: of arguments, of what calls answer, of what pure functions answer. Those of memory
are addresses."""

SLOTS = 256
"""Keys of each argument and each event."""

DEEPEST = 24
"""Calls within each other, at most."""

LARGEST = 1 << 16
"""Bytes that are copied or filled at once, at most."""

_LARGEST_VARIABLE = 1 << 24
_LOOKED_AT, _MOST_WRITES = 96, 24
_FILLERS = 0x5A, 0xA5


class Surroundings(Protocol):
    """What is made up around a function.

    Attributes:
        alone: Whether functions that the module defines are made up, too, where they are called.
        changed: Whether variables of the module hold anything, instead of what they hold at first.
    """

    alone: bool
    changed: bool

    def bits(self, key: int, kind: Kind) -> int:
        """Return the bits of a made-up value."""
        ...

    def writes(self, key: int, pointer: bool) -> bool:
        """Say whether a call writes a value in memory that it may write."""
        ...

    def throws(self, key: int) -> bool:
        """Say whether a call ends in an exception."""
        ...


class Differs(Exception):
    """A run does something else than the one that it is compared with; the message says what."""


@dataclass(frozen=True)
class Event:
    """Something that others see: a call of a function that is made up, or a volatile or atomic access.

    Attributes:
        what: What it is.
        arguments: What is passed.
        changes: What the memory holds that was written since the last event.
        answer: What the call returns.
        writes: What it writes: address, kind and bits.
        thrown: Whether it ends in an exception.
    """

    what: object
    arguments: object
    changes: Mapping[int, int]
    answer: Value = None
    writes: tuple[tuple[int, Kind, int], ...] = ()
    thrown: bool = False


@dataclass(frozen=True)
class Trace:
    """What a run did.

    Attributes:
        events: What others saw of it, in order.
        result: What it returned.
        changes: What the memory holds that was written since the last event, but for variables.
        ended: How it ended: empty for a return.
        drawn: What was made up, by key: kind and bits.
        seen: Operands of comparisons, the last ones, by result.
        edges: Branches that were taken: numbers of blocks.
        blocks: Blocks that were entered.
        features: Cases of the instructions that are looked at.
        operands: Their operands, the last ones, by result, and the sign bit of integers.
        steps: Instructions that ran, about.
        vague: Whether the run depends on undefined values, which may be others.
    """

    events: tuple[Event, ...]
    result: Value
    changes: Mapping[int, int]
    ended: str
    drawn: Mapping[int, tuple[Kind, int]]
    seen: Mapping[str, tuple[Value, Value]]
    edges: frozenset[tuple[int, int]]
    blocks: frozenset[int]
    features: frozenset[Feature]
    operands: Mapping[str, tuple[tuple[Value, ...], int]]
    steps: int
    vague: bool


@dataclass
class Machine:
    """A run.

    Args:
        program: The module.
        world: What is made up.
        steps: Instructions that may run.
        reference: The run that this one is compared with, if any.
        turn: Whether undefined values are others than otherwise.
    """

    program: Program
    world: Surroundings
    steps: int
    reference: Trace | None = None
    turn: bool = False
    result: Value = None
    edges: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    seen: dict[str, tuple[Value, Value]] = field(default_factory=dict[str, tuple[Value, Value]])
    drawn: dict[int, tuple[Kind, int]] = field(default_factory=dict[int, tuple[Kind, int]])
    _features: set[Feature] = field(default_factory=set[Feature])
    _operands: dict[str, tuple[tuple[Value, ...], int]] = field(
        default_factory=dict[str, tuple[tuple[Value, ...], int]]
    )
    _events: list[Event] = field(default_factory=list[Event])
    _expected: dict[int, int] = field(default_factory=dict[int, int])
    _escaped: set[int] = field(default_factory=set[int])
    _regions: int = 0
    _depth: int = 0
    _vague: bool = False

    def __post_init__(self) -> None:
        """Make an empty memory."""
        world, program = self.world, self.program
        self.memory = Memory(
            self._made_up, lambda address: program.region(address, world.changed), _FILLERS[self.turn]
        )

    def run(self, code: Code) -> Trace:
        """Run a function on made-up arguments.

        Raises:
            Undefined: It has no defined behaviour.
            Unsupported: It does what the interpreter cannot.
            Endless: It takes too many steps.
            Differs: It is compared with another run, and does something else.
        """
        steps = self.steps
        blocks: set[int] = set()
        ended = ""
        try:
            arguments = tuple(self._argument(place, one) for place, one in enumerate(code.parameters))
            result = self._run(code, arguments, blocks)
        except Left as error:
            ended, result = str(error), None
        except Unwound:
            ended, result = "an exception", None
        changes = self.memory.changes()
        outside = {place: one for place, one in changes.items() if not STACK <= place < HEAP}
        trace = Trace(
            tuple(self._events),
            result,
            outside,
            ended,
            self.drawn,
            self.seen,
            frozenset(self.edges),
            frozenset(blocks),
            frozenset(self._features),
            self._operands,
            steps - self.steps,
            self._vague or self.memory.undefined,
        )
        if self.reference is not None:
            self._compare_ends(self.reference, trace)
        return trace

    def _run(self, code: Code, arguments: tuple[Value, ...], blocks: set[int]) -> Value:
        values: list[Value] = [None] * len(code.numbers)
        values[: len(arguments)] = arguments
        number = 0
        while number >= 0:
            blocks.add(number)
            run, cost = code.blocks.get(number) or translated(self.program, code, number)
            self.steps -= cost
            if self.steps < 0:
                raise Endless("it takes too many steps")
            number = run(values, self)
        return self.result

    # What is made up.

    def _made_up(self, address: int, kind: Kind) -> int:
        return self._bits(address, kind)

    def _bits(self, key: int, kind: Kind) -> int:
        known = self.drawn.get(key)
        if known is not None and known[0].size == kind.size:
            return known[1]
        bits = self.world.bits(key, kind) & kind.mask
        if kind.low != kind.high and (bits - kind.low) & kind.mask >= (kind.high - kind.low) & kind.mask:
            bits = (kind.low + bits % ((kind.high - kind.low) & kind.mask)) & kind.mask
        self.drawn[key] = kind, bits
        return bits

    def _argument(self, place: int, parameter: Operand) -> Value:
        key = ARGUMENTS + place * SLOTS
        if parameter.kind == "ptr" and any(parameter.named(one) is not None for one in ("byval", "sret")):
            return self._region(Region(1 << REGION_BITS - 1, made_up=True), HEAP)
        return self.made(parameter.kind, key, _never_null(parameter.attributes))

    def made(self, kind: str, key: int, never_null: bool = False) -> Value:
        """Return a made-up value of a type.

        Args:
            kind: The type.
            key: Key of its first scalar.
            never_null: Whether it may not be 0.
        """
        scalar = kind_of(kind)
        if scalar is not None:
            if never_null and scalar.name == "ptr":
                scalar = Kind("ptr", scalar.size, scalar.bits, 1, 0)
            bits = self._bits(key, scalar)
            return float_of(bits, scalar.size) if scalar.floating else bits
        values: list[Value] = []
        for _, one in self.program.layout.fields(kind):
            values.append(self.made(one, key))
            key += len(self.program.layout.scalars(one))
        return tuple(values)

    def undefined(self, value: Value, kind: str) -> Value:
        """Return a value with one of this run's in place of each undefined one."""
        if value is UNDEFINED:
            self._vague = True
            scalar = kind_of(kind)
            if scalar is None:
                return tuple(self.undefined(value, one) for _, one in self.program.layout.fields(kind))
            return float(_FILLERS[self.turn]) if scalar.floating else _FILLERS[self.turn] & scalar.mask
        if isinstance(value, tuple):
            kinds = [one for _, one in self.program.layout.fields(kind)]
            return tuple(map(self.undefined, value, kinds))  # pyright: ignore[reportUnknownArgumentType]
        return value

    def turned(self) -> bool:
        """Say whether zeros whose sign does not count have the other one in this run."""
        self._vague = True
        return self.turn

    def watch(self, name: str, operands: tuple[Value, ...], result: Value, sign: int) -> None:
        """Note the cases that the operands of an instruction are."""
        self._operands[name] = operands, sign
        self._features.update((name, case) for case in cases(operands, result, sign))

    # Memory.

    def variable(self, size: Value) -> int:
        """Return the address of a new variable."""
        if size is POISON or not 0 <= size <= _LARGEST_VARIABLE:
            raise Undefined("a variable of impossible size")
        return self._region(Region(size), STACK)

    def allocated(self, region: Region) -> int:
        """Return the address of a new allocation."""
        return self._region(region, HEAP)

    def _region(self, region: Region, area: int) -> int:
        self._regions += 1
        address = area + (self._regions << REGION_BITS)
        self.memory.regions[address >> REGION_BITS] = region
        return address + MIDDLE

    def escapes(self, address: Value) -> None:
        """Note that an address is stored: others may know it from here on."""
        if address is not POISON and address >= STACK:
            self._escaped.add(address >> REGION_BITS)

    def loaded(self, address: Value, kind: str) -> Value:
        """Return a value of a larger type from memory."""
        scalar = kind_of(kind)
        if scalar is None:
            return tuple(
                self.loaded(address + offset, one) for offset, one in self.program.layout.fields(kind)
            )
        bits = self.memory.load(address, scalar)
        return float_of(bits, scalar.size) if scalar.floating else bits

    def stored(self, address: Value, kind: str, value: Value) -> None:
        """Write a value of a larger type."""
        scalar = kind_of(kind)
        if scalar is None:
            for (offset, inner), one in zip(self.program.layout.fields(kind), value, strict=True):
                self.stored(address + offset, inner, one)
            return
        bits = bits_of(value, scalar.size) if scalar.floating else value
        if scalar.name == "ptr":
            self.escapes(bits)
        self.memory.store(address, scalar, bits)

    def copied(self, target: Value, source: Value, size: Value) -> None:
        """Copy some bytes, which may overlap."""
        if target is POISON or source is POISON or size is POISON:
            raise Undefined("a copy depends on poison")
        if size > LARGEST:
            raise Endless("it copies too many bytes")
        if size:
            kind = self.memory.touched.get(source) or _copied_as(source, size)
            content, marks = self.memory.get(source, size, kind)
            self.memory.put(target, content, marks)

    def filled(self, target: Value, byte: Value, size: Value) -> None:
        """Fill some bytes."""
        if target is POISON or size is POISON:
            raise Undefined("filling depends on poison")
        if size > LARGEST:
            raise Endless("it fills too many bytes")
        if size:
            if byte is POISON:
                self.memory.put(target, bytes(size), b"\2" * size)
            else:
                self.memory.put(target, bytes([byte]) * size, bytes([KNOWN]) * size)

    def recast(self, value: Value, old: str, new: str) -> Value:
        """Return the bits of a value as another type."""
        address = self._region(Region(64), STACK)
        self.stored(address, old, value)
        found = self.loaded(address, new)
        self.memory.written.clear()
        return found

    def exchanged(self, address: Value, kind: Kind, old: Value, new: Value) -> Value:
        """Write a value if memory holds another one; return what it held, and whether it was that."""
        self.event("cmpxchg", (address, kind.size, old, new))
        held = self.memory.load(address, kind)
        if held == old:
            self.memory.store(address, kind, new)
            return held, 1
        return held, 0

    def modified(self, name: str, address: Value, kind: Kind, value: Value) -> Value:
        """Change a value in memory, and return what it held."""
        self.event(f"atomicrmw {name}", (address, kind.size, value))
        held = self.memory.load(address, kind)
        sign = 1 << (kind.bits - 1)
        new = {
            "xchg": lambda: value,
            "add": lambda: held + value,
            "sub": lambda: held - value,
            "and": lambda: held & value,
            "nand": lambda: (held & value) ^ kind.mask,
            "or": lambda: held | value,
            "xor": lambda: held ^ value,
            "max": lambda: max(held, value, key=lambda one: one ^ sign),
            "min": lambda: min(held, value, key=lambda one: one ^ sign),
            "umax": lambda: max(held, value),
            "umin": lambda: min(held, value),
        }.get(name)
        if new is None:
            raise Endless(f"atomicrmw {name} is not run")
        self.memory.store(address, kind, new() & kind.mask)
        return held

    # Calls.

    def call(self, site: Site, arguments: tuple[Value, ...], invoked: bool = False) -> Value:
        """Call a function: an intrinsic one, one of the module, or one that is made up."""
        if site.intrinsic is not None:
            return site.intrinsic(self, site.call, arguments)
        name = site.call.callee
        target: object = name
        if name.startswith("%"):
            target, *rest = arguments
            arguments = tuple(rest)
            if target is POISON or target == 0:
                raise Undefined("a call through null or poison")
            name = self.program.named(int(target))  # pyright: ignore[reportArgumentType]
            target = name or target
        elif name.startswith("@") and name not in self.program.module.functions:
            name = self.program.named(self.program.address(name)) or name
        if name in self.program.module.functions and not self.world.alone:
            return self._defined(name, arguments)
        return self._external(site.call, target, arguments, invoked)

    def _defined(self, name: str, arguments: tuple[Value, ...]) -> Value:
        code = self.program.code(name)
        if len(arguments) < len(code.parameters):
            raise Undefined("a call with too few arguments")
        if self._depth >= DEEPEST:
            raise Endless("calls within each other do not end")
        self._depth += 1
        passed = tuple(map(self._passed, code.parameters, arguments))
        try:
            return self._run(code, passed, set())
        finally:
            self._depth -= 1

    def _passed(self, parameter: Operand, value: Value) -> Value:
        kind = parameter.named("byval")
        if kind is None:
            return value
        size = self.program.layout.size(kind)
        address = self.variable(size)
        self.copied(address, value, size)
        return address

    def _external(self, call: Call, target: object, arguments: tuple[Value, ...], invoked: bool) -> Value:
        if _poisoned(arguments):
            if call.pure:
                return POISON
            raise Undefined("a call takes poison")
        if call.pure:
            key = PURE + SLOTS * (hash((_digest(target), plain(arguments))) & 0xFFFFFFFFFFFF)
            return self._answer(call, key)
        event = self._happens(target, arguments, call, invoked)
        if "noreturn" in call.words:
            raise Left("a call that does not return")
        if event.thrown:
            raise Unwound
        return event.answer

    def event(self, what: str, arguments: tuple[Value, ...]) -> None:
        """Note something that others see, or compare it with what the other run did."""
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
        """Return the key of what the last event answers."""
        return EVENTS + len(self._events) * SLOTS

    def _answer(self, call: Call, key: int) -> Value:
        if call.returns == "void":
            return None
        never_null = "nonnull" in call.words or "dereferenceable" in call.words
        return self.made(call.returns, key, never_null)

    def _writes(self, call: Call, key: int, arguments: Any) -> Iterable[tuple[int, Kind, int]]:
        access = call.access
        if not (access.writes_arguments or access.writes_rest):
            return
        reached = self._reached(call, arguments)
        count = 0
        for address, kind in list(reversed(self.memory.touched.items()))[:_LOOKED_AT]:
            region = address >> REGION_BITS
            outside = address < STACK or address >= HEAP or region in self._escaped
            if not (region in reached or (access.writes_rest and outside)):
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
            for one, value in zip(call.operands, arguments, strict=False)
            if one.kind == "ptr" and not {"readonly", "readnone"} & {*one.attributes}
        }

    def _hand_over(self, call: Call, arguments: Any) -> None:
        """Let others know the variables whose addresses a call takes."""
        reached = self._reached(call, arguments)
        for one, value in zip(call.operands, arguments, strict=False):
            if one.kind != "ptr" or value < STACK:
                continue
            region = value >> REGION_BITS
            if region in reached and region in self.memory.regions:
                self.memory.regions[region].made_up = True
            if one.named("captures") != "none" and "nocapture" not in one.attributes:
                self._escaped.add(region)

    def _constant(self, address: int) -> bool:
        region = self.program.region(address >> REGION_BITS << REGION_BITS, self.world.changed)
        return region is not None and region.constant

    def landed(self, kind: str) -> Value:
        """Return what an exception hands over."""
        return self.made(kind, EVENTS + len(self._events) * SLOTS + SLOTS // 2)

    def unwinds(self) -> None:
        """Leave the function with an exception."""
        raise Unwound

    # Comparison.

    def _compare(
        self, reference: Trace, number: int, what: object, arguments: object, changes: Mapping[int, int]
    ) -> Event:
        if number >= len(reference.events):
            raise Differs("there is a call or an access too many")
        event = reference.events[number]
        if event.what != what or event.arguments != arguments:
            raise Differs(f"the call or access number {number + 1} is another one")
        self._compare_memory(event.changes, changes)
        for address, kind, bits in event.writes:
            content = bits.to_bytes(kind.size, "little")
            self._expected.update({address + place: byte for place, byte in enumerate(content)})
        return event

    def _compare_memory(self, wanted: Mapping[int, int], found: Mapping[int, int]) -> None:
        for address, byte in wanted.items():
            if byte >= 0 and self.memory.byte(address) != byte:
                raise Differs("memory holds something else")
        self._expected.update(wanted)
        for address, byte in found.items():
            if address not in wanted and self._expected.get(address, byte + 1) not in (byte, -1):
                raise Differs("memory holds something else")

    def _compare_ends(self, reference: Trace, trace: Trace) -> None:
        if len(reference.events) != len(trace.events):
            raise Differs("there is a call or an access too few")
        if reference.ended != trace.ended:
            raise Differs("it ends in another way")
        if not _same(reference.result, trace.result):
            raise Differs("the result is another one")
        self._compare_memory(reference.changes, trace.changes)


def plain(value: Value) -> Value:
    """Return a value as whole numbers, which can be compared and hashed; all NaNs are one."""
    if isinstance(value, tuple):
        return tuple(map(plain, value))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if isinstance(value, float):
        return "nan" if value != value else -1 - bits_of(value, 8)
    return value


def _same(wanted: Value, found: Value) -> bool:
    if wanted is POISON:
        return True
    if isinstance(wanted, tuple) and isinstance(found, tuple):
        return all(map(_same, wanted, found))  # pyright: ignore[reportUnknownArgumentType]
    if found is POISON or isinstance(wanted, tuple) or isinstance(found, tuple):
        return False
    return plain(wanted) == plain(found)


def _poisoned(values: Iterable[Value]) -> bool:
    return any(
        one is POISON or (isinstance(one, tuple) and _poisoned(one))  # pyright: ignore[reportUnknownArgumentType]
        for one in values
    )


def _digest(target: object) -> int:
    return target if isinstance(target, int) else crc32(str(target).encode())


def _never_null(attributes: Iterable[str]) -> bool:
    return any(one == "nonnull" or one.startswith("dereferenceable(") for one in attributes)


def _copied_as(address: int, size: int) -> Kind:
    """Return the kind of values that bytes are made up as where they are copied."""
    for name in ("i64", "i32", "i16"):
        kind = kind_of(name)
        if kind is not None and size % kind.size == 0 and address % kind.size == 0:
            return kind
    return Kind("i8", 1, 8)
