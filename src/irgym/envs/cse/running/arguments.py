"""Made-up arguments of functions: small numbers, and pointers into the middle of filled memory."""

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.envs.cse.ir.syntax import listed

BYTES = 1 << 18
"""Bytes of the memory that a pointer points into, half of them before it."""

LARGEST = 12
"""Greatest whole number that is given: sizes and indices must not lead out of that memory."""

_INTEGERS: Mapping[str, Any] = {
    "i1": ctypes.c_bool,
    "i8": ctypes.c_uint8,
    "i16": ctypes.c_uint16,
    "i32": ctypes.c_uint32,
    "i64": ctypes.c_uint64,
}
_FLOATS: Mapping[str, Any] = {"float": ctypes.c_float, "double": ctypes.c_double}
_TYPES: Mapping[str, Any] = {**_INTEGERS, **_FLOATS, "ptr": ctypes.c_void_p}

_STRANGE = ("byval(", "byref(", "inalloca(", "preallocated(", "swiftself", "nest")
"""Attributes of parameters that are not passed as their types say; calling conventions end in `cc`."""

Fill = Callable[[np.random.Generator], NDArray[Any]]

FILLS: tuple[Fill, ...] = (
    lambda rng: rng.integers(0, LARGEST, BYTES // 4, dtype=np.int32),
    lambda rng: rng.integers(0, 256, BYTES, dtype=np.uint8),
    lambda rng: rng.uniform(-4, 4, BYTES // 8),
    lambda rng: rng.uniform(-4, 4, BYTES // 4).astype(np.float32),
    lambda rng: rng.integers(0, LARGEST, BYTES // 8, dtype=np.int64),
)
"""What memory is filled with, as nothing says what a function reads there: small numbers of each type."""


@dataclass(frozen=True)
class Signature:
    """What a function takes and returns.

    Attributes:
        parameters: Names of types.
        result: Name of a type; `void` for none.
    """

    parameters: tuple[str, ...]
    result: str

    def function(self, address: int) -> Callable[..., Any]:
        """Return the function at an address."""
        result = None if self.result == "void" else _TYPES[self.result]
        return ctypes.CFUNCTYPE(result, *(_TYPES[one] for one in self.parameters))(address)


def signature_of(header: str, name: str) -> Signature | None:
    """Return what a function takes and returns; None where such arguments cannot be made up.

    Args:
        header: The line that begins its definition.
        name: Its name, sigil included.
    """
    before, _, after = header.partition(f"{name}(")
    result = before.split()[-1]
    depth, end = 1, 0
    while depth:
        depth += {"(": 1, ")": -1}.get(after[end], 0)
        end += 1
    parameters = [one for one in listed(after[: end - 1]) if one]
    kinds = tuple(one.partition(" ")[0] for one in parameters)
    strange = any(mark in one for one in parameters for mark in _STRANGE) or any(
        word.endswith("cc") for word in before.split()
    )
    if strange or any(one not in _TYPES for one in kinds) or result not in (*_TYPES, "void"):
        return None
    return Signature(kinds, result)


class Arguments:
    """Arguments of one call.

    Args:
        signature: What the function takes.
        rng: Random numbers.
        place: Number of the call; it chooses what memory is filled with.
    """

    def __init__(self, signature: Signature, rng: np.random.Generator, place: int) -> None:
        self._memory: list[NDArray[Any]] = []
        self.values: list[Any] = []
        for kind in signature.parameters:
            if kind == "ptr":
                self._memory.append(FILLS[place % len(FILLS)](rng))
                self.values.append(self._memory[-1].ctypes.data + BYTES // 2)
            elif kind in _INTEGERS:
                self.values.append(int(rng.integers(0, 2 if kind == "i1" else LARGEST)))
            else:
                self.values.append(float(np.float32(rng.uniform(-4, 4))))

    def content(self) -> bytes:
        """Return what the memory holds now."""
        return b"".join(one.tobytes() for one in self._memory)
