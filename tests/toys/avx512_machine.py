"""A machine that executes the AVX-512 code of kernels from GNU's disassembly, with numpy.

It knows only the instructions that the generator writes. Memory is one array; addresses are its indices.
"""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

NAMES = ("ax", "cx", "dx", "bx", "sp", "bp", "si", "di")
REGISTERS = [*(f"r{name}" for name in NAMES), *(f"r{number}" for number in range(8, 16))]
LOW = [*(f"e{name}" for name in NAMES), *(f"r{number}d" for number in range(8, 16))]
IDLE = ("nop", "nopw", "nopl", "data16", "cs", "xchg", "vzeroupper", "prefetcht1")
BYTES = {"x": 16, "y": 32, "z": 64}

Lanes = NDArray[Any]


def instructions(code: bytes, folder: Path) -> tuple[dict[int, int], list[tuple[str, list[str]]]]:
    """Return the places of instructions by address, and their names with operands."""
    (folder / "code").write_bytes(code)
    command = ["objdump", "-D", "-b", "binary", "-m", "i386:x86-64", "-M", "intel", "--no-show-raw-insn"]
    listing = subprocess.run([*command, folder / "code"], capture_output=True, text=True, check=True).stdout
    lines = re.findall(r"^ *([0-9a-f]+):\t(?:\{evex\} )?(\S+) *([^#\n]*)", listing, re.MULTILINE)
    places = {int(address, 16): place for place, (address, _, _) in enumerate(lines)}
    return places, [(name, operands.strip().split(",")) for _, name, operands in lines]


class Machine:
    """Registers, masks and memory; what registers hold at first is random."""

    def __init__(self, memory: NDArray[np.uint8], arguments: Sequence[int]) -> None:
        self.memory = memory
        self.general = dict.fromkeys(REGISTERS, 0)
        self.general.update(zip(("rdi", "rsi", "rdx", "rcx", "r8"), arguments, strict=True))
        self.vectors = np.random.default_rng(0).integers(0, 256, (32, 64), np.uint8)
        self.masks = [0] * 8
        self.stack: list[int] = []
        self.zero = False

    def run(self, code: bytes, folder: Path) -> None:
        """Execute a function."""
        places, lines = instructions(code, folder)
        at = 0
        while lines[at][0] != "ret":
            name, operands = lines[at]
            at += 1
            if name == "jne":
                at = at if self.zero else places[int(operands[0], 16)]
            elif name.startswith("v") and name != "vzeroupper":
                self._vector(name, operands)
            elif name not in IDLE:
                self._general(name, *operands)

    def _general(self, name: str, first: str, second: str = "") -> None:
        held = self.general
        if name == "push":
            self.stack.append(held[first] if first in held else int(first, 0))
        elif name == "pop":
            held[first] = self.stack.pop()
        elif name == "dec" and "PTR" in first:
            self.stack[-1] -= 1
            self.zero = not self.stack[-1]
        elif name == "dec":
            held[first] -= 1
            self.zero = not held[first]
        elif name == "add" and first == "rsp":
            self.stack.pop()
        elif name == "add":
            value = int(second, 0)
            held[first] += value - (value >> 63 << 64)
        elif name == "lea":
            held[first] = self._address(second)
        elif name == "mov":
            full = first if first in held else REGISTERS[LOW.index(first)]
            held[full] = held[second] if second in held else int(second, 0)
        elif name == "xor":
            held["rax"] = 0
        elif name == "rep":
            size = 4 * held["rcx"]
            self._part(held["rdi"], size)[:] = 0
            held["rdi"], held["rcx"] = held["rdi"] + size, 0
        elif name == "kmovw":
            self.masks[int(first[1])] = held[REGISTERS[LOW.index(second)]]
        else:
            raise NotImplementedError(name)

    def _address(self, operand: str) -> int:
        base, sign, distance = re.findall(r"\[(\w+)(?:([+-])(\w+))?\]", operand)[0]
        return self.general[base] + int(f"{sign}{distance or 0}", 0)

    def _part(self, address: int, size: int) -> NDArray[np.uint8]:
        assert 0 <= address <= address + size <= len(self.memory), "outside of memory"
        return self.memory[address : address + size]

    def _vector(self, name: str, operands: Sequence[str]) -> None:
        kind = np.dtype(np.float64 if name.endswith("d") else np.float32)
        if name == "vpxord":
            self._write(operands[0], np.zeros(16, np.float32))
        elif name in ("vshuff32x4", "vpermilps"):
            self._shuffle(operands)
        elif "PTR" in operands[0]:
            values = self._read(operands[1], kind, name)
            address, chosen = self._address(operands[0]), self._chosen(operands[0], len(values))
            for lane in np.flatnonzero(chosen):
                element = self._part(address + int(lane) * kind.itemsize, kind.itemsize)
                element[:] = values[lane : lane + 1].view(np.uint8)
        else:
            before = self._read(operands[0], kind, name)
            sources = [self._read(source, kind, name, operands[0]) for source in operands[1:]]
            sources = [np.resize(source, len(before)) for source in sources]
            if name.startswith("vfmadd"):
                self._write(operands[0], before + sources[0] * sources[1])
            else:
                self._write(operands[0], sum(sources[1:], sources[0]))

    def _chosen(self, operand: str, count: int) -> NDArray[np.bool_]:
        mask = re.search(r"\{k(\d)\}", operand)
        bits = self.masks[int(mask[1])] if mask else -1
        return np.array([bool(bits >> lane & 1) for lane in range(count)])

    def _read(self, operand: str, kind: "np.dtype[Any]", name: str, to: str = "") -> Lanes:
        """Return an operand: a vector, or one element; lanes without a mask bit are not read."""
        scalar = name.endswith(("ss", "sd")) and "broadcast" not in name
        if "PTR" not in operand and "BCST" not in operand:
            match = re.match(r"([xyz])mm(\d+)", operand)
            assert match is not None
            size = kind.itemsize if scalar else BYTES[match[1]]
            return self.vectors[int(match[2])][:size].view(kind).copy()
        address = self._address(operand)
        if scalar or "broadcast" in name or "BCST" in operand:
            return self._part(address, kind.itemsize).view(kind).copy()
        values = np.zeros(BYTES[to[0]] // kind.itemsize, kind)
        for lane in np.flatnonzero(self._chosen(to, len(values))):
            values[lane] = self._part(address + int(lane) * kind.itemsize, kind.itemsize).view(kind)[0]
        return values

    def _write(self, operand: str, values: Lanes) -> None:
        """Write a register: lanes without a mask bit stay, or become 0 with {z}; those beyond become 0."""
        match = re.match(r"[xyz]mm(\d+)", operand)
        assert match is not None
        register = self.vectors[int(match[1])]
        before = np.zeros_like(values) if "{z}" in operand else register[: values.nbytes].view(values.dtype)
        kept = np.where(self._chosen(operand, len(values)), values, before).astype(values.dtype)
        register[:] = np.concatenate([kept.view(np.uint8), np.zeros(64 - values.nbytes, np.uint8)])

    def _shuffle(self, operands: Sequence[str]) -> None:
        """Reorder the four parts of 128 bits, or the 32-bit elements in each of them."""
        numbers = [int(operand[3:]) for operand in operands[:-1]]
        order = [int(operands[-1], 0) >> 2 * part & 3 for part in range(4)]
        parts = [self.vectors[number].view(np.float32).reshape(4, 4) for number in numbers]
        if len(numbers) > 2:
            result = np.concatenate([parts[1][order[:2]], parts[2][order[2:]]])
        else:
            result = parts[1][:, order]
        self._write(operands[0], np.ascontiguousarray(result).reshape(-1))
