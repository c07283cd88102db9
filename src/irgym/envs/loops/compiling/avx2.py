"""AVX2 and FMA machine code."""

from irgym.core.target import X86_64_V3
from irgym.envs.loops.compiling import assembler as asm
from irgym.envs.loops.compiling import x86
from irgym.envs.loops.compiling.assembler import vex, vex_memory
from irgym.envs.loops.compiling.kernel import Kernel
from irgym.envs.loops.compiling.precision import DOUBLE, SINGLE, Precision, precision_of
from irgym.envs.loops.compiling.scalar import Scalar

TARGET = X86_64_V3

_SWAP_HALVES, _SWAP_QUARTERS = 0x4E, 0xB1
"""Immediate bytes of shuffles to the orders 2, 3, 0, 1 and 1, 0, 3, 2 of four parts."""


def emit(kernel: Kernel) -> bytes:
    """Return the machine code of a kernel for `TARGET`; `x86` describes the function."""
    precision = precision_of(kernel.elements)
    if kernel.lanes == 1:
        return x86.emit(kernel, Scalar(TARGET.registers, (asm.VXORPS, asm.XMM), vex, vex_memory, precision))
    return x86.emit(kernel, _Vector(kernel.sum_lanes, precision))


class _Vector:
    """Registers of 32 bytes; if not all lanes are active, loads take a mask from a table on the stack.

    The table is 32 bytes of ones followed by as many of zeros; `x86.SCRATCH` points to it. Stores are made of
    shorter ones instead, since masked ones are slow on AMD's processors: on a Zen 4, `pack(a) n/32 m/3 k m n`
    of 8 x 512 x 64 took 7.6 us with them, and takes 5.4 us.
    """

    registers = TARGET.registers

    def __init__(self, sum_lanes: bool, precision: Precision) -> None:
        self.sum_lanes = sum_lanes
        self.precision = precision
        self.masked = False
        self.lanes = TARGET.vector_bits // (8 * precision.bytes)
        # Vector lengths that need no mask; such loads clear the other lanes.
        self.lengths = {self.lanes: asm.YMM, self.lanes // 2: asm.XMM}

    def _mask(self, register: int, lanes: int) -> bytes:
        self.masked = True
        return vex_memory(
            asm.VMOVUPS_LOAD, register, 0, x86.SCRATCH, self.precision.bytes * (self.lanes - lanes)
        )

    def setup(self) -> bytes:
        if not self.masked:
            return b""
        table = asm.push_immediate(0) * 4 + asm.push_immediate(-1) * 4
        return table + asm.move(x86.SCRATCH, asm.RSP)

    def teardown(self) -> bytes:
        return asm.add_immediate(asm.RSP, 64) if self.masked else b""

    def zero(self, register: int) -> bytes:
        return vex(asm.VXORPS, register, register, register, length=asm.XMM)

    def load(self, register: int, base: int, displacement: int, lanes: int) -> bytes:
        if (length := self.lengths.get(lanes)) is not None:
            return vex_memory(self.precision.load, register, 0, base, displacement, length=length)
        return self._mask(register, lanes) + vex_memory(
            self.precision.load_masked, register, register, base, displacement
        )

    def broadcast(self, register: int, base: int, displacement: int, lanes: int) -> bytes:
        code = vex_memory(self.precision.broadcast, register, 0, base, displacement)
        if lanes < self.lanes and self.sum_lanes:
            # Zero lanes of the other input times a broadcast infinity would be NaN.
            self.masked = True
            code += vex_memory(
                asm.VANDPS, register, register, x86.SCRATCH, self.precision.bytes * (self.lanes - lanes)
            )
        return code

    def multiply_add(self, accumulator: int, x: int, y: int, _lanes: int) -> bytes:
        return vex(self.precision.multiply_add, accumulator, x, y)

    def multiply_add_memory(
        self, accumulator: int, x: int, base: int, displacement: int, lanes: int, broadcast: bool
    ) -> bytes | None:
        if broadcast or lanes < self.lanes:
            return None
        return vex_memory(self.precision.multiply_add, accumulator, x, base, displacement)

    def add(self, accumulator: int, base: int, displacement: int, lanes: int, scratch: int) -> bytes:
        if (length := self.lengths.get(lanes)) is not None:
            return vex_memory(self.precision.add, accumulator, accumulator, base, displacement, length=length)
        return self.load(scratch, base, displacement, lanes) + vex(
            self.precision.add, accumulator, accumulator, scratch
        )

    def store(self, accumulator: int, base: int, displacement: int, lanes: int, scratch: int) -> bytes:
        if (length := self.lengths.get(lanes)) is not None:
            return vex_memory(self.precision.store, accumulator, 0, base, displacement, length=length)
        code, source, left = b"", accumulator, self.precision.bytes * lanes
        if left > 16:
            code += vex_memory(self.precision.store, source, 0, base, displacement, length=asm.XMM)
            code += vex(asm.VEXTRACTF128, source, 0, scratch, immediate=1)
            source, displacement, left = scratch, displacement + 16, left - 16
        if left >= 8:
            code += vex_memory(DOUBLE.store_one, source, 0, base, displacement, length=asm.XMM)
            displacement, left = displacement + 8, left - 8
            if left:
                code += vex(asm.VPERMILPS, scratch, 0, source, length=asm.XMM, immediate=_SWAP_HALVES)
                source = scratch
        if left:
            code += vex_memory(SINGLE.store_one, source, 0, base, displacement, length=asm.XMM)
        return code

    def store_sum(self, accumulator: int, base: int, displacement: int, add: bool, scratch: int) -> bytes:
        add_scratch = vex(self.precision.add, accumulator, accumulator, scratch, length=asm.XMM)
        parts = [
            vex(asm.VEXTRACTF128, accumulator, 0, scratch, immediate=1),
            add_scratch,
            vex(asm.VPERMILPS, scratch, 0, accumulator, length=asm.XMM, immediate=_SWAP_HALVES),
            add_scratch,
        ]
        if self.precision is SINGLE:
            parts += [
                vex(asm.VPERMILPS, scratch, 0, accumulator, length=asm.XMM, immediate=_SWAP_QUARTERS),
                add_scratch,
            ]
        if add:
            parts.append(
                vex_memory(
                    self.precision.add_one, accumulator, accumulator, base, displacement, length=asm.XMM
                )
            )
        parts.append(vex_memory(self.precision.store_one, accumulator, 0, base, displacement, length=asm.XMM))
        return b"".join(parts)
