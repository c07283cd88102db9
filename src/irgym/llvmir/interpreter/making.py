"""Random values and memory of a run."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from irgym.llvmir.interpreter.constants import UNDEFINED
from irgym.llvmir.interpreter.layout import Kind, kind_of
from irgym.llvmir.interpreter.memory import BYTE, KNOWN, Memory, Region
from irgym.llvmir.interpreter.memory_map import CODE, GLOBALS, HEAP, MIDDLE, REGION_BITS, STACK
from irgym.llvmir.interpreter.numbers import Value, bits_of, float_of
from irgym.llvmir.interpreter.operands import Operand
from irgym.llvmir.interpreter.poison import POISON, Endless, Undefined
from irgym.llvmir.interpreter.program import Program
from irgym.llvmir.interpreter.traces import Surroundings, Trace
from irgym.llvmir.interpreter.watching import Feature, cases

ARGUMENTS, SLOTS = 1 << 60, 256
"""First key of the arguments, and number of keys of each; keys of memory are addresses."""

LARGEST = 1 << 16
"""Greatest number of bytes copied or filled at once."""

_OFFSETS = (1 << REGION_BITS) - 1
_MADE_UP = (1 << 34) - 1
"""Size in bytes of memory with random content."""

_LARGEST_VARIABLE = 1 << 24
_FILLERS = 0x5A, 0xA5


@dataclass
class Making:
    """Random values and memory of a run.

    Args:
        program: The module.
        world: The random world.
        steps: Limit on instructions.
        reference: Trace of the run to compare with, if any.
        turn: Whether to use the alternative undefined values.

    Attributes:
        tags: Access tags by address, with whether one wrote; kept where the program's rules say so.
        work: Steps beyond one per instruction: bytes copied, elements of aggregates.
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
    tags: dict[int, dict[str, bool]] = field(default_factory=dict[int, dict[str, bool]])
    work: int = 0
    _regions: int = 0

    def __post_init__(self) -> None:
        """Create an empty memory."""
        world, program = self.world, self.program
        self.memory = Memory(
            self._bits, lambda address: program.region(address, world.changed), _FILLERS[self.turn]
        )

    def answer_key(self) -> int:
        """Return the key of the next event's result."""
        raise NotImplementedError

    def event(self, what: str, arguments: tuple[Value, ...]) -> None:
        """Record an observable event."""
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
        """Return the random argument at a place."""
        key = ARGUMENTS + place * SLOTS
        if parameter.kind == "ptr" and any(
            parameter.named(attribute) is not None for attribute in ("byval", "sret")
        ):
            return self._region(Region(1 << REGION_BITS - 1, made_up=True), HEAP)
        return self.made(parameter.kind, key, _never_null(parameter.attributes))

    def made(self, kind: str, key: int, never_null: bool = False) -> Value:
        """Return a random value of a type.

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
        for _, inner in self.program.layout.fields(kind):
            values.append(self.made(inner, key))
            key += len(self.program.layout.scalars(inner))
        return tuple(values)

    def undefined(self, value: Value, kind: str) -> Value:
        """Return a value with this run's choice in place of each undefined part."""
        if value is UNDEFINED:
            self.vague = True
            scalar = kind_of(kind)
            if scalar is None:
                return tuple(self.undefined(value, inner) for _, inner in self.program.layout.fields(kind))
            return float(_FILLERS[self.turn]) if scalar.floating else _FILLERS[self.turn] & scalar.mask
        if isinstance(value, tuple):
            kinds = [inner for _, inner in self.program.layout.fields(kind)]
            return tuple(map(self.undefined, value, kinds))  # pyright: ignore[reportUnknownArgumentType]
        return value

    def turned(self) -> bool:
        """Say whether zeros of insignificant sign are flipped in this run."""
        self.vague = True
        return self.turn

    def watch(self, name: str, operands: tuple[Value, ...], result: Value, sign: int) -> None:
        """Record the cases in which the operands of an instruction fall."""
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

    def variadic(self) -> int:
        """Return the address of the variable arguments of a function, which are random."""
        return self.allocated(Region(_MADE_UP, made_up=True))

    def _region(self, region: Region, area: int) -> int:
        self._regions += 1
        address = area + (self._regions << REGION_BITS)
        self.memory.regions[address >> REGION_BITS] = region
        return address + MIDDLE

    def inside(self, base: Value, found: Value) -> Value:
        """Return an address in the object of another; poison if it is in no such object or beyond it."""
        if base is POISON or found is POISON or (base ^ found) >> REGION_BITS:
            return POISON
        if found >= GLOBALS and not CODE <= found < STACK:
            number = found >> REGION_BITS
            region = self.memory.regions.get(number) if found >= STACK else self.region_at(found)
            if region is not None and not 0 <= (found & _OFFSETS) - MIDDLE <= region.size:
                return POISON
        return found

    def region_at(self, address: int) -> Region | None:
        """Return the region of a global of the module."""
        return self.program.region(address >> REGION_BITS << REGION_BITS, self.world.changed)

    def checked(self, address: Value, size: int, align: int, tag: str, writes: bool) -> None:
        """Check an access by type and alignment.

        Raises:
            Undefined: The address is not a multiple of the alignment, or memory was accessed there through a
                type that the compiler may assume to be elsewhere.
        """
        if address is POISON:
            return
        if address % align:
            raise Undefined("a misaligned access")
        aliasing = self.program.rules.aliasing
        if not tag or aliasing is None:
            return
        for place in (address, address + 4)[: 1 + (size >= 8)]:
            known = self.tags.setdefault(place, {})
            for other, wrote in known.items():
                if other != tag and (writes or wrote) and not aliasing(tag, other):
                    raise Undefined("an access through another type")
            known[tag] = known.get(tag, False) or writes

    def escapes(self, address: Value) -> None:
        """Record that an address is stored, so that others may know it from now on."""
        if address is not POISON and address >= STACK:
            self.escaped.add(address >> REGION_BITS)

    def loaded(self, address: Value, kind: str) -> Value:
        """Load a value of any type."""
        scalar = kind_of(kind)
        if scalar is None:
            self.work += 1
            if bits := self.program.layout.packed(kind):
                return self.recast(self.loaded(address, f"i{bits}"), f"i{bits}", kind)
            return tuple(
                self.loaded(address + offset, inner) for offset, inner in self.program.layout.fields(kind)
            )
        bits = self.memory.load(address, scalar)
        return float_of(bits, scalar.size) if scalar.floating else bits

    def stored(self, address: Value, kind: str, value: Value) -> None:
        """Store a value of any type."""
        scalar = kind_of(kind)
        if scalar is None:
            self.work += len(value)
            if width := self.program.layout.packed(kind):
                self.stored(address, f"i{width}", self.recast(value, kind, f"i{width}"))
                return
            for (offset, inner), element in zip(self.program.layout.fields(kind), value, strict=True):
                self.stored(address + offset, inner, element)
            return
        bits = bits_of(value, scalar.size) if scalar.floating else value
        if scalar.name == "ptr":
            self.escapes(bits)
        self.memory.store(address, scalar, bits)

    def copied(self, target: Value, source: Value, size: Value) -> None:
        """Copy bytes; source and target may overlap."""
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
        """Fill bytes."""
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
        bits = unknown = place = 0
        for scalar, element in self._elements(old, value):
            if element is POISON:
                unknown |= scalar.mask << place
            else:
                bits |= (bits_of(element, scalar.size) if scalar.floating else element) << place
            place += scalar.bits
        place = 0
        found: list[Value] = []
        for scalar, _ in self._elements(new, None):
            part = POISON if (unknown >> place) & scalar.mask else (bits >> place) & scalar.mask
            found.append(float_of(part, scalar.size) if scalar.floating else part)
            place += scalar.bits
        return tuple(found) if kind_of(new) is None else found[0]

    def _elements(self, kind: str, value: Value) -> Iterable[tuple[Kind, Value]]:
        """Yield the elements of a scalar or a vector, each with its type."""
        scalar = kind_of(kind)
        if scalar is not None:
            yield scalar, value
            return
        for place, (_, inner) in enumerate(self.program.layout.fields(kind)):
            yield from self._elements(inner, None if value is None else value[place])

    def exchanged(self, address: Value, kind: Kind, old: Value, new: Value) -> Value:
        """Store `new` if memory holds `old`; return the old content, and whether the two were equal."""
        self.event("cmpxchg", (address, kind.size, old, new))
        held = self.memory.load(address, kind)
        if held == old:
            self.memory.store(address, kind, new)
            return held, 1
        return held, 0

    def modified(self, name: str, address: Value, kind: Kind, value: Value) -> Value:
        """Read, modify and write a value; return the old content."""
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
            "max": lambda: max(held, value, key=lambda bits: bits ^ sign),
            "min": lambda: min(held, value, key=lambda bits: bits ^ sign),
            "umax": lambda: max(held, value),
            "umin": lambda: min(held, value),
        }.get(name)
        if new is None:
            raise Endless(f"atomicrmw {name} is not run")
        self.memory.store(address, kind, new() & kind.mask)
        return held


def _never_null(attributes: Iterable[str]) -> bool:
    return any(attribute == "nonnull" or attribute.startswith("dereferenceable(") for attribute in attributes)


def _copied_as(address: int, size: int) -> Kind:
    """Return the kind as which copied bytes are drawn."""
    for name in ("i64", "i32", "i16"):
        kind = kind_of(name)
        if kind is not None and size % kind.size == 0 and address % kind.size == 0:
            return kind
    return BYTE
