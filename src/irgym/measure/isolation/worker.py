"""The isolated child process: `python -m irgym.measure.isolation.worker REQUESTS ANSWERS LIFELINE`.

It reads calls from one pipe and answers each on another as it finishes, so that a parent may send several
ahead. The third pipe carries nothing; it closes when the parent dies, and that kills the child.
"""

import atexit
import faulthandler
import fcntl
import gc
import os
import pickle
import resource
import select
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from irgym.base.errors import IrgymError
from irgym.base.garbage import collect_seldom
from irgym.core.cost import Call
from irgym.measure.isolation.protocol import (
    ANSWER,
    END,
    NO_MEMORY,
    RAISED,
    REQUEST,
    RETURNED,
    RUNNING,
    TOLD,
    WAITING,
    Limits,
    Raised,
    resolve,
    write_all,
)
from irgym.measure.machine import SLOT, Slot, pin, timing_cores

_STDERR = 2


class Worker:
    """Answers the calls of one parent.

    Attributes:
        limits: Limits of a call.
    """

    def __init__(self, answers: int, limits: Limits):
        self.limits = limits
        self._answers = answers
        self._functions: dict[str, Callable[..., Any]] = {}

    def serve(self, requests: BinaryIO) -> None:
        """Answer calls until the parent closes its end."""
        self._limit_memory()
        self._send(RUNNING)
        while (payload := _read_request(requests)) is not None:
            _empty_output()
            kind, answer = self._answer(payload)
            self._send(kind, answer)

    def announce(self, lock: Path | None) -> None:
        """Stop the parent's clock and let it watch the lock of a core; with None, restart the clock."""
        if lock is None:
            self._send(RUNNING)
        else:
            self._send(WAITING, os.fsencode(lock))

    def tell(self, text: str) -> None:
        """Tell the parent how the current call gets on."""
        self._send(TOLD, text.encode())

    def _send(self, kind: bytes, payload: bytes = b"") -> None:
        write_all(self._answers, ANSWER.pack(kind, len(payload)) + payload)

    def _answer(self, payload: bytes) -> tuple[bytes, bytes]:
        try:
            end = payload.index(END)
            function, arguments = self._prepare(payload[:end].decode(), memoryview(payload)[end + 1 :])
            return RETURNED, pickle.dumps(function(*arguments), pickle.HIGHEST_PROTOCOL)
        except MemoryError as error:
            return NO_MEMORY, (str(error) or "an allocation failed").encode()
        except BaseException as error:  # noqa: BLE001 (the parent gets it, SystemExit too)
            return RAISED, pickle.dumps(_raised(error), pickle.HIGHEST_PROTOCOL)

    def _prepare(self, name: str, packed: memoryview) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        function = self._functions.get(name)
        if function is not None:
            return function, pickle.loads(packed)
        # Imports do not count against a candidate, neither their time nor their memory.
        with self._clock_stopped():
            resource.setrlimit(_MEMORY, _soft(_MEMORY, resource.RLIM_INFINITY))
            function = self._functions[name] = resolve(Call(name))
            arguments = pickle.loads(packed)
            self._limit_memory()
        return function, arguments

    @contextmanager
    def _clock_stopped(self) -> Generator[None, None, None]:
        self._send(WAITING)
        try:
            yield
        finally:
            self._send(RUNNING)

    def _limit_memory(self) -> None:
        resource.setrlimit(_MEMORY, _soft(_MEMORY, _held_memory() + self.limits.memory_bytes))


# Linux counts private writable memory as data. Address space is no measure: libraries reserve much of it.
_MEMORY = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS


def _soft(which: int, wanted: int) -> tuple[int, int]:
    """Return a new soft limit with the unchanged hard limit, so that it can be raised again."""
    hard = resource.getrlimit(which)[1]
    if hard != resource.RLIM_INFINITY and (wanted == resource.RLIM_INFINITY or wanted > hard):
        wanted = hard
    return wanted, hard


def _warn_of_processor_time() -> None:
    """Make a limit on processor time end this process by SIGXCPU; the hard limit would end it by SIGKILL."""
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    if hard != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_CPU, (max(1, hard - 1), hard))


def _held_memory() -> int:
    """Return the bytes that count against the memory limit now; 0 if the system does not say."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmData:"))
    return int(line.split()[1]) * 1024


def _raised(error: BaseException) -> Raised:
    return Raised(
        message=f"{type(error).__name__}: {error}",
        traceback="".join(traceback.format_exception(error)),
        user_error=error if isinstance(error, IrgymError) else None,
    )


def _empty_output() -> None:
    """Drop the output of earlier calls, so that a crash report shows only the culprit's output."""
    if os.fstat(_STDERR).st_size:
        os.ftruncate(_STDERR, 0)


def _read_request(requests: BinaryIO) -> bytes | None:
    """Return the next request; None if the parent has closed its end, perhaps in the middle of one."""
    header = requests.read(REQUEST.size)
    if len(header) < REQUEST.size:
        return None
    [length] = REQUEST.unpack(header)
    payload = requests.read(length)
    return payload if len(payload) == length else None


def _die_with_parent(lifeline: int) -> None:
    """Arrange that the process group is killed when the parent dies and its end of the lifeline closes.

    PR_SET_PDEATHSIG would also fire when the thread that started this process ends.
    """
    if sys.platform == "linux":
        # The kernel sends the signal, so that a hang in machine code cannot delay it.
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
        if _hung_up(lifeline):  # before the signal was requested, so that none will come
            os.killpg(os.getpgrp(), signal.SIGKILL)
    else:
        threading.Thread(target=_watch, args=(lifeline,), daemon=True).start()


def _hung_up(lifeline: int) -> bool:
    """Say whether the parent has closed its end of the lifeline."""
    poll = select.poll()
    poll.register(lifeline, 0)  # hang-ups are always reported
    return bool(poll.poll(0))


def _watch(lifeline: int) -> None:
    os.read(lifeline, 1)
    os.killpg(os.getpgrp(), signal.SIGKILL)


def main() -> None:
    """Serve the parent that holds the other ends of the pipes."""
    pipe, answers, lifeline = (int(text) for text in sys.argv[1:])
    ended = threading.Event()
    atexit.register(_leave_at_once, ended)  # the first handler registered is the last one called
    _die_with_parent(lifeline)
    faulthandler.enable()
    requests = os.fdopen(pipe, "rb", closefd=False)
    settings = _read_request(requests)
    if settings is None:
        return
    limits: Limits
    limits, modules = pickle.loads(settings)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _warn_of_processor_time()
    resource.setrlimit(resource.RLIMIT_FSIZE, _soft(resource.RLIMIT_FSIZE, limits.file_bytes))
    collect_seldom()
    _import(modules)
    # Only now: otherwise processes that start at the same time would all import on one core.
    cores = timing_cores(limits.core, limits.threads)
    if cores and not limits.shared_core:
        pin(set(cores))
    worker = Worker(answers, limits)
    SLOT.set(Slot(cores, limits.shared_core, worker.announce, worker.tell))
    worker.serve(requests)
    ended.set()


def _import(modules: Iterable[str]) -> None:
    """Import modules; the call that needs a module reports a failed import.

    Garbage collection is off meanwhile: there is no garbage, and it takes a tenth of the time to import
    torch.
    """
    gc.disable()
    for module in modules:
        with suppress(ImportError):
            import_module(module)
    gc.freeze()
    gc.enable()


def _leave_at_once(ended: threading.Event) -> None:
    """Leave after all other exit handlers, without tearing down torch or LLVM, which takes half a second."""
    if ended.is_set():
        os._exit(0)


if __name__ == "__main__":
    main()
