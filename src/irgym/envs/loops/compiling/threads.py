"""Kernels on several threads: each computes some rows of C, with a barrier after every run.

The threads are Python's, which run in parallel while they are in machine code. There they run a small loop
around the kernel, the driver: a run, then a barrier. So the time of repeated runs includes the barriers, but
not the start of the threads.

After its last run, a thread waits in machine code for further work, as those of OpenBLAS and OpenMP do:
waking it takes longer than many kernels.

Linux may start a thread on the core of the one that wakes it. There it would wait until that one, which waits
at the barrier, has used up its time slice: 4 ms. So the other threads keep off the caller's core.
"""

import ctypes
import os
import sys
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any

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
        expected: Number of arrivals at which the next run may start, modulo 2**32.
        state: `WAITING`, `ORDERED` or `ASLEEP`.
    """

    _fields_ = (
        ("function", ctypes.c_int64),
        ("a", ctypes.c_int64),
        ("b", ctypes.c_int64),
        ("c", ctypes.c_int64),
        ("workspace", ctypes.c_int64),
        ("repetitions", ctypes.c_int64),
        ("barrier", ctypes.c_int64),
        ("threads", ctypes.c_int64),
        ("expected", ctypes.c_int64),
        ("state", ctypes.c_int32),
    )


WAITING, ORDERED, ASLEEP = 0, 1, 2
"""States of a thread: it computes or waits for orders, it has an order that it has not begun, or it has
returned to Python."""

LOOKS = 20_000
"""Number of times that a thread looks for a further order before it returns: on a Zen 4, for 0.5 ms."""

_RUN = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_EXCHANGE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)


def _at(field: str) -> int:
    return int(getattr(_Order, field).offset)


def _run_code() -> bytes:
    """Return code that carries out the order at rbx."""
    order, left, arrivals, expected = asm.RBX, asm.R12, asm.RAX, asm.RCX
    run = b"".join(
        (
            asm.load(asm.RDI, order, _at("a")),
            asm.load(asm.RSI, order, _at("b")),
            asm.load(asm.RDX, order, _at("c")),
            asm.load(asm.R8, order, _at("workspace")),
            asm.move_immediate(asm.RCX, 1),
            asm.call_memory(order, _at("function")),
            asm.load(arrivals, order, _at("barrier")),
            asm.load(expected, order, _at("threads")),
            asm.add_to_memory(order, _at("expected"), expected),
            asm.load(expected, order, _at("expected")),
            asm.increment_memory_locked(arrivals),
        )
    )
    compare, rest = asm.compare_memory(arrivals, 0, expected), asm.pause()
    wait = compare + asm.jump_if_not_negative(2 + len(rest) + 2) + rest
    wait += asm.jump(-len(wait))
    again = asm.decrement(left)
    again += asm.jump_if_not_zero(-len(run) - len(wait) - len(again))
    return asm.load(left, order, _at("repetitions")) + run + wait + again


def _function(body: bytes) -> bytes:
    """Return a function of the System V ABI with that body, which finds the argument in rbx."""
    saved = (asm.RBX, asm.R12, asm.RBP)  # RBP only aligns the stack
    start = b"".join(map(asm.push, saved)) + asm.move(asm.RBX, asm.RDI)
    return start + body + b"".join(map(asm.pop, reversed(saved))) + asm.ret()


def _serve_code() -> bytes:
    """Return code that carries out the order at rbx and those that follow soon, and sets `ASLEEP`."""
    order, state, looks = asm.RBX, _at("state"), asm.RCX
    code = asm.clear_eax() + asm.exchange_memory(order, state, asm.RAX) + _run_code()
    code += asm.move_immediate(looks, LOOKS)
    look = asm.clear_eax() + asm.compare_memory(order, state, asm.RAX)
    look += asm.jump_if_not_zero(-len(code) - len(look))
    look += asm.pause() + asm.decrement(looks)
    look += asm.jump_if_not_zero(-len(look))
    code += look + asm.move_immediate(asm.RAX, ASLEEP) + asm.exchange_memory(order, state, asm.RAX)
    code += asm.add_immediate(asm.RAX, 0)
    return code + asm.jump_if_not_zero(-len(code))  # an order came at the last moment


class _Driver:
    """The drivers in memory, for the lifetime of the process."""

    def __init__(self) -> None:
        """Load them.

        Raises:
            OSError: The system is out of memory, or forbids executable memory.
        """
        give = asm.move_immediate(asm.RAX, ORDERED) + asm.exchange_memory(asm.RDI, _at("state"), asm.RAX)
        codes = _function(_run_code()), _function(_serve_code()), give + asm.ret()
        self._buffers = [ExecutableBuffer(code) for code in codes]
        run, serve, give_order = (buffer.address for buffer in self._buffers)
        self._run, self._serve, self._give = _RUN(run), _RUN(serve), _EXCHANGE(give_order)

    def run(self, order: _Order) -> None:
        """Carry out an order."""
        self._run(ctypes.addressof(order))

    def serve(self, order: _Order) -> None:
        """Carry out an order, and those given soon after it."""
        self._serve(ctypes.addressof(order))

    def give(self, order: _Order) -> bool:
        """Give an order to the thread that serves it; return false if none does."""
        return self._give(ctypes.addressof(order)) != ASLEEP


@cache
def _loaded() -> _Driver:
    return _Driver()


@cache
def _libc() -> Any:
    return ctypes.CDLL(None)


def keep_off_this_core(threads: Iterable[int]) -> None:
    """Let other threads run on the calling thread's cores except the one that it is on, if there is another.

    Args:
        threads: Their native identifiers.
    """
    if sys.platform != "linux":
        return
    others = os.sched_getaffinity(0) - {int(_libc().sched_getcpu())}
    for thread in threads if others else ():
        if os.sched_getaffinity(thread) != others:
            os.sched_setaffinity(thread, others)


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
                state=ASLEEP,
            )
            for kernel in kernels
        ]
        first = [sum(rows[:place]) for place in range(len(rows))]
        steps = _row_bytes(contraction)
        self._begins = [tuple(step * row for step in steps) for row in first]
        self._driver = _loaded()
        self._threads: list[int] = []
        self._serving: dict[int, Future[None]] = {}
        self._pool = ThreadPoolExecutor(
            max(1, len(kernels) - 1), initializer=lambda: self._threads.append(threading.get_native_id())
        )

    def run(self, a: int, b: int, c: int, repetitions: int) -> None:
        """Run the kernel `repetitions` times (at least once) on the tensors at these addresses."""
        for order, (of_a, of_b, of_c) in zip(self._orders, self._begins, strict=True):
            order.a, order.b, order.c = a + of_a, b + of_b, c + of_c
            order.repetitions = repetitions
        keep_off_this_core(self._threads)
        for place, order in enumerate(self._orders[1:]):
            if not self._driver.give(order):
                self._serving[place] = self._pool.submit(self._driver.serve, order)
        self._driver.run(self._orders[0])

    def close(self) -> None:
        """End the threads and free the machine code; `run` must not be called after it."""
        self._pool.shutdown()
        for serving in self._serving.values():
            serving.result()
        for kernel in self._kernels:
            kernel.close()
