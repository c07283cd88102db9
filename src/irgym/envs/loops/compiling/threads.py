"""Kernels on several threads: each computes some rows of C, with a barrier after every run.

The threads are Python's, which run in parallel while they are in machine code. There they run a small loop
around the kernel, the driver: a run, then a barrier. So the time of repeated runs includes the barriers, but
not the start of the threads.
"""

import ctypes
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache

from irgym.envs.loops.compiling import assembler as asm
from irgym.envs.loops.compiling.executable import Compiled
from irgym.envs.loops.compiling.lower import rows_of
from irgym.envs.loops.programs.contraction import Contraction
from irgym.measure.native import ExecutableBuffer


class _Order(ctypes.Structure):
    """Orders of a thread: the argument of the driver, whose code contains the offsets of the fields.

    Attributes:
        function: Address of the kernel.
        a, b, c: Addresses of the tensors.
        workspace: Address of the workspace.
        repetitions: Number of runs of the kernel, at least one.
        barrier: Address of the total number of arrivals of all threads, 32 bits.
        threads: Number of threads.
        expected: Number of arrivals at which the next run may start.
    """

    _fields_ = (
        ("function", ctypes.c_int64),
        ("a", ctypes.c_int64),
        ("b", ctypes.c_int64),
        ("c", ctypes.c_int64),
        ("workspace", ctypes.c_int64),
        ("repetitions", ctypes.c_int64),
        ("barrier", ctypes.c_int64),
        ("threads", ctypes.c_int32),
        ("expected", ctypes.c_int32),
    )


_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def _driver() -> bytes:
    """Return the code of `void drive(struct order *)` in the System V ABI."""
    order, left, arrivals, expected = asm.RBX, asm.R12, asm.RAX, asm.RCX
    saved = (asm.RBX, asm.R12, asm.RBP)  # RBP only aligns the stack

    def at(field: str) -> int:
        return int(getattr(_Order, field).offset)

    run = b"".join(
        (
            asm.load(asm.RDI, order, at("a")),
            asm.load(asm.RSI, order, at("b")),
            asm.load(asm.RDX, order, at("c")),
            asm.load(asm.R8, order, at("workspace")),
            asm.move_immediate(asm.RCX, 1),
            asm.call_memory(order, at("function")),
            asm.load(arrivals, order, at("barrier")),
            asm.load_low(expected, order, at("threads")),
            asm.add_to_memory(order, at("expected"), expected),
            asm.load_low(expected, order, at("expected")),
            asm.increment_memory_locked(arrivals),
        )
    )
    compare, rest = asm.compare_memory(arrivals, expected), asm.pause()
    skip = asm.jump_if_not_less(2 + len(rest) + 2)
    wait = compare + skip + rest
    wait += asm.jump(-len(wait))
    again = asm.decrement(left)
    again += asm.jump_if_not_zero(-len(run) - len(wait) - len(again))
    start = b"".join(map(asm.push, saved)) + asm.move(order, asm.RDI)
    start += asm.load(left, order, at("repetitions"))
    return start + run + wait + again + b"".join(map(asm.pop, reversed(saved))) + asm.ret()


@dataclass(frozen=True)
class _Driver:
    """The driver in memory, for the lifetime of the process."""

    buffer: ExecutableBuffer

    def run(self, order: _Order) -> None:
        _FUNCTION(self.buffer.address)(ctypes.addressof(order))


@cache
def _loaded() -> _Driver:
    return _Driver(ExecutableBuffer(_driver()))


def shares(contraction: Contraction, threads: int) -> list[int]:
    """Return the number of rows of C for each thread; there are at most as many threads as rows."""
    dim = rows_of(contraction)
    rows = 1 if dim is None else contraction.sizes[dim]
    threads = min(threads, rows)
    return [rows * (place + 1) // threads - rows * place // threads for place in range(threads)]


def _row_bytes(contraction: Contraction) -> list[int]:
    """Return the bytes from one row of C to the next, in A, B and C."""
    dim = rows_of(contraction)
    tables = zip(contraction.strides, contraction.elements.sizes, strict=True)
    return [0 if dim is None else strides[dim] * size for strides, size in tables]


class Team:
    """A compiled nest on several threads.

    Attributes:
        code: Machine code of the first thread; None if the back end does not give it away.
    """

    def __init__(self, contraction: Contraction, rows: Sequence[int], kernels: Sequence[Compiled]) -> None:
        """Start the threads.

        Args:
            contraction: The program.
            rows: Number of rows of C for each thread.
            kernels: The kernel of each thread.

        Raises:
            OSError: The system is out of memory, or forbids executable memory.
        """
        self.code = kernels[0].code
        self._kernels = tuple(kernels)
        self._barrier = ctypes.c_int32(0)
        self._orders = [
            _Order(
                function=kernel.address,
                workspace=kernel.workspace,
                barrier=ctypes.addressof(self._barrier),
                threads=len(kernels),
            )
            for kernel in kernels
        ]
        first = [sum(rows[:place]) for place in range(len(rows))]
        steps = _row_bytes(contraction)
        self._begins = [tuple(step * row for step in steps) for row in first]
        self._driver = _loaded()
        self._pool = ThreadPoolExecutor(max(1, len(kernels) - 1))

    def run(self, a: int, b: int, c: int, repetitions: int) -> None:
        """Run the kernel `repetitions` times (at least once) on the tensors at these addresses."""
        self._barrier.value = 0
        for order, (of_a, of_b, of_c) in zip(self._orders, self._begins, strict=True):
            order.a, order.b, order.c = a + of_a, b + of_b, c + of_c
            order.repetitions, order.expected = repetitions, 0
        others = [self._pool.submit(self._driver.run, order) for order in self._orders[1:]]
        self._driver.run(self._orders[0])
        for other in others:
            other.result()

    def close(self) -> None:
        """End the threads and free the machine code; `run` must not be called after it."""
        self._pool.shutdown()
        for kernel in self._kernels:
            kernel.close()
