"""One block of memory for all buffers of a program. Imported in a child only.

`free` returns large buffers to the system, which clears them page by page for the next run; this took half of
a network's time. glibc learns to keep a single block of up to 32 MiB. In the block, buffers that are not live
at the same time share memory, which is also more likely to be in a near cache. Offsets are chosen greedily,
the largest buffer first, as in TensorFlow Lite (Pisarchyk and Lee, arXiv 2001.03288).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from irgym.envs.linalg.compiling.bindings import ir, memref
from irgym.envs.linalg.compiling.rows import index
from irgym.envs.linalg.scheduling.operations import element_bytes

ALIGNMENT = 64
"""Alignment of each buffer in bytes: a cache line."""

VIEWS = frozenset({"memref.subview", "memref.collapse_shape", "memref.expand_shape", "memref.cast"})
"""Operations whose result is a view of their first operand."""

ACCESSES = frozenset({"memref.load", "memref.store"})
"""Scalar accesses to buffers; the others are operations of the vector dialect."""


@dataclass(frozen=True)
class Buffer:
    """A buffer and its live range.

    Attributes:
        size: Bytes, a multiple of `ALIGNMENT`.
        first: Number of the program's first operation that uses it.
        last: Number of the last operation that uses it.
    """

    size: int
    first: int
    last: int

    def meets(self, other: "Buffer") -> bool:
        """Say whether the live ranges overlap."""
        return self.first <= other.last and other.first <= self.last


def share_memory(function: Any) -> None:
    """Place the buffers that a function allocates in one block, in place."""
    block = function.regions[0].blocks[0]
    operations = [view.operation for view in block.operations]
    numbers = {operation: number for number, operation in enumerate(operations)}
    found: list[tuple[Any, Any, Buffer]] = []
    for operation in operations:
        if operation.name == "memref.alloc" and not len(operation.operands):
            uses = _Uses(numbers)
            uses.follow(operation.results[0])
            if (
                uses.known
                and uses.freed is not None
                and element_bytes(str(operation.results[0].type.element_type))
            ):
                found.append((operation, uses.freed, _buffer(operation, uses.times)))
    if not found:
        return
    offsets, total = plan([buffer for _, _, buffer in found])
    with ir.InsertionPoint.at_block_begin(block):
        bytes_type = ir.MemRefType.get([total], ir.IntegerType.get_signless(8))
        alignment = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), ALIGNMENT)
        memory = memref.AllocOp(bytes_type, [], [], alignment=alignment).result
    for (allocation, freed, _), offset in zip(found, offsets, strict=True):
        with ir.InsertionPoint(allocation):
            view = memref.ViewOp(allocation.results[0].type, memory, index(offset), []).result
        freed.erase()
        allocation.results[0].replace_all_uses_with(view)
        allocation.erase()
    with ir.InsertionPoint.at_block_terminator(block):
        memref.DeallocOp(memory)


class _Uses:
    """The uses of a buffer, directly or through views.

    Attributes:
        times: Numbers of the function's operations that use it, or that contain a use.
        freed: The operation that frees it.
        known: Whether all uses are known kinds of operations, which do not pass the buffer on.
    """

    def __init__(self, numbers: Mapping[Any, int]) -> None:
        self.times: list[int] = []
        self.freed: Any = None
        self.known = True
        self._numbers = numbers

    def follow(self, value: Any) -> None:
        """Note all uses of a buffer or of a view of it."""
        for use in value.uses:
            user = use.owner.operation
            if user.name == "memref.dealloc":
                self.known = self.known and self.freed is None and user in self._numbers
                self.freed = user
                continue
            self.times.append(self._number(user))
            if user.name in VIEWS:
                self.follow(user.results[0])
            elif not (user.name in ACCESSES or user.name.startswith("vector.")) or _makes_buffers(user):
                self.known = False

    def _number(self, user: Any) -> int:
        while user not in self._numbers:
            user = user.parent.operation
        return self._numbers[user]


def _makes_buffers(operation: Any) -> bool:
    return any(isinstance(result.type, ir.MemRefType) for result in operation.results)


def _buffer(allocation: Any, times: list[int]) -> Buffer:
    kind = allocation.results[0].type
    size = prod(kind.shape) * element_bytes(str(kind.element_type))
    return Buffer(-(-size // ALIGNMENT) * ALIGNMENT, min(times, default=0), max(times, default=0))


def plan(buffers: list[Buffer]) -> tuple[list[int], int]:
    """Return the offset of each buffer in a block of memory, and the size of the block in bytes.

    Buffers with overlapping live ranges do not overlap. The largest is placed first, each as low as it fits.
    """
    offsets = [0] * len(buffers)
    placed: list[int] = []
    for number in sorted(range(len(buffers)), key=lambda number: -buffers[number].size):
        buffer = buffers[number]
        live = [other for other in placed if buffer.meets(buffers[other])]
        taken = sorted((offsets[other], buffers[other].size) for other in live)
        offset = 0
        for begin, size in taken:
            if offset + buffer.size <= begin:
                break
            offset = max(offset, begin + size)
        offsets[number] = offset
        placed.append(number)
    return offsets, max(offset + buffer.size for offset, buffer in zip(offsets, buffers, strict=True))
