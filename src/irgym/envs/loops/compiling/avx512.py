"""AVX-512 machine code."""

from irgym.core.target import X86_64_V4
from irgym.envs.loops.compiling import assembler as asm
from irgym.envs.loops.compiling import x86
from irgym.envs.loops.compiling.assembler import evex, evex_memory
from irgym.envs.loops.compiling.kernel import Kernel
from irgym.envs.loops.compiling.lower import CodeTooLarge
from irgym.envs.loops.compiling.precision import SINGLE, Precision, precision_of
from irgym.envs.loops.compiling.scalar import Scalar

TARGET = X86_64_V4

_SWAP_HALVES, _SWAP_QUARTERS = 0x4E, 0xB1
"""Immediate bytes of shuffles to the orders 2, 3, 0, 1 and 1, 0, 3, 2 of four parts."""

_LENGTHS = (*[asm.XMM] * 17, *[asm.YMM] * 16, *[asm.ZMM] * 32)
"""By number of bytes, the shortest vector that holds them. On processors that execute 512 bits in two passes,
such as Zen 4, shorter vectors take half the time. Instructions on them clear the lanes beyond."""


def emit(kernel: Kernel) -> bytes:
    """Return the machine code of a kernel for `TARGET`; `x86` describes the function."""
    precision = precision_of(kernel.elements)
    if kernel.lanes == 1:
        return x86.emit(kernel, Scalar(TARGET.registers, (asm.VPXORD, asm.ZMM), evex, evex_memory, precision))
    return x86.emit(kernel, _Vector(kernel.sum_lanes, precision))


class _Vector:
    """Registers of 64 bytes; if not all lanes are active, a mask register selects them."""

    registers = TARGET.registers

    def __init__(self, sum_lanes: bool, precision: Precision) -> None:
        self.sum_lanes = sum_lanes
        self.precision = precision
        self.masks: dict[int, int] = {}

    def _length(self, lanes: int) -> int:
        return _LENGTHS[self.precision.bytes * lanes]

    def _mask(self, lanes: int, length: int) -> int:
        """Return the mask register for the first lanes of a vector, 0 for all of them."""
        if self.precision.bytes * lanes == 16 << length:
            return 0
        mask = self.masks.setdefault(lanes, len(self.masks) + 1)
        if mask > 7:
            raise CodeTooLarge(
                "the tails of a kernel may need at most seven different masks, and these need more"
            )
        return mask

    def setup(self) -> bytes:
        return b"".join(
            asm.move_immediate(x86.SCRATCH, (1 << lanes) - 1) + asm.kmovw(mask, x86.SCRATCH)
            for lanes, mask in self.masks.items()
        )

    def teardown(self) -> bytes:
        return b""

    def zero(self, register: int) -> bytes:
        return evex(asm.VPXORD, register, register, register)

    def _on_memory(
        self, opcode: asm.Opcode, register: int, second: int, base: int, displacement: int, lanes: int
    ) -> bytes:
        """Encode an instruction on the first lanes; loads clear the others."""
        length = self._length(lanes)
        mask = self._mask(lanes, length)
        return evex_memory(opcode, register, second, base, displacement, length=length, mask=mask)

    def load(self, register: int, base: int, displacement: int, lanes: int) -> bytes:
        return self._on_memory(self.precision.load, register, 0, base, displacement, lanes)

    def broadcast(self, register: int, base: int, displacement: int, _lanes: int) -> bytes:
        return evex_memory(self.precision.broadcast, register, 0, base, displacement)

    def multiply_add(self, accumulator: int, x: int, y: int, lanes: int) -> bytes:
        if not self.sum_lanes:
            return evex(self.precision.multiply_add, accumulator, x, y, length=self._length(lanes))
        # All lanes of the accumulator are summed, and zero lanes times infinity would be NaN.
        return evex(self.precision.multiply_add, accumulator, x, y, mask=self._mask(lanes, asm.ZMM))

    def multiply_add_memory(
        self, accumulator: int, x: int, base: int, displacement: int, lanes: int, broadcast: bool
    ) -> bytes:
        length = asm.ZMM if self.sum_lanes else self._length(lanes)
        mask = self._mask(lanes, length)
        return evex_memory(
            self.precision.multiply_add,
            accumulator,
            x,
            base,
            displacement,
            length=length,
            mask=mask,
            broadcast=broadcast,
        )

    def add(self, accumulator: int, base: int, displacement: int, lanes: int, _scratch: int) -> bytes:
        return self._on_memory(self.precision.add, accumulator, accumulator, base, displacement, lanes)

    def store(self, accumulator: int, base: int, displacement: int, lanes: int, _scratch: int) -> bytes:
        return self._on_memory(self.precision.store, accumulator, 0, base, displacement, lanes)

    def store_sum(self, accumulator: int, base: int, displacement: int, add: bool, scratch: int) -> bytes:
        def add_scratch() -> bytes:
            return evex(self.precision.add, accumulator, accumulator, scratch)

        parts = [
            evex(asm.VSHUFF32X4, scratch, accumulator, accumulator, immediate=_SWAP_HALVES),
            add_scratch(),
            evex(asm.VSHUFF32X4, scratch, accumulator, accumulator, immediate=_SWAP_QUARTERS),
            add_scratch(),
            evex(asm.VPERMILPS, scratch, 0, accumulator, immediate=_SWAP_HALVES),
            add_scratch(),
        ]
        if self.precision is SINGLE:
            parts += [
                evex(asm.VPERMILPS, scratch, 0, accumulator, immediate=_SWAP_QUARTERS),
                add_scratch(),
            ]
        if add:
            parts.append(
                evex_memory(
                    self.precision.add_one, accumulator, accumulator, base, displacement, length=asm.XMM
                )
            )
        parts.append(
            evex_memory(self.precision.store_one, accumulator, 0, base, displacement, length=asm.XMM)
        )
        return b"".join(parts)
