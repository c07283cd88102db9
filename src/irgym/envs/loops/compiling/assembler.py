"""Assembler for the few x86-64 instructions in kernels.

Every function returns the bytes of one instruction. Encodings follow the Intel 64 and IA-32 Architectures
Software Developer's Manual, volume 2, sections 2.3 (VEX) and 2.7 (EVEX). Vector instructions are an `Opcode`
given to `vex`, `vex_memory`, `evex` or `evex_memory`; memory operands are a base register and a displacement
in bytes.
"""

import struct
from functools import cache
from typing import NamedTuple

RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15 = range(16)

_pack_int32 = struct.Struct("<i").pack


class Opcode(NamedTuple):
    """A vector instruction.

    Attributes:
        map: Opcode map: 1 for 0F, 2 for 0F38, 3 for 0F3A.
        prefix: Implied prefix: 0 for none, 1 for 66, 2 for F3.
        code: Opcode byte.
        scalar: Whether its memory operand is one element rather than a vector.
        zeroing: Whether lanes that an EVEX mask leaves out become 0 rather than keep their values.
        double: Whether elements have 64 bits, not 32; sets EVEX.W.
        vex_w: VEX.W.
    """

    map: int
    prefix: int
    code: int
    scalar: bool = False
    zeroing: bool = False
    double: bool = False
    vex_w: bool = False

    @property
    def bytes(self) -> int:
        """Bytes of an element."""
        return 8 if self.double else 4


VMOVUPS_LOAD = Opcode(1, 0, 0x10, zeroing=True)
VMOVUPS_STORE = Opcode(1, 0, 0x11)
VMOVSS_LOAD = Opcode(1, 2, 0x10, scalar=True)
VMOVSS_STORE = Opcode(1, 2, 0x11, scalar=True)
VBROADCASTSS = Opcode(2, 1, 0x18, scalar=True)
VMASKMOVPS_LOAD = Opcode(2, 1, 0x2C)
VFMADD231PS = Opcode(2, 1, 0xB8)
VFMADD231SS = Opcode(2, 1, 0xB9, scalar=True)
VADDPS = Opcode(1, 0, 0x58)
VADDSS = Opcode(1, 2, 0x58, scalar=True)
VANDPS = Opcode(1, 0, 0x54)
VXORPS = Opcode(1, 0, 0x57)
VPXORD = Opcode(1, 1, 0xEF)
VPERMILPS = Opcode(3, 1, 0x04)
VSHUFF32X4 = Opcode(3, 1, 0x23)
VEXTRACTF128 = Opcode(3, 1, 0x19)

XMM, YMM, ZMM = range(3)
"""Vector lengths of 128, 256 and 512 bits, as encoded in VEX and EVEX prefixes."""

_NOPS = (
    b"",
    b"\x90",
    b"\x66\x90",
    b"\x0f\x1f\x00",
    b"\x0f\x1f\x40\x00",
    b"\x0f\x1f\x44\x00\x00",
    b"\x66\x0f\x1f\x44\x00\x00",
    b"\x0f\x1f\x80\x00\x00\x00\x00",
    b"\x0f\x1f\x84\x00\x00\x00\x00\x00",
    b"\x66\x0f\x1f\x84\x00\x00\x00\x00\x00",
)
"""The recommended no-operations of 0 to 9 bytes (SDM, volume 2, NOP)."""


def nops(length: int) -> bytes:
    """Return `length` bytes of no-operations, as few as possible."""
    longest = len(_NOPS) - 1
    return _NOPS[longest] * (length // longest) + _NOPS[length % longest]


def push(register: int) -> bytes:
    """Encode `push r64`."""
    return (b"\x41" if register > 7 else b"") + bytes((0x50 | register & 7,))


def push_immediate(value: int) -> bytes:
    """Encode `push imm`, sign-extended to 64 bits."""
    return (
        b"\x6a" + value.to_bytes(1, "little", signed=True) if -128 <= value < 128 else b"\x68" + _int32(value)
    )


def pop(register: int) -> bytes:
    """Encode `pop r64`."""
    return (b"\x41" if register > 7 else b"") + bytes((0x58 | register & 7,))


def move(to: int, source: int) -> bytes:
    """Encode `mov r64, r64`."""
    return bytes((0x48 | source >> 3 << 2 | to >> 3, 0x89, 0xC0 | (source & 7) << 3 | to & 7))


def move_immediate(register: int, value: int) -> bytes:
    """Encode `mov r32, imm32`, which clears the upper half; `value` is not negative."""
    if value < 0:
        raise ValueError(f"{value} is negative")
    return (b"\x41" if register > 7 else b"") + bytes((0xB8 | register & 7,)) + _int32(value)


def add_immediate(register: int, value: int) -> bytes:
    """Encode `add r64, imm`."""
    head = 0x48 | register >> 3
    if -128 <= value < 128:
        return bytes((head, 0x83, 0xC0 | register & 7, value & 255))
    return bytes((head, 0x81, 0xC0 | register & 7)) + _int32(value)


def load_address(register: int, base: int, displacement: int) -> bytes:
    """Encode `lea r64, [base + displacement]`, with four bytes of displacement."""
    head = 0x48 | register >> 3 << 2 | base >> 3
    sib = b"\x24" if base & 7 == RSP else b""
    return bytes((head, 0x8D, 0x80 | (register & 7) << 3 | base & 7)) + sib + _int32(displacement)


def load(register: int, base: int, displacement: int) -> bytes:
    """Encode `mov r64, [base + displacement]`; the displacement is from -128 to 127."""
    return bytes((0x48 | register >> 3 << 2 | base >> 3, 0x8B)) + _short(register, base, displacement)


def add_to_memory(base: int, displacement: int, register: int) -> bytes:
    """Encode `add dword ptr [base + displacement], r32`; the displacement is from -128 to 127."""
    return _prefix(register, base) + b"\x01" + _short(register, base, displacement)


def increment_memory_locked(base: int) -> bytes:
    """Encode `lock inc dword ptr [base]`."""
    return b"\xf0" + _prefix(0, base) + b"\xff" + _short(0, base, 0)


def compare_memory(base: int, displacement: int, register: int) -> bytes:
    """Encode `cmp dword ptr [base + displacement], r32`; the displacement is from -128 to 127."""
    return _prefix(register, base) + b"\x39" + _short(register, base, displacement)


def exchange_memory(base: int, displacement: int, register: int) -> bytes:
    """Encode `xchg dword ptr [base + displacement], r32`, atomic; the displacement is from -128 to 127."""
    return _prefix(register, base) + b"\x87" + _short(register, base, displacement)


def call_memory(base: int, displacement: int) -> bytes:
    """Encode `call qword ptr [base + displacement]`; the displacement is from -128 to 127."""
    return _prefix(0, base) + b"\xff" + _short(2, base, displacement)


def pause() -> bytes:
    """Encode `pause`, for loops that wait for another core."""
    return b"\xf3\x90"


def jump(distance: int) -> bytes:
    """Encode `jmp` by `distance` bytes, from -126 to 129, relative to the start of this instruction."""
    return b"\xeb" + (distance - 2).to_bytes(1, "little", signed=True)


def jump_if_not_negative(distance: int) -> bytes:
    """Encode `jns` by `distance` bytes, from -126 to 129, relative to the start of this instruction."""
    return b"\x79" + (distance - 2).to_bytes(1, "little", signed=True)


def _prefix(register: int, base: int) -> bytes:
    """Return the REX prefix of a 32-bit instruction; empty if no register needs it."""
    bits = register >> 3 << 2 | base >> 3
    return bytes((0x40 | bits,)) if bits else b""


def _short(register: int, base: int, displacement: int) -> bytes:
    """Return the operand [base + displacement] with at most one byte of displacement, and a register."""
    sib = b"\x24" if base & 7 == RSP else b""
    bits = (register & 7) << 3 | base & 7
    if displacement == 0 and base & 7 != RBP:
        return bytes((bits,)) + sib
    return bytes((0x40 | bits,)) + sib + displacement.to_bytes(1, "little", signed=True)


def prefetch(base: int, displacement: int, to_write: bool = False) -> bytes:
    """Encode `prefetcht1 [base + displacement]`, into L2, or `prefetchw`, into L1; any address is allowed."""
    sib = b"\x24" if base & 7 == RSP else b""
    opcode, hint = (0x0D, 0x88) if to_write else (0x18, 0x90)
    return _prefix(0, base) + bytes((0x0F, opcode, hint | base & 7)) + sib + _int32(displacement)


def decrement(register: int) -> bytes:
    """Encode `dec r64`."""
    return bytes((0x48 | register >> 3, 0xFF, 0xC8 | register & 7))


def decrement_stack_top() -> bytes:
    """Encode `dec qword ptr [rsp]`."""
    return b"\x48\xff\x0c\x24"


def jump_if_not_zero(distance: int) -> bytes:
    """Encode `jnz` by `distance` bytes relative to the start of this instruction."""
    if -126 <= distance < 130:
        return bytes((0x75, (distance - 2) & 255))
    return b"\x0f\x85" + _int32(distance - 6)


def clear_eax() -> bytes:
    """Encode `xor eax, eax`, which clears rax."""
    return b"\x31\xc0"


def fill_with_eax() -> bytes:
    """Encode `rep stosd`: rcx times, store eax at rdi and advance rdi."""
    return b"\xf3\xab"


def vzeroupper() -> bytes:
    """Encode `vzeroupper`."""
    return b"\xc5\xf8\x77"


def ret() -> bytes:
    """Encode `ret`."""
    return b"\xc3"


def kmovw(mask: int, register: int) -> bytes:
    """Encode `kmovw k, r32`."""
    return vex(Opcode(1, 0, 0x92), mask, 0, register, length=XMM)


@cache
def vex(
    opcode: Opcode, reg: int, second: int, rm: int, *, length: int = YMM, immediate: int | None = None
) -> bytes:
    """Encode a VEX instruction between registers.

    Args:
        opcode: The instruction.
        reg: Register in ModRM.reg.
        second: Register in VEX.vvvv, 0 for none.
        rm: Register in ModRM.rm.
        length: `XMM` (scalars too) or `YMM`.
        immediate: The trailing byte, if there is one.
    """
    return (
        _vex_prefix(opcode, reg, second, rm, length)
        + bytes((opcode.code, 0xC0 | (reg & 7) << 3 | rm & 7))
        + (b"" if immediate is None else bytes((immediate,)))
    )


def vex_memory(
    opcode: Opcode, reg: int, second: int, base: int, displacement: int, *, length: int = YMM
) -> bytes:
    """Encode a VEX instruction with a memory operand [base + displacement]."""
    plain, short, long = _vex_memory_heads(opcode, reg, second, base, length)
    if displacement == 0 and plain:
        return plain
    if -128 <= displacement < 128:
        return short + bytes((displacement & 255,))
    return long + _int32(displacement)


@cache
def evex(
    opcode: Opcode,
    reg: int,
    second: int,
    rm: int,
    *,
    length: int = ZMM,
    mask: int = 0,
    immediate: int | None = None,
) -> bytes:
    """Encode an EVEX instruction between registers.

    Args:
        opcode: The instruction.
        reg: Register in ModRM.reg, 0 to 31.
        second: Register in EVEX.vvvv, 0 for none.
        rm: Register in ModRM.rm.
        length: `ZMM`, `YMM` or `XMM`; the last for scalars too.
        mask: Mask register, 0 for all lanes.
        immediate: The trailing byte, if there is one.
    """
    return (
        _evex_prefix(opcode, reg, second, rm & 15, rm >> 4, length, mask)
        + bytes((opcode.code, 0xC0 | (reg & 7) << 3 | rm & 7))
        + (b"" if immediate is None else bytes((immediate,)))
    )


def evex_memory(
    opcode: Opcode,
    reg: int,
    second: int,
    base: int,
    displacement: int,
    *,
    length: int = ZMM,
    mask: int = 0,
    broadcast: bool = False,
) -> bytes:
    """Encode an EVEX instruction with a memory operand [base + displacement].

    Args:
        opcode: The instruction.
        reg: Register in ModRM.reg, 0 to 31.
        second: Register in EVEX.vvvv, 0 for none.
        base: Base register.
        displacement: In bytes; encoded in one byte if it is a small multiple of the operand's size.
        length: Of the vector; `XMM` for scalars.
        mask: Mask register, 0 for all lanes. Memory of masked-off lanes is not touched.
        broadcast: Whether the operand is one element for all lanes.
    """
    plain, short, long = _evex_memory_heads(opcode, reg, second, base, length, mask, broadcast)
    if displacement == 0 and plain:
        return plain
    scaled, rest = divmod(displacement, opcode.bytes if broadcast or opcode.scalar else 16 << length)
    if not rest and -128 <= scaled < 128:
        return short + bytes((scaled & 255,))
    return long + _int32(displacement)


def _int32(value: int) -> bytes:
    try:
        return _pack_int32(value)
    except struct.error:
        raise ValueError(f"{value} does not fit into 32 bits") from None


@cache
def _vex_prefix(opcode: Opcode, reg: int, second: int, rm: int, length: int) -> bytes:
    tail = (~second & 15) << 3 | length << 2 | opcode.prefix
    if opcode.map == 1 and rm < 8 and not opcode.vex_w:
        return bytes((0xC5, (0 if reg > 7 else 0x80) | tail))
    inverted = (0 if reg > 7 else 0x80) | 0x40 | (0 if rm > 7 else 0x20)
    return bytes((0xC4, inverted | opcode.map, opcode.vex_w << 7 | tail))


@cache
def _vex_memory_heads(
    opcode: Opcode, reg: int, second: int, base: int, length: int
) -> tuple[bytes, bytes, bytes]:
    return _memory_heads(_vex_prefix(opcode, reg, second, base, length), opcode.code, reg, base)


def _evex_prefix(
    opcode: Opcode,
    reg: int,
    second: int,
    rm: int,
    rm_high: int,
    length: int,
    mask: int,
    broadcast: bool = False,
) -> bytes:
    zero = opcode.zeroing and mask > 0
    return bytes(
        (
            0x62,
            (~reg >> 3 & 1) << 7
            | (~rm_high & 1) << 6
            | (~rm >> 3 & 1) << 5
            | (~reg >> 4 & 1) << 4
            | opcode.map,
            opcode.double << 7 | (~second & 15) << 3 | 4 | opcode.prefix,
            zero << 7 | length << 5 | broadcast << 4 | (~second >> 4 & 1) << 3 | mask,
        )
    )


@cache
def _evex_memory_heads(
    opcode: Opcode, reg: int, second: int, base: int, length: int, mask: int, broadcast: bool
) -> tuple[bytes, bytes, bytes]:
    prefix = _evex_prefix(opcode, reg, second, base, 0, length, mask, broadcast)
    return _memory_heads(prefix, opcode.code, reg, base)


def _memory_heads(prefix: bytes, code: int, reg: int, base: int) -> tuple[bytes, bytes, bytes]:
    """Return an instruction without its displacement, in the forms with 0, 1 and 4 bytes of displacement.

    The first is empty for base registers that always need a displacement.
    """
    sib = b"\x24" if base & 7 == RSP else b""
    plain, short, long = (
        prefix + bytes((code, mod << 6 | (reg & 7) << 3 | base & 7)) + sib for mod in range(3)
    )
    return b"" if base & 7 == RBP else plain, short, long
