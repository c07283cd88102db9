"""What code is made for, by the names of targets: as LLVM names it, and as clang does."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """What code is made for.

    Attributes:
        triple: The target as LLVM names it.
        cpu: The processor as LLVM names it.
        platform: The target as the clang of ziglang names it.
        zig: The processor as that names it.
        remark: What remarks in LLVM's assembly begin with.
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
"""Machines by the names of targets."""
