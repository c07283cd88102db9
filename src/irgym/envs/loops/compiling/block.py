"""Register allocation in straight-line code: elements in registers, and memory operands."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from irgym.envs.loops.compiling.kernel import Fma


class InstructionSet(Protocol):
    """Instructions of a kernel in an instruction set. Every method but `registers` returns machine code.

    `lanes` is the number of active lanes of a vector; the memory of the others is never touched.
    """

    @property
    def registers(self) -> int:
        """Number of vector registers."""
        ...

    def setup(self) -> bytes:
        """Set up masks for the instructions emitted so far; may overwrite `SCRATCH`."""
        ...

    def teardown(self) -> bytes:
        """Remove what `setup` left on the stack."""
        ...

    def zero(self, register: int, /) -> bytes:
        """Clear a register."""
        ...

    def load(self, register: int, base: int, displacement: int, lanes: int, /) -> bytes:
        """Load a vector; inactive lanes become 0."""
        ...

    def broadcast(self, register: int, base: int, displacement: int, lanes: int, /) -> bytes:
        """Load one element into all active lanes."""
        ...

    def multiply_add(self, accumulator: int, x: int, y: int, lanes: int, /) -> bytes:
        """Add x * y to the accumulator."""
        ...

    def multiply_add_memory(
        self, accumulator: int, x: int, base: int, displacement: int, lanes: int, broadcast: bool, /
    ) -> bytes | None:
        """Add x times a vector, or an element, in memory; None if there is no such instruction."""
        ...

    def add(self, accumulator: int, base: int, displacement: int, lanes: int, scratch: int, /) -> bytes:
        """Add a vector in memory to an accumulator; may overwrite `scratch`."""
        ...

    def store(self, accumulator: int, base: int, displacement: int, lanes: int, scratch: int, /) -> bytes:
        """Store an accumulator; may overwrite `scratch`."""
        ...

    def store_sum(self, accumulator: int, base: int, displacement: int, add: bool, scratch: int, /) -> bytes:
        """Store the sum of an accumulator's lanes, or add it to the element; overwrites `scratch`."""
        ...


@dataclass(frozen=True, slots=True)
class Operand:
    """Location of an input.

    Attributes:
        pointer: General-purpose register that points to it.
        lag: Bytes by which that register lags behind the kernel's pointer.
        vector: Whether lanes step through it; otherwise one element is broadcast to all lanes.
        bytes: Bytes of an element.
    """

    pointer: int
    lag: int
    vector: bool
    bytes: int


def groups(fmas: Sequence[Fma]) -> Iterator[Sequence[Fma]]:
    """Split the FMAs of a block before each use of the first accumulator."""
    first = fmas[0].accumulator
    starts = [place for place, fma in enumerate(fmas) if fma.accumulator == first]
    for start, end in zip(starts, [*starts[1:], len(fmas)], strict=True):
        yield fmas[start:end]


def emit_group(
    fmas: Sequence[Fma], a: Operand, b: Operand, accumulators: int, instructions: InstructionSet
) -> bytes:
    """Return the code of a group of FMAs whose accumulators are the first registers.

    An element used once is a memory operand. An element used more often is loaded into a free register and
    kept there until its last use, as long as there are free registers.
    """
    group = _Group(fmas, a, b, accumulators, instructions)
    return b"".join([group.multiply_add(fma, place) for place, fma in enumerate(fmas)])


class _Elements:
    """The elements of an input in a group, by a key of offset and lanes."""

    def __init__(self, operand: Operand, keys: list[int]) -> None:
        self.operand = operand
        self.keys = keys
        self.uses: dict[int, int] = {}
        for key in keys:
            self.uses[key] = self.uses.get(key, 0) + 1
        self.registers: dict[int, int] = {}

    def displacement(self, key: int) -> int:
        return (key >> 6) * self.operand.bytes + self.operand.lag


class _Group:
    """Allocator of registers to the elements of a group."""

    def __init__(
        self, fmas: Sequence[Fma], a: Operand, b: Operand, accumulators: int, instructions: InstructionSet
    ) -> None:
        self.a = _Elements(a, [at << 6 | lanes * a.vector for _, at, _, lanes in fmas])
        self.b = _Elements(b, [at << 6 | lanes * b.vector for _, _, at, lanes in fmas])
        self.instructions = instructions
        self.free = list(range(accumulators, instructions.registers))

    def multiply_add(self, fma: Fma, place: int) -> bytes:
        """Return the code of an FMA, including its loads."""
        a, b = self.a, self.b
        accumulator, _, _, lanes = fma
        a_key, b_key = a.keys[place], b.keys[place]
        x, y = a.registers.get(a_key), b.registers.get(b_key)
        code = b""
        if x is None and y is None:
            if a.uses[a_key] >= b.uses[b_key]:
                x, code = self._load(a, a_key, lanes, None)
            else:
                y, code = self._load(b, b_key, lanes, None)
        if x is not None and y is not None:
            code += self.instructions.multiply_add(accumulator, x, y, lanes)
        elif y is not None:
            code += self._multiply_add_loaded(accumulator, y, a, a_key, lanes)
        elif x is not None:
            code += self._multiply_add_loaded(accumulator, x, b, b_key, lanes)
        self._used(a, a_key)
        self._used(b, b_key)
        return code

    def _multiply_add_loaded(
        self, accumulator: int, x: int, elements: _Elements, key: int, lanes: int
    ) -> bytes:
        """Return an FMA of `x` and an element that is not in a register."""
        if elements.uses[key] == 1 or not self.free:
            operand = elements.operand
            displacement = elements.displacement(key)
            code = self.instructions.multiply_add_memory(
                accumulator, x, operand.pointer, displacement, lanes, not operand.vector
            )
            if code is not None:
                return code
        y, code = self._load(elements, key, lanes, x)
        return code + self.instructions.multiply_add(accumulator, x, y, lanes)

    def _load(self, elements: _Elements, key: int, lanes: int, keep: int | None) -> tuple[int, bytes]:
        """Load an element into a register; if none is free, evict one other than `keep`."""
        if not self.free:
            self._evict(keep)
        register = elements.registers[key] = self.free.pop()
        operand = elements.operand
        load = self.instructions.load if operand.vector else self.instructions.broadcast
        return register, load(register, operand.pointer, elements.displacement(key), lanes)

    def _evict(self, keep: int | None) -> None:
        for elements in (self.a, self.b):
            for key, register in elements.registers.items():
                if register != keep:
                    self.free.append(elements.registers.pop(key))
                    return

    def _used(self, elements: _Elements, key: int) -> None:
        elements.uses[key] -= 1
        if not elements.uses[key] and key in elements.registers:
            self.free.append(elements.registers.pop(key))
