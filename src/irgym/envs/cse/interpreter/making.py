"""What a run finds: made-up values, and its memory."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from irgym.envs.cse.interpreter.constants import UNDEFINED
from irgym.envs.cse.interpreter.layout import Kind, kind_of
from irgym.envs.cse.interpreter.memory import BYTE, KNOWN, Memory, Region
from irgym.envs.cse.interpreter.memory_map import HEAP, MIDDLE, REGION_BITS, STACK
from irgym.envs.cse.interpreter.numbers import Value, bits_of, float_of
from irgym.envs.cse.interpreter.operands import Operand
from irgym.envs.cse.interpreter.poison import POISON, Endless, Undefined
from irgym.envs.cse.interpreter.program import Program
from irgym.envs.cse.interpreter.traces import Surroundings, Trace
from irgym.envs.cse.interpreter.watching import Feature, cases

ARGUMENTS, SLOTS = 1 << 60, 256
"""First key of arguments, and keys of each; the keys of memory are addresses."""

LARGEST = 1 << 16
"""Bytes that are copied or filled at once, at most."""

_LARGEST_VARIABLE = 1 << 24
_FILLERS = 0x5A, 0xA5


@dataclass
class Making:
    """The made-up values and the memory of a run.

    Args:
        program: The module.
        world: What is made up.
        steps: Instructions that may run.
        reference: The run that this one is compared with, if any.
        turn: Whether undefined values are others than otherwise.

    Attributes:
        work: What instructions took beyond one step each, in steps: bytes that were copied, parts of vectors.
    """

    program: Program
    world: Surroundings
    steps: int
    reference: Trace | None = None
    turn: bool = False
    drawn: dict[int, tuple[Kind, int]] = field(default_factory=dict[int, tuple[Kind, int]])
    vague: bool = False
    features: set[Feature] = field(default_factory=set[Feature])
    operands: dict[str, tuple[tuple[Value, ...], int]] = field(
        default_factory=dict[str, tuple[tuple[Value, ...], int]]
    )
    escaped: set[int] = field(default_factory=set[int])
    work: int = 0
    _regions: int = 0

    def __post_init__(self) -> None:
        """Make an empty memory."""
        world, program = self.world, self.program
        self.memory = Memory(
            self._bits, lambda address: program.region(address, world.changed), _FILLERS[self.turn]
        )

    def answer_key(self) -> int:
        """Return the key of what the next event answers."""
        raise NotImplementedError

    def event(self, what: str, arguments: tuple[Value, ...]) -> None:
        """Note something that others see."""
        raise NotImplementedError

    def _bits(self, key: int, kind: Kind) -> int:
        known = self.drawn.get(key)
        if known is not None and known[0].size == kind.size:
            return known[1]
        bits = self.world.bits(key, kind) & kind.mask
        if kind.low != kind.high and (bits - kind.low) & kind.mask >= (kind.high - kind.low) & kind.mask:
            bits = (kind.low + bits % ((kind.high - kind.low) & kind.mask)) & kind.mask
        self.drawn[key] = kind, bits
        return bits

    def argument(self, place: int, parameter: Operand) -> Value:
        """Return a made-up argument by its place."""
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
            self.vague = True
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
        self.vague = True
        return self.turn

    def watch(self, name: str, operands: tuple[Value, ...], result: Value, sign: int) -> None:
        """Note the cases that the operands of an instruction are."""
        self.operands[name] = operands, sign
        self.features.update((name, case) for case in cases(operands, result, sign))

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
            self.escaped.add(address >> REGION_BITS)

    def loaded(self, address: Value, kind: str) -> Value:
        """Return a value of a larger type from memory."""
        scalar = kind_of(kind)
        if scalar is None:
            self.work += 1
            return tuple(
                self.loaded(address + offset, one) for offset, one in self.program.layout.fields(kind)
            )
        bits = self.memory.load(address, scalar)
        return float_of(bits, scalar.size) if scalar.floating else bits

    def stored(self, address: Value, kind: str, value: Value) -> None:
        """Write a value of a larger type."""
        scalar = kind_of(kind)
        if scalar is None:
            self.work += len(value)
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
        self.work += size
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
        self.work += size
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


def _never_null(attributes: Iterable[str]) -> bool:
    return any(one == "nonnull" or one.startswith("dereferenceable(") for one in attributes)


def _copied_as(address: int, size: int) -> Kind:
    """Return the kind of values that bytes are made up as where they are copied."""
    for name in ("i64", "i32", "i16"):
        kind = kind_of(name)
        if kind is not None and size % kind.size == 0 and address % kind.size == 0:
            return kind
    return BYTE
