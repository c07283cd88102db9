"""Instructions of the x86-64 generators in single and in double precision."""

from typing import NamedTuple

from irgym.base.errors import BackendError
from irgym.envs.loops.compiling import assembler as asm
from irgym.envs.loops.programs.elements import F32, F64, Elements


class Precision(NamedTuple):
    """Instructions on elements of one size.

    Attributes:
        bytes: Bytes of an element.
        load, store: Moves of vectors.
        load_masked: Load of the lanes that a vector of masks selects, without EVEX.
        load_one, store_one: Moves of single elements.
        broadcast: Load of one element into all lanes.
        multiply_add, multiply_add_one: Multiply-adds of vectors and of single elements.
        add, add_one: Additions.
    """

    bytes: int
    load: asm.Opcode
    store: asm.Opcode
    load_masked: asm.Opcode
    load_one: asm.Opcode
    store_one: asm.Opcode
    broadcast: asm.Opcode
    multiply_add: asm.Opcode
    multiply_add_one: asm.Opcode
    add: asm.Opcode
    add_one: asm.Opcode


SINGLE = Precision(
    bytes=4,
    load=asm.VMOVUPS_LOAD,
    store=asm.VMOVUPS_STORE,
    load_masked=asm.VMASKMOVPS_LOAD,
    load_one=asm.VMOVSS_LOAD,
    store_one=asm.VMOVSS_STORE,
    broadcast=asm.VBROADCASTSS,
    multiply_add=asm.VFMADD231PS,
    multiply_add_one=asm.VFMADD231SS,
    add=asm.VADDPS,
    add_one=asm.VADDSS,
)
DOUBLE = Precision(
    bytes=8,
    load=asm.Opcode(1, 1, 0x10, zeroing=True, double=True),
    store=asm.Opcode(1, 1, 0x11, double=True),
    load_masked=asm.Opcode(2, 1, 0x2D, double=True),
    load_one=asm.Opcode(1, 3, 0x10, scalar=True, double=True),
    store_one=asm.Opcode(1, 3, 0x11, scalar=True, double=True),
    broadcast=asm.Opcode(2, 1, 0x19, scalar=True, double=True),
    multiply_add=asm.Opcode(2, 1, 0xB8, double=True, vex_w=True),
    multiply_add_one=asm.Opcode(2, 1, 0xB9, scalar=True, double=True, vex_w=True),
    add=asm.Opcode(1, 1, 0x58, double=True),
    add_one=asm.Opcode(1, 3, 0x58, scalar=True, double=True),
)

PRECISIONS = {F32.name: SINGLE, F64.name: DOUBLE}
"""By the name of the types of elements."""


def precision_of(elements: Elements) -> Precision:
    """Return the instructions for elements.

    Raises:
        BackendError: There are none.
    """
    if elements.name not in PRECISIONS:
        raise BackendError(f"the x86-64 generators have no dtype={elements.name}: choose the back end llvm")
    return PRECISIONS[elements.name]
