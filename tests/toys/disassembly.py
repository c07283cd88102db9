"""Instructions of an object file, by GNU's disassembler."""

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from irgym.measure.target import host_target

OBJDUMP = shutil.which("objdump")

needs_avx512 = pytest.mark.skipif(host_target().name != "x86-64-v4", reason="needs AVX-512")
needs_objdump = pytest.mark.skipif(OBJDUMP is None, reason="needs objdump, of binutils")


@dataclass(frozen=True)
class Code:
    """How many instructions of a function are of a kind.

    Attributes:
        all: All of them.
        evex: Those with the prefix that AVX-512 brought; in 64-bit code no other begins with its byte.
        wide: Those on 256-bit registers.
        fused: Multiply-adds.
    """

    all: int
    evex: int
    wide: int
    fused: int


def functions(path: Path) -> Mapping[str, Code]:
    """Return the functions of an object file."""
    assert OBJDUMP is not None
    command = [OBJDUMP, "-d", "--insn-width=16", path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, list[tuple[str, str]]] = {}
    name = ""
    for line in done.stdout.splitlines():
        if heading := re.fullmatch(r"[0-9a-f]+ <(.*)>:", line):
            name = heading[1]
        elif instruction := re.fullmatch(r" *[0-9a-f]+:\t([0-9a-f ]+)\t(.*)", line):
            found.setdefault(name, []).append((instruction[1], instruction[2]))
    return {
        name: Code(
            len(code),
            sum(re.match(r"(?:(?:2e|36|3e|26|64|65|67) )*62 ", raw) is not None for raw, _ in code),
            sum("%ymm" in text for _, text in code),
            sum(text.startswith("vfmadd") for _, text in code),
        )
        for name, code in found.items()
    }
