import re
import shutil
import subprocess
from itertools import product
from pathlib import Path

import pytest

from irgym.envs.loops.compiling import assembler as asm
from irgym.envs.loops.compiling.assembler import Opcode, evex, evex_memory, vex, vex_memory
from irgym.envs.loops.compiling.precision import DOUBLE

NAMES = ["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", *(f"r{n}" for n in range(8, 16))]
DWORDS = ["eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", *(f"r{n}d" for n in range(8, 16))]


def disassemble(code: bytes, folder: Path) -> list[str]:
    """Return the instructions as GNU objdump writes them in Intel syntax, comments and hints removed."""
    file = folder / "code"
    file.write_bytes(code)
    listing = subprocess.run(
        ["objdump", "-D", "-b", "binary", "-m", "i386:x86-64", "-M", "intel", "--no-show-raw-insn", file],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    lines = re.findall(r"^ *[0-9a-f]+:\t(.+)$", listing, flags=re.MULTILINE)
    return [re.sub(r"\s+", " ", line.split("#")[0]).removeprefix("{evex} ").strip() for line in lines]


def address(base: int, displacement: int) -> str:
    return f"[{NAMES[base]}{'+' if displacement >= 0 else '-'}{abs(displacement):#x}]"


def memory_cases() -> list[tuple[bytes, str]]:
    """Return memory operands with every base and every length of displacement, and their text."""
    cases: list[tuple[bytes, str]] = []
    displacements = (
        0,
        4,
        -4,
        64,
        -64,
        127,
        128,
        -128,
        -129,
        508,
        512,
        -512,
        8128,
        8192,
        -8192,
        1 << 30,
        -(1 << 30),
    )
    for base, displacement in product(range(16), displacements):
        where = address(base, displacement)
        cases += [
            (
                evex_memory(asm.VMOVUPS_LOAD, 17, 0, base, displacement),
                f"vmovups zmm17,ZMMWORD PTR {where}",
            ),
            (
                evex_memory(asm.VMOVUPS_LOAD, 9, 0, base, displacement, mask=3),
                f"vmovups zmm9{{k3}}{{z}},ZMMWORD PTR {where}",
            ),
            (
                evex_memory(asm.VMOVUPS_STORE, 26, 0, base, displacement, mask=1),
                f"vmovups ZMMWORD PTR {where}{{k1}},zmm26",
            ),
            (
                evex_memory(asm.VBROADCASTSS, 31, 0, base, displacement),
                f"vbroadcastss zmm31,DWORD PTR {where}",
            ),
            (
                evex_memory(asm.VFMADD231PS, 3, 29, base, displacement),
                f"vfmadd231ps zmm3,zmm29,ZMMWORD PTR {where}",
            ),
            (
                evex_memory(asm.VFMADD231PS, 24, 6, base, displacement, mask=7, broadcast=True),
                f"vfmadd231ps zmm24{{k7}},zmm6,DWORD BCST {where}",
            ),
            (
                evex_memory(asm.VFMADD231SS, 20, 11, base, displacement, length=asm.XMM),
                f"vfmadd231ss xmm20,xmm11,DWORD PTR {where}",
            ),
            (
                evex_memory(asm.VMOVSS_LOAD, 20, 0, base, displacement, length=asm.XMM),
                f"vmovss xmm20,DWORD PTR {where}",
            ),
            (
                evex_memory(asm.VMOVSS_STORE, 20, 0, base, displacement, length=asm.XMM),
                f"vmovss DWORD PTR {where},xmm20",
            ),
            (
                evex_memory(asm.VADDSS, 20, 21, base, displacement, length=asm.XMM),
                f"vaddss xmm20,xmm21,DWORD PTR {where}",
            ),
            (evex_memory(asm.VADDPS, 25, 4, base, displacement), f"vaddps zmm25,zmm4,ZMMWORD PTR {where}"),
            (
                evex_memory(asm.VADDPS, 25, 25, base, displacement, mask=2),
                f"vaddps zmm25{{k2}},zmm25,ZMMWORD PTR {where}",
            ),
            (
                evex_memory(asm.VADDPS, 25, 25, base, displacement, length=asm.YMM),
                f"vaddps ymm25,ymm25,YMMWORD PTR {where}",
            ),
            (
                evex_memory(asm.VADDPS, 25, 25, base, displacement, length=asm.XMM),
                f"vaddps xmm25,xmm25,XMMWORD PTR {where}",
            ),
            (vex_memory(asm.VADDPS, 5, 14, base, displacement), f"vaddps ymm5,ymm14,YMMWORD PTR {where}"),
            (
                vex_memory(asm.VADDPS, 5, 14, base, displacement, length=asm.XMM),
                f"vaddps xmm5,xmm14,XMMWORD PTR {where}",
            ),
            (vex_memory(asm.VMOVUPS_LOAD, 12, 0, base, displacement), f"vmovups ymm12,YMMWORD PTR {where}"),
            (vex_memory(asm.VMOVUPS_STORE, 3, 0, base, displacement), f"vmovups YMMWORD PTR {where},ymm3"),
            (
                vex_memory(asm.VMASKMOVPS_LOAD, 8, 7, base, displacement),
                f"vmaskmovps ymm8,ymm7,YMMWORD PTR {where}",
            ),
            (
                vex_memory(asm.VBROADCASTSS, 15, 0, base, displacement),
                f"vbroadcastss ymm15,DWORD PTR {where}",
            ),
            (
                vex_memory(asm.VFMADD231PS, 5, 14, base, displacement),
                f"vfmadd231ps ymm5,ymm14,YMMWORD PTR {where}",
            ),
            (vex_memory(asm.VANDPS, 5, 14, base, displacement), f"vandps ymm5,ymm14,YMMWORD PTR {where}"),
            (
                vex_memory(asm.VFMADD231SS, 5, 14, base, displacement, length=asm.XMM),
                f"vfmadd231ss xmm5,xmm14,DWORD PTR {where}",
            ),
            (
                vex_memory(asm.VMOVSS_LOAD, 9, 0, base, displacement, length=asm.XMM),
                f"vmovss xmm9,DWORD PTR {where}",
            ),
            (
                vex_memory(asm.VMOVSS_STORE, 9, 0, base, displacement, length=asm.XMM),
                f"vmovss DWORD PTR {where},xmm9",
            ),
            (
                vex_memory(asm.VADDSS, 1, 10, base, displacement, length=asm.XMM),
                f"vaddss xmm1,xmm10,DWORD PTR {where}",
            ),
        ]
    return cases


def register_cases() -> list[tuple[bytes, str]]:
    """Return instructions between registers, low and high ones in each position, and their text."""
    cases: list[tuple[bytes, str]] = []
    for x, y, z in product((0, 7, 8, 15, 16, 24, 31), repeat=3):
        cases += [
            (evex(asm.VFMADD231PS, x, y, z), f"vfmadd231ps zmm{x},zmm{y},zmm{z}"),
            (evex(asm.VFMADD231PS, x, y, z, mask=5), f"vfmadd231ps zmm{x}{{k5}},zmm{y},zmm{z}"),
            (evex(asm.VFMADD231SS, x, y, z, length=asm.XMM), f"vfmadd231ss xmm{x},xmm{y},xmm{z}"),
            (evex(asm.VADDPS, x, y, z), f"vaddps zmm{x},zmm{y},zmm{z}"),
            (evex(asm.VPXORD, x, y, z), f"vpxord zmm{x},zmm{y},zmm{z}"),
            (evex(asm.VSHUFF32X4, x, y, z, immediate=0x4E), f"vshuff32x4 zmm{x},zmm{y},zmm{z},0x4e"),
            (evex(asm.VPERMILPS, x, 0, z, immediate=0xB1), f"vpermilps zmm{x},zmm{z},0xb1"),
        ]
    for x, y, z in product((0, 7, 8, 15), repeat=3):
        cases += [
            (vex(asm.VFMADD231PS, x, y, z), f"vfmadd231ps ymm{x},ymm{y},ymm{z}"),
            (vex(asm.VFMADD231SS, x, y, z, length=asm.XMM), f"vfmadd231ss xmm{x},xmm{y},xmm{z}"),
            (vex(asm.VADDPS, x, y, z, length=asm.XMM), f"vaddps xmm{x},xmm{y},xmm{z}"),
            (vex(asm.VXORPS, x, y, z, length=asm.XMM), f"vxorps xmm{x},xmm{y},xmm{z}"),
            (vex(asm.VPERMILPS, x, 0, z, length=asm.XMM, immediate=0x4E), f"vpermilps xmm{x},xmm{z},0x4e"),
            (vex(asm.VEXTRACTF128, x, 0, z, immediate=1), f"vextractf128 xmm{z},ymm{x},0x1"),
        ]
    return cases


def double_cases() -> list[tuple[bytes, str]]:
    """Return instructions on float64, with operands as those on float32 have, and their text."""
    cases: list[tuple[bytes, str]] = []
    d = DOUBLE
    for base, displacement in product((0, 5, 12, 13), (0, 8, 64, 512, -1024, 1016, 1024, 1 << 30)):
        where = address(base, displacement)
        for length, name, word in ((asm.ZMM, "zmm", "Z"), (asm.YMM, "ymm", "Y"), (asm.XMM, "xmm", "X")):
            at, place = f"{word}MMWORD PTR {where}", (base, displacement)

            cases += [
                (
                    evex_memory(d.load, 17, 0, *place, length=length, mask=3),
                    f"vmovupd {name}17{{k3}}{{z}},{at}",
                ),
                (
                    evex_memory(d.store, 26, 0, *place, length=length, mask=1),
                    f"vmovupd {at}{{k1}},{name}26",
                ),
                (
                    evex_memory(d.multiply_add, 3, 29, *place, length=length),
                    f"vfmadd231pd {name}3,{name}29,{at}",
                ),
                (
                    evex_memory(d.add, 25, 25, *place, length=length, mask=2),
                    f"vaddpd {name}25{{k2}},{name}25,{at}",
                ),
            ]
        cases += [
            (evex_memory(d.broadcast, 31, 0, base, displacement), f"vbroadcastsd zmm31,QWORD PTR {where}"),
            (
                evex_memory(d.multiply_add, 24, 6, base, displacement, mask=7, broadcast=True),
                f"vfmadd231pd zmm24{{k7}},zmm6,QWORD BCST {where}",
            ),
            (
                evex_memory(d.multiply_add_one, 20, 11, base, displacement, length=asm.XMM),
                f"vfmadd231sd xmm20,xmm11,QWORD PTR {where}",
            ),
            (
                evex_memory(d.load_one, 20, 0, base, displacement, length=asm.XMM),
                f"vmovsd xmm20,QWORD PTR {where}",
            ),
            (
                evex_memory(d.store_one, 20, 0, base, displacement, length=asm.XMM),
                f"vmovsd QWORD PTR {where},xmm20",
            ),
            (
                evex_memory(d.add_one, 20, 21, base, displacement, length=asm.XMM),
                f"vaddsd xmm20,xmm21,QWORD PTR {where}",
            ),
            (vex_memory(d.load, 12, 0, base, displacement), f"vmovupd ymm12,YMMWORD PTR {where}"),
            (vex_memory(d.store, 3, 0, base, displacement), f"vmovupd YMMWORD PTR {where},ymm3"),
            (
                vex_memory(d.load_masked, 8, 7, base, displacement),
                f"vmaskmovpd ymm8,ymm7,YMMWORD PTR {where}",
            ),
            (vex_memory(d.broadcast, 15, 0, base, displacement), f"vbroadcastsd ymm15,QWORD PTR {where}"),
            (
                vex_memory(d.multiply_add, 5, 14, base, displacement),
                f"vfmadd231pd ymm5,ymm14,YMMWORD PTR {where}",
            ),
            (
                vex_memory(d.multiply_add_one, 5, 14, base, displacement, length=asm.XMM),
                f"vfmadd231sd xmm5,xmm14,QWORD PTR {where}",
            ),
            (
                vex_memory(d.load_one, 9, 0, base, displacement, length=asm.XMM),
                f"vmovsd xmm9,QWORD PTR {where}",
            ),
            (
                vex_memory(d.add_one, 1, 10, base, displacement, length=asm.XMM),
                f"vaddsd xmm1,xmm10,QWORD PTR {where}",
            ),
        ]
    for x, y, z in product((0, 8, 15), repeat=3):
        cases += [
            (evex(d.multiply_add, x + 16, y, z, mask=5), f"vfmadd231pd zmm{x + 16}{{k5}},zmm{y},zmm{z}"),
            (evex(d.add, x, y, z + 16), f"vaddpd zmm{x},zmm{y},zmm{z + 16}"),
            (vex(d.multiply_add, x, y, z), f"vfmadd231pd ymm{x},ymm{y},ymm{z}"),
            (vex(d.add, x, y, z, length=asm.XMM), f"vaddpd xmm{x},xmm{y},xmm{z}"),
        ]
    return cases


def general_cases() -> list[tuple[bytes, str]]:
    """Return the general-purpose instructions on every register, and their text."""
    cases = [
        (asm.push_immediate(-1), "push 0xffffffffffffffff"),
        (asm.push_immediate(127), "push 0x7f"),
        (asm.push_immediate(128), "push 0x80"),
        (asm.decrement_stack_top(), "dec QWORD PTR [rsp]"),
        (asm.clear_eax(), "xor eax,eax"),
        (asm.fill_with_eax(), "rep stos DWORD PTR es:[rdi],eax"),
        (asm.vzeroupper(), "vzeroupper"),
        (asm.ret(), "ret"),
        (asm.pause(), "pause"),
    ]
    for register, name in enumerate(NAMES):
        cases += [
            (asm.push(register), f"push {name}"),
            (asm.pop(register), f"pop {name}"),
            (asm.move(register, asm.RDI), f"mov {name},rdi"),
            (asm.move(asm.R9, register), f"mov r9,{name}"),
            (asm.move_immediate(register, 1 << 28), f"mov {DWORDS[register]},0x10000000"),
            (asm.add_immediate(register, 127), f"add {name},0x7f"),
            (asm.add_immediate(register, 128), f"add {name},0x80"),
            (asm.add_immediate(register, -128), f"add {name},0xffffffffffffff80"),
            (asm.add_immediate(register, -(1 << 31)), f"add {name},0xffffffff80000000"),
            (asm.decrement(register), f"dec {name}"),
            (asm.load(register, asm.RBX, 8), f"mov {name},QWORD PTR [rbx+0x8]"),
            (asm.load(asm.R9, register, -8), f"mov r9,QWORD PTR [{name}-0x8]"),
            (asm.add_to_memory(asm.RBX, 8, register), f"add DWORD PTR [rbx+0x8],{DWORDS[register]}"),
            (asm.increment_memory_locked(register), f"lock inc DWORD PTR [{name}+0x0]"),
            (asm.compare_memory(register, 0, asm.RCX), f"cmp DWORD PTR [{name}+0x0],ecx"),
            (asm.compare_memory(asm.RAX, 8, register), f"cmp DWORD PTR [rax+0x8],{DWORDS[register]}"),
            (asm.exchange_memory(register, 8, asm.RCX), f"xchg DWORD PTR [{name}+0x8],ecx"),
            (asm.exchange_memory(asm.RBX, 0, register), f"xchg DWORD PTR [rbx+0x0],{DWORDS[register]}"),
            (asm.prefetch(register, 1 << 12), f"prefetcht1 BYTE PTR [{name}+0x1000]"),
            (asm.prefetch(register, -8), f"prefetcht1 BYTE PTR [{name}-0x8]"),
            (asm.prefetch(register, -8, to_write=True), f"prefetchw BYTE PTR [{name}-0x8]"),
            (asm.call_memory(register, 16), f"call QWORD PTR [{name}+0x10]"),
            (asm.kmovw(register & 7, register), f"kmovw k{register & 7},{DWORDS[register]}"),
        ]
    return cases


@pytest.mark.skipif(shutil.which("objdump") is None, reason="needs GNU objdump as the oracle")
@pytest.mark.parametrize("cases", [memory_cases, register_cases, double_cases, general_cases])
def test_every_instruction_disassembles_to_what_was_meant(cases, tmp_path: Path) -> None:
    codes, texts = zip(*cases(), strict=True)
    # A base that always needs a displacement has one of 0; the others have none.
    meant = [text if re.search(r"\[(rbp|r13)\+0x0\]", text) else text.replace("+0x0]", "]") for text in texts]
    assert disassemble(b"".join(codes), tmp_path) == meant


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (evex(asm.VFMADD231PS, 0, 30, 31), "62920d40b8c7"),
        (evex_memory(asm.VMOVUPS_LOAD, 30, 0, asm.RSI, 64), "62617c48107601"),
        (evex_memory(asm.VBROADCASTSS, 31, 0, asm.RDI, 512), "62627d4818bf00020000"),
        (vex_memory(asm.VFMADD231PS, 2, 13, asm.RSI, 32), "c4e215b85620"),
        (vex_memory(asm.VMOVUPS_STORE, 2, 0, asm.RDX, 0), "c5fc1112"),
        (asm.kmovw(1, asm.R11), "c4c17892cb"),
        (asm.add_immediate(asm.RSI, 512), "4881c600020000"),
    ],
)
def test_known_bytes(code: bytes, expected: str) -> None:
    assert code.hex() == expected


def test_displacements_are_one_byte_where_a_multiple_of_the_operand_fits() -> None:
    def length(opcode: Opcode, displacement: int, **options: bool) -> int:
        return len(evex_memory(opcode, 0, 0, asm.RSI, displacement, **options))

    assert length(asm.VMOVUPS_LOAD, 0) == 6
    assert length(asm.VMOVUPS_LOAD, 127 * 64) == length(asm.VMOVUPS_LOAD, -128 * 64) == 7
    assert length(asm.VMOVUPS_LOAD, 128 * 64) == length(asm.VMOVUPS_LOAD, 32) == 10
    assert length(asm.VBROADCASTSS, 127 * 4) == length(asm.VFMADD231PS, 127 * 4, broadcast=True) == 7
    assert length(asm.VBROADCASTSS, 128 * 4) == 10


@pytest.mark.parametrize("distance", [-(1 << 20), -127, -126, 0, 129, 130, 1 << 20])
def test_jumps_go_where_they_should(distance: int) -> None:
    code = asm.jump_if_not_zero(distance)
    short = -126 <= distance < 130
    assert len(code) == (2 if short else 6)
    assert len(code) + int.from_bytes(code[1 if short else 2 :], "little", signed=True) == distance


def test_nops_have_the_length_that_was_asked_for(tmp_path: Path) -> None:
    for length in range(64):
        assert len(asm.nops(length)) == length
    if shutil.which("objdump"):
        listing = disassemble(b"".join(map(asm.nops, range(64))), tmp_path)
        assert all("nop" in line or line == "xchg ax,ax" for line in listing)


@pytest.mark.parametrize("value", [1 << 31, -(1 << 31) - 1])
def test_numbers_beyond_32_bits_are_refused(value: int) -> None:
    for encode in (
        lambda: asm.add_immediate(asm.RSI, value),
        lambda: asm.move_immediate(asm.RAX, value),
        lambda: evex_memory(asm.VMOVUPS_LOAD, 0, 0, asm.RSI, value),
        lambda: vex_memory(asm.VMOVUPS_LOAD, 0, 0, asm.RSI, value),
    ):
        with pytest.raises(ValueError, match=r"32 bits|negative"):
            encode()
