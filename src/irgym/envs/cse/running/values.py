"""Made-up values: what functions find where nothing was written yet."""

import struct
from collections.abc import Mapping, Sequence

import numpy as np

from irgym.envs.cse.running.kinds import SIZES
from irgym.envs.cse.running.memory import Memory

LARGEST = (2, 4, 12, 12, 40)
"""What small numbers are below, in one call or another: sizes and indices must not lead out of an object."""

NEAR = 64
"""Bytes behind the begin of an object within which pointers to what is there already point."""

_FORMATS: Mapping[str, str] = {"float": "<f", "double": "<d"}


class Values:
    """Draws values. Each call of a function has chances of its own.

    Args:
        rng: Random numbers.
        memory: What pointers point into.
        known: Numbers that the function compares with.
        code: Addresses of code, by kind.
    """

    def __init__(
        self, rng: np.random.Generator, memory: Memory, known: Sequence[int], code: Mapping[str, int]
    ) -> None:
        self._rng = rng
        self._memory = memory
        self._known = known
        self._code = code
        self._null = float(rng.choice([0.0, 0.0, 0.1, 0.3]))
        self._again = float(rng.choice([0.0, 0.2, 0.6]))
        self._matches = float(rng.choice([0.1, 0.4, 0.8])) if len(known) else 0.0
        self._largest = int(rng.choice(LARGEST))
        self._any = float(rng.choice([0.0, 0.3, 0.8]))

    def drawn(self, kind: str, made: bool = False) -> bytes:
        """Return the bytes of a value.

        Args:
            kind: Its kind.
            made: Whether it is made while the function runs, so that what it points to is too.
        """
        if kind in self._code:
            return struct.pack("<Q", self._code[kind])
        if kind == "ptr":
            return struct.pack("<Q", self._pointer(made))
        if kind in _FORMATS:
            return struct.pack(_FORMATS[kind], float(np.float32(self._rng.uniform(-4, 4))))
        size = SIZES[kind]
        return (self._integer(8 * size if kind != "i1" else 1)).to_bytes(size, "little")

    def _integer(self, bits: int) -> int:
        chance = self._rng.random()
        if chance < self._matches:
            return self._known[int(self._rng.integers(len(self._known)))] % (1 << bits)
        if bits == 8 and self._rng.random() < self._any:
            return int(self._rng.integers(256))
        return int(self._rng.integers(self._largest)) % (1 << bits)

    def _pointer(self, made: bool) -> int:
        chance = self._rng.random()
        if chance < self._null:
            return 0
        if chance < self._null + self._again:
            return self._old()
        return self._memory.given(made) or self._old()

    def _old(self) -> int:
        near = 8 * int(self._rng.integers(NEAR // 8)) if self._rng.random() < 0.3 else 0
        return self._memory.one_of(int(self._rng.integers(1 << 16))) + near
