"""A single isolated child process: its pipes, the clock of its calls, and how it ends."""

import math
import os
import pickle
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from irgym.base.interrupts import CHILD
from irgym.measure.isolation.protocol import (
    ANSWER,
    KINDS,
    NO_MEMORY,
    RAISED,
    REQUEST,
    RETURNED,
    TOLD,
    WAITING,
    Crashed,
    Limits,
    OutOfMemory,
    TimedOut,
)
from irgym.measure.isolation.watch import Watch
from irgym.measure.locks import Queue
from irgym.measure.variables import for_child

PATIENCE_S = 600.0
"""Seconds that a child may take to start up or to import; after that it is broken."""

FAULTS = frozenset({"SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV", "SIGSYS", "SIGTRAP"})
"""Signals caused by the process; other signals may come from outside."""

_TAIL_BYTES = 2000


class Dead(NamedTuple):
    """The process ended, or sent invalid data."""


class Late(NamedTuple):
    """The process did not answer in time.

    Attributes:
        certain: Whether it was computing all the time.
    """

    certain: bool


class Packed(NamedTuple):
    """A value or exception of a function, still pickled, so that only its reader must import its types.

    Attributes:
        kind: Outcome of the call.
        payload: The pickled value or exception.
    """

    kind: bytes
    payload: bytes


class Process:
    """A single child process: its pipes, and the clock of the current call.

    Attributes:
        waiting: Whether the process starts up, imports or waits for the timing core; the clock is stopped
            then.
        answers: Number of calls that it has answered.
        told: Called with each line of text that a call tells; None to ignore them.
    """

    def __init__(self, limits: Limits, modules: Sequence[str] = ()):
        """Start the process, which imports the modules, if possible, before the first call."""
        self.told: Callable[[str], None] | None = None
        self.waiting = True
        self.answers = 0
        self._status: int | None = None
        self._struck = False
        self._timeout_s = limits.timeout_s
        self._queue: Queue | None = None
        self._outgoing = bytearray()
        self._incoming = bytearray()
        self._ended = False
        self._last_words = ""
        self._output = tempfile.TemporaryFile("a+b")  # noqa: SIM115 (closed with the process)
        requests, self._requests = os.pipe()
        self._answers, answers = os.pipe()
        lifeline, self._lifeline = os.pipe()
        theirs = (requests, answers, lifeline)
        try:
            self._popen = subprocess.Popen(
                # -P: the current folder must not shadow modules.
                [sys.executable, "-P", "-m", CHILD, *map(str, theirs)],
                pass_fds=theirs,
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                env={**for_child(os.environ, limits.threads, limits.environment), **_modules(limits)},
                start_new_session=True,
            )
        except OSError:
            self._close()
            raise
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        self._watch = Watch(self._popen.pid)
        os.set_blocking(self._requests, False)
        os.set_blocking(self._answers, False)
        self._poll = select.poll()
        self._poll.register(self._answers, select.POLLIN)
        self.send(pickle.dumps((limits, tuple(modules))))

    def alive(self) -> bool:
        """Say whether the process has not ended."""
        return self._popen.poll() is None

    def receive(self) -> Packed | Dead | Late:
        """Return the next answer, watching the clock of the current call.

        The clock starts here, or when the process says so: time in which the parent did not empty the pipe
        must not count against the candidate.

        Raises:
            StorageError: The lock of the timing core cannot be taken.
        """
        self._restart_clock()
        while True:
            answer = self._next_answer()
            if answer:
                return answer
            if self._ended:
                return Dead()
            certain = self._watch.late()
            if certain is not None and not self._exchange(0.0):
                return Late(certain)
            if self._queue:
                self._queue.look()
            if not self._exchange(self._watch.wait_s) and not self.alive() and not self._exchange(0.0):
                self._ended = True

    def _restart_clock(self) -> None:
        # While waiting for a lock, the queue decides when it has taken too long.
        patience_s = math.inf if self._queue else PATIENCE_S
        self._watch.restart(patience_s if self.waiting else self._timeout_s)

    def kill(self) -> None:
        """Kill the process and its descendants, and keep its last output."""
        self._kill_group()
        self._reap()

    def strike(self) -> None:
        """Kill the process and its descendants, while another thread may be waiting for it."""
        if self.alive():
            self._struck = True
            self._kill_group()

    def _kill_group(self) -> None:
        # The group may be gone; macOS returns EPERM if only a zombie of it is left.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._popen.pid, signal.SIGKILL)

    def dismiss(self) -> None:
        """Tell an idle process that no more calls come, so that it exits."""
        requests, self._requests = self._requests, -1
        _close(requests)

    def finish(self) -> None:
        """Let an idle process exit; kill it if it does not, or if it has answered no call yet."""
        self.dismiss()
        if self.answers:
            self.ends_within(0.5)
        self.kill()

    def ends_within(self, seconds: float) -> bool:
        """Wait for the process to exit, and say whether it did."""
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(seconds)
        return not self.alive()

    def epitaph(self) -> str:
        """Return one line on how the process ended."""
        how = "the process was lost" if self._status is None else ended_how(self._status)
        return f"{how}; it printed: {self._last_words}" if self._last_words else how

    def verdict(self, end: Dead | Late) -> Crashed | TimedOut | OutOfMemory:
        """Kill the process and return the outcome of the call that it was running."""
        exited = self.ends_within(1.0) if isinstance(end, Dead) else False
        self.kill()
        if self._struck:
            return Crashed("it was interrupted")
        if isinstance(end, Late):
            return TimedOut(self._timeout_s, doubtful=not end.certain)
        if not exited:
            return Crashed("the process wrote nonsense into its pipe, or closed it")
        name = _signal(self._status or 0)
        if name == "SIGKILL":
            detail = "the process was killed, as the system does when memory runs out"
            return OutOfMemory(detail, doubtful=True)
        return Crashed(self.epitaph(), doubtful=bool(name) and name not in FAULTS)

    def _reap(self) -> None:
        """Collect the dead process's status and last output; an interrupted call may be repeated."""
        self._status = self._popen.wait()
        if self._output.closed:
            return
        size = self._output.seek(0, os.SEEK_END)
        self._output.seek(max(0, size - _TAIL_BYTES))
        self._last_words = " ".join(self._output.read().decode(errors="replace").split())
        self._close()

    def _close(self) -> None:
        descriptors = self._requests, self._answers, self._lifeline
        self._requests = self._answers = self._lifeline = -1
        for descriptor in descriptors:
            _close(descriptor)
        self._output.close()

    def send(self, payload: bytes) -> None:
        """Queue a request and write as much of it as the pipe takes."""
        self._outgoing += REQUEST.pack(len(payload)) + payload
        self._flush()

    def _flush(self) -> None:
        try:
            while self._outgoing:
                written = os.write(self._requests, self._outgoing)
                del self._outgoing[:written]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self._outgoing.clear()  # it died, as the other pipe shows too

    def _exchange(self, wait_s: float) -> bool:
        """Wait, then write queued data and read available data; say whether anything was read."""
        if self._outgoing:
            self._poll.register(self._requests, select.POLLOUT)
        self._poll.poll(wait_s * 1000)
        if self._outgoing:
            self._poll.unregister(self._requests)
            self._flush()
        try:
            data = os.read(self._answers, 1 << 16)
        except BlockingIOError:
            return False
        self._ended = not data
        self._incoming += data
        return True

    def _next_answer(self) -> Packed | None:
        """Take the next answer from the data read, processing notices for the clock on the way."""
        while len(self._incoming) >= ANSWER.size:
            kind, length = ANSWER.unpack_from(self._incoming)
            if kind not in KINDS:
                self._incoming.clear()
                self._ended = True  # a wild write reached the pipe: the process cannot be trusted
                return None
            end = ANSWER.size + length
            if len(self._incoming) < end:
                return None
            payload = bytes(self._incoming[ANSWER.size : end])
            del self._incoming[:end]
            if kind == TOLD:
                if self.told:
                    self.told(payload.decode(errors="replace"))
                continue
            self.waiting = kind == WAITING
            self._queue = Queue(Path(os.fsdecode(payload))) if self.waiting and payload else None
            self._restart_clock()
            if kind in (RETURNED, RAISED, NO_MEMORY):
                self.answers += 1
                return Packed(kind, payload)
        return None


def _modules(limits: Limits) -> dict[str, str]:
    """Return the process's search path for modules: this process's, unless its limits set another."""
    path = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
    return {"PYTHONPATH": limits.environment.get("PYTHONPATH", path)}


def _close(descriptor: int) -> None:
    if descriptor >= 0:
        os.close(descriptor)


def ended_how(status: int) -> str:
    """Return words on how a process ended, by its status from `subprocess`."""
    return f"killed by {_signal(status)}" if status < 0 else f"exited with status {status}"


def _signal(status: int) -> str:
    """Return the name of the signal that ended a process; empty if none did."""
    if status >= 0:
        return ""
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"  # a real-time signal
