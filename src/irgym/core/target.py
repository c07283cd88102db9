"""Targets of code generation."""

from dataclasses import dataclass, replace
from math import log2

HELD_BACK = 4
"""Vector registers that hold what is multiplied, so that accumulators may have the others."""

USUAL_CACHES = (32 << 10, 512 << 10, 4 << 20)
"""Bytes of the first three levels of cache where a target does not tell."""

NUMBERS = 6
"""Length of `Target.numbers`."""


@dataclass(frozen=True)
class Cache:
    """A cache that holds data.

    Attributes:
        level: 1 for the one next to the core.
        size: Bytes.
        line: Bytes of a line; 0 where unknown.
        ways: Lines of a set; 0 where unknown, and for a fully associative one.
    """

    level: int
    size: int
    line: int = 0
    ways: int = 0

    @property
    def text(self) -> str:
        """Level, size, line and ways: `L1 49152/64/12`."""
        return f"L{self.level} {self.size}/{self.line}/{self.ways}"


@dataclass(frozen=True)
class Target:
    """Target of code generation: an instruction set, and the machine around it.

    Attributes:
        name: Level of the instruction set, such as `x86-64-v3` (x86-64 psABI, section 3.1.1).
        architecture: Family of processors: `x86_64`, `aarch64`.
        features: What a processor must have, as Linux names it: `avx2`.
        vector_bits: Width of a vector register.
        registers: Number of vector registers.
        caches: Those of one core that hold data, the nearest first; none for a level by itself.
        cores: Logical cores; 0 for a level by itself.
    """

    name: str
    architecture: str
    features: tuple[str, ...]
    vector_bits: int
    registers: int
    caches: tuple[Cache, ...] = ()
    cores: int = 0

    @property
    def lanes(self) -> int:
        """float32 lanes of a vector register."""
        return self.vector_bits // 32

    @property
    def accumulators(self) -> int:
        """How many vector registers may hold accumulators."""
        return self.registers - HELD_BACK

    def cache(self, level: int) -> int:
        """Return the bytes of a level of cache, from 1 to 3; what is usual where the target does not tell."""
        return next((cache.size for cache in self.caches if cache.level == level), USUAL_CACHES[level - 1])

    @property
    def numbers(self) -> tuple[float, ...]:
        """Features of the target for policies, `NUMBERS` of them, each from 0 to about 1.

        Lanes, registers, cores, and the bytes of the first three levels of cache, 0 for one that is missing.
        Logarithms to the base 2, the first three over 8, sizes over 32.
        """
        sizes = {cache.level: cache.size for cache in self.caches}
        counts = [log2(max(1, count)) / 8 for count in (self.lanes, self.registers, self.cores)]
        return (*counts, *(log2(sizes[level]) / 32 if level in sizes else 0.0 for level in (1, 2, 3)))

    @property
    def text(self) -> str:
        """One line that differs where any part does: costs are recorded by it."""
        return "; ".join(
            [
                f"{self.name} {self.architecture}",
                "+".join(self.features),
                f"{self.registers} x {self.vector_bits} bits",
                *(cache.text for cache in self.caches),
                f"{self.cores} cores",
            ]
        )

    def on(self, machine: "Target") -> "Target":
        """Return this instruction set with the caches and cores of another target."""
        return replace(self, caches=machine.caches, cores=machine.cores)


_V3 = ("avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave")

X86_64_V4 = Target(
    "x86-64-v4", "x86_64", (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"), 512, 32
)
X86_64_V3 = Target("x86-64-v3", "x86_64", _V3, 256, 16)
X86_64 = Target("x86-64", "x86_64", ("sse2",), 128, 16)
AARCH64 = Target("aarch64", "aarch64", ("asimd",), 128, 32)

I686 = Target("i686", "i686", (), 128, 8)

LEVELS = (X86_64_V4, X86_64_V3, X86_64, AARCH64, I686)
"""The instruction sets that have names; of each architecture the widest first."""
