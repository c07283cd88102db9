"""Scalar code, shared by AVX2 and AVX-512 except for the encoding."""

from dataclasses import dataclass
from typing import Protocol

from irgym.envs.loops.compiling import assembler as asm
from irgym.envs.loops.compiling.precision import Precision


class Encode(Protocol):
    """Encoder of instructions between registers."""

    def __call__(self, opcode: asm.Opcode, reg: int, second: int, rm: int, *, length: int) -> bytes:
        """Return the machine code of an instruction."""
        ...


class EncodeMemory(Protocol):
    """Encoder of instructions with a memory operand."""

    def __call__(
        self, opcode: asm.Opcode, reg: int, second: int, base: int, displacement: int, *, length: int
    ) -> bytes:
        """Return the machine code of an instruction."""
        ...


@dataclass(frozen=True)
class Scalar:
    """One lane a register; see `block.InstructionSet`.

    Attributes:
        registers: Number of vector registers.
        exclusive_or: The instruction that clears a register, and the vector length of its encoding.
        encode: Encodes instructions between registers.
        encode_memory: Encodes instructions with a memory operand.
        precision: The instructions.
    """

    registers: int
    exclusive_or: tuple[asm.Opcode, int]
    encode: Encode
    encode_memory: EncodeMemory
    precision: Precision

    def setup(self) -> bytes:
        """Return no code: there are no masks."""
        return b""

    def teardown(self) -> bytes:
        """Return no code."""
        return b""

    def zero(self, register: int) -> bytes:
        """Clear a register."""
        opcode, length = self.exclusive_or
        return self.encode(opcode, register, register, register, length=length)

    def load(self, register: int, base: int, displacement: int, lanes: int) -> bytes:
        """Load an element."""
        del lanes
        return self.encode_memory(self.precision.load_one, register, 0, base, displacement, length=asm.XMM)

    broadcast = load

    def multiply_add(self, accumulator: int, x: int, y: int, lanes: int) -> bytes:
        """Add x * y to the accumulator."""
        del lanes
        return self.encode(self.precision.multiply_add_one, accumulator, x, y, length=asm.XMM)

    def multiply_add_memory(
        self, accumulator: int, x: int, base: int, displacement: int, lanes: int, broadcast: bool
    ) -> bytes:
        """Add x times an element in memory."""
        del lanes, broadcast
        return self.encode_memory(
            self.precision.multiply_add_one, accumulator, x, base, displacement, length=asm.XMM
        )

    def add(self, accumulator: int, base: int, displacement: int, lanes: int, scratch: int) -> bytes:
        """Add an element in memory to an accumulator."""
        del lanes, scratch
        return self.encode_memory(
            self.precision.add_one, accumulator, accumulator, base, displacement, length=asm.XMM
        )

    def store(self, accumulator: int, base: int, displacement: int, lanes: int, scratch: int) -> bytes:
        """Store an accumulator."""
        del lanes, scratch
        return self.encode_memory(
            self.precision.store_one, accumulator, 0, base, displacement, length=asm.XMM
        )

    def store_sum(self, accumulator: int, base: int, displacement: int, add: bool, scratch: int) -> bytes:
        """Raise an error: scalar code has no lanes to sum."""
        raise NotImplementedError("scalar code has no lanes to sum")
