"""What a function finds while it runs: memory that is made up as it is read, and calls that answer."""

import ctypes
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import NoReturn

import numpy as np

from irgym.envs.cse.running.harness import STEP, Addresses, External
from irgym.envs.cse.running.kinds import SIZES
from irgym.envs.cse.running.memory import OBJECT, SIZE, Image, Memory, shared_bytes
from irgym.envs.cse.running.values import Values
from irgym.envs.cse.running.watching import KINDS

_ARGUMENTS = 256
"""Arguments that a function may take."""

Leave = Callable[[], NoReturn]
"""Ends a call where it stands."""


@dataclass(frozen=True)
class Found:
    """What a call found, and what it did.

    Attributes:
        image: What memory held before.
        outcome: What stands for all that the call did.
    """

    image: Image
    outcome: bytes


class World:
    """Memory, and functions that the code in question calls.

    It is made once; processes that are forked then call `begin`, and `ended`.

    Args:
        seed: Seed of all that is made up.
        known: Numbers that the function compares with.
        externals: The functions that are made up. More may be added.

    Attributes:
        memory: The memory.
        addresses: What stands where.
    """

    def __init__(self, seed: int, known: Sequence[int], externals: Sequence[External]) -> None:
        self.memory = Memory()
        self._seed = seed
        self._known = known
        self._externals = externals
        self._marks = shared_bytes(SIZE + OBJECT)
        self._passed = shared_bytes(STEP * _ARGUMENTS)
        self._asked = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_uint32)(self._ask)
        self._external = ctypes.CFUNCTYPE(None, ctypes.c_uint32)(self._answer)
        self._code = {
            "code integer": ctypes.CFUNCTYPE(ctypes.c_uint64)(lambda: self._called("i32")),
            "code ptr": ctypes.CFUNCTYPE(ctypes.c_uint64)(lambda: self._called("ptr")),
            "code float": ctypes.CFUNCTYPE(ctypes.c_float)(lambda: self._called("float")),
            "code double": ctypes.CFUNCTYPE(ctypes.c_double)(lambda: self._called("double")),
        }
        self.addresses = Addresses(
            self._taken(STEP * _ARGUMENTS),
            self._taken(STEP),
            int(self._marks.ctypes.data),
            _address(self._asked),
            int(self._passed.ctypes.data),
            _address(self._external),
        )
        self._call = 0
        self._image = Image()
        self._written: dict[int, bytes] = {}
        self._log = blake2b(digest_size=16)
        self._leave: Leave | None = None

    def begin(self, image: Image, call: int, leave: Leave) -> None:
        """Make ready for a call.

        Args:
            image: What memory holds.
            call: Its number: what is made up depends on it.
            leave: What is called instead of functions that do not return.
        """
        self._call = call
        self._image = image
        self._leave = leave
        self._log = blake2b(digest_size=16)
        for used in self.memory.used():
            self._marks[used] = 0
        self._written = {}
        self.memory.put(image)
        self._found = self._values(0)
        self._answers = self._values(1)

    def found(self) -> Found:
        """Return what memory held before all that ran, where it was asked for, and what became of it."""
        image = Image(self._written, self.memory.objects)
        self._image = image
        return Found(image, self.ended())

    def ended(self) -> bytes:
        """Return what stands for all that the call did."""
        self._log.update(self.memory.changes(self._image))
        return self._log.digest()

    def _taken(self, size: int) -> int:
        address = self.memory.given(size=size)
        assert address is not None  # memory is new
        return address

    def _values(self, *stream: int) -> Values:
        code = {kind: _address(one) for kind, one in self._code.items()}
        rng = np.random.default_rng((self._seed, self._call, *stream))
        return Values(rng, self.memory, self._known, code)

    def _ask(self, place: int, number: int) -> None:
        kind = KINDS[number]
        marks = self._marks[place : place + SIZES[kind]]
        fresh = marks == 0
        value = np.frombuffer(self._found.drawn(kind), dtype=np.uint8)
        there = self.memory.bytes[place : place + SIZES[kind]]
        there[fresh] = value[fresh]
        if fresh.all():
            self._written[place] = value.tobytes()
        else:
            self._written.update({place + int(one): bytes([value[one]]) for one in np.flatnonzero(fresh)})
        marks[:] = 1

    def _answer(self, number: int) -> None:
        external = self._externals[number]
        sizes = [SIZES[kind] if kind else 0 for kind in external.takes]
        taken = [bytes(self._passed[STEP * place :][:size]) for place, size in enumerate(sizes)]
        told = [
            self._told(one) if kind == "ptr" else one for kind, one in zip(external.takes, taken, strict=True)
        ]
        said = external.name.encode() + b"(" + b",".join(told) + b")"
        if not external.pure:
            self._log.update(said)
        if not external.returning and self._leave is not None:
            self._leave()
        self._passed[:STEP] = 0
        allocated = self._allocated(external.name, taken)
        if allocated is not None:
            self._passed[:8] = np.frombuffer(struct.pack("<Q", allocated), dtype=np.uint8)
            return
        values = self._answers
        if external.pure:
            values = self._values(2, *blake2b(said, digest_size=8).digest())
        for place, kind in external.returns:
            self._passed[place : place + SIZES[kind]] = np.frombuffer(
                values.drawn(kind, made=True), dtype=np.uint8
            )

    def _told(self, pointer: bytes) -> bytes:
        place = self.memory.offset(struct.unpack("<Q", pointer)[0])
        return b"?" if place is None else str(place).encode()

    def _allocated(self, name: str, taken: Sequence[bytes]) -> int | None:
        """Return the address that an allocator makes, 0 where there is no more; None for other functions."""
        numbers = [int.from_bytes(one, "little") for one in taken]
        match name, numbers:
            case ("malloc", [size]) | ("realloc", [_, size]):
                address = self.memory.given(made=True, size=size) or 0
            case "calloc", [count, each]:
                size = count * each
                address = self.memory.given(made=True, size=size) or 0
                self._mark(address, size)
            case "free", [_]:
                return 0
            case _:
                return None
        old = self.memory.offset(numbers[0]) if name == "realloc" else None
        place = self.memory.offset(address)
        if old is not None and place is not None:
            kept = min(numbers[1], OBJECT, SIZE - old, SIZE - place)
            self.memory.bytes[place : place + kept] = self.memory.bytes[old : old + kept]
            self._mark(address, kept)
        return address

    def _mark(self, address: int, size: int) -> None:
        place = self.memory.offset(address)
        if place is not None:
            self._marks[place : place + size] = 1

    def _called(self, kind: str) -> int | float:
        self._log.update(b"code")
        content = self._answers.drawn(kind, made=True)
        if kind in ("float", "double"):
            return float(struct.unpack("<f" if kind == "float" else "<d", content)[0])
        return int.from_bytes(content, "little")


def _address(function: object) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # pyright: ignore[reportArgumentType]
