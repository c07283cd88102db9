"""Made-up arguments of functions: small numbers, and pointers into the middle of filled memory."""

import ctypes
import mmap
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

_NEAR = 512
"""Bytes around the middle of a memory within which pointers that are stored in memory point."""

Fill = Callable[[np.random.Generator, int], NDArray[Any]]


def _numbers(rng: np.random.Generator, middle: int) -> NDArray[np.int64]:
    del middle
    return rng.integers(0, LARGEST, BYTES // 8, dtype=np.int64)


def _pointers(rng: np.random.Generator, middle: int) -> NDArray[np.int64]:
    return middle + 8 * rng.integers(0, _NEAR // 8, BYTES // 8, dtype=np.int64)


def _mixed(rng: np.random.Generator, middle: int) -> NDArray[np.int64]:
    return np.where(rng.random(BYTES // 8) < 0.5, _pointers(rng, middle), _numbers(rng, middle))


FILLS: tuple[Fill, ...] = (
    lambda rng, _: rng.integers(0, LARGEST, BYTES // 4, dtype=np.int32),
    lambda rng, _: rng.integers(0, 256, BYTES, dtype=np.uint8),
    lambda rng, _: rng.uniform(-4, 4, BYTES // 8),
    lambda rng, _: rng.uniform(-4, 4, BYTES // 4).astype(np.float32),
    _numbers,
    _pointers,
    _mixed,
)
"""What memory is filled with, as nothing says what a function reads there: small numbers of each type, and
pointers to itself. Each takes random numbers, and the address that pointers to it are."""


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
    """Arguments of calls. Processes that are forked have their memory at the same addresses.

    Args:
        signature: What the function takes.
    """

    def __init__(self, signature: Signature) -> None:
        self._signature = signature
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self._memory = [
            np.frombuffer(mmap.mmap(-1, BYTES, flags=flags), dtype=np.uint8)
            for one in signature.parameters
            if one == "ptr"
        ]

    def fill(self, seed: int, call: int) -> list[Any]:
        """Fill the memory and return the arguments of a call.

        Args:
            seed: Seed of all calls.
            call: Number of the call; it chooses what memory is filled with.
        """
        rng = np.random.default_rng((seed, call))
        memory = iter(self._memory)
        found: list[Any] = []
        for kind in self._signature.parameters:
            if kind == "ptr":
                place = next(memory)
                middle = place.ctypes.data + BYTES // 2
                place[:] = FILLS[call % len(FILLS)](rng, middle).view(np.uint8)
                found.append(middle)
            elif kind in _INTEGERS:
                found.append(int(rng.integers(0, 2 if kind == "i1" else LARGEST)))
            else:
                found.append(float(np.float32(rng.uniform(-4, 4))))
        return found

    def content(self) -> bytes:
        """Return what the memory holds now."""
        return b"".join(one.tobytes() for one in self._memory)

    def told(self, returned: Any) -> bytes:
        """Return what stands for the result of a call: of a pointer, where in this memory it points."""
        result = self._signature.result
        if result == "void":
            return b""
        if result != "ptr":
            return np.array(returned).tobytes()
        offsets = [(returned or 0) - one.ctypes.data for one in self._memory]
        return repr((returned is None, [one if 0 <= one < BYTES else None for one in offsets])).encode()
