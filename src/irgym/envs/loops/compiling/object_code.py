"""Object files of machine code: functions that run once, with a static workspace for each thread."""

import numpy as np

from irgym.envs.loops.compiling import assembler as asm
from irgym.envs.loops.compiling import elf
from irgym.envs.loops.compiling.kernel import Kernel

CODE_ALIGNMENT = 64
"""Preferred alignment of the generated code, in bytes."""

_ADDRESS_OF_ONE = b"\x48\x8d\x35"
"""`lea rsi, [rip + distance]`, less the distance, which is counted from the end of the instruction."""


def object_code(kernel: Kernel, code: bytes, name: str) -> bytes:
    """Return an ELF object with the function `name`, which takes no repetitions and no workspace.

    Args:
        kernel: The kernel.
        code: Its machine code, as `x86` describes it.
        name: Name of the function.
    """
    # The function sets the number of repetitions and falls through into the code, which stays aligned.
    once = asm.move_immediate(asm.RCX, 1)
    save = unit = b""
    distance = 0
    if kernel.workspace:
        pointers = (asm.RDI, asm.RSI, asm.RDX)
        save = b"".join(map(asm.push, pointers))
        restore = asm.move(asm.R8, asm.RAX) + b"".join(map(asm.pop, reversed(pointers)))
        once = save + elf.workspace_address() + restore + once
    if kernel.inputs == 1:
        # The function has no B: C is its second argument, and B the number 1 before the function.
        unit = np.ones(1, kernel.elements.input_type).tobytes()
        once += asm.move(asm.RDX, asm.RSI) + _ADDRESS_OF_ONE
        distance = 4
    length = len(once) + distance
    start = len(unit) + -(len(unit) + length) % CODE_ALIGNMENT
    once += (-start - length).to_bytes(distance, "little", signed=True) if unit else b""
    workspace = (start + len(save), kernel.elements.bytes * kernel.workspace) if kernel.workspace else None
    return elf.relocatable(unit + asm.nops(start - len(unit)) + once + code, name, start, workspace)
