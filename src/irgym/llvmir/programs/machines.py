"""Targets by name, as LLVM and clang call them."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """A target of code generation.

    Attributes:
        triple: LLVM's target triple.
        cpu: LLVM's name of the processor.
        platform: ziglang's name of the target.
        zig: ziglang's name of the processor.
        remark: Prefix of comments in LLVM's assembly.
    """

    triple: str
    cpu: str
    platform: str
    zig: str
    remark: str = "#"

    @property
    def architecture(self) -> str:
        """The instruction set: the first part of the triple."""
        return self.triple.partition("-")[0]


def _x86_64(cpu: str) -> Machine:
    return Machine("x86_64-unknown-linux-gnu", cpu, "x86_64-linux-gnu", cpu.replace("-", "_"))


MACHINES: Mapping[str, Machine] = {
    "x86-64": _x86_64("x86-64"),
    "x86-64-v3": _x86_64("x86-64-v3"),
    "x86-64-v4": _x86_64("x86-64-v4"),
    "i686": Machine("i686-unknown-linux-gnu", "i686", "x86-linux-gnu", "i686"),
    "aarch64": Machine("aarch64-unknown-linux-gnu", "generic", "aarch64-linux-gnu", "generic", "//"),
}
"""Machines by target name."""
