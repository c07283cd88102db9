"""A persistent isolated child process, in which candidates may crash, hang or exhaust memory."""

import os
import pickle
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, TypeAlias, cast

from irgym.core.cost import Call
from irgym.measure.protocol import (
    ANSWER,
    KINDS,
    NO_MEMORY,
    RAISED,
    REQUEST,
    RETURNED,
    SLOW_BLAS,
    THREAD_VARIABLES,
    WAITING,
    Crashed,
    Limits,
    OutOfMemory,
    Raised,
    Reply,
    Returned,
    TimedOut,
)

__all__ = [
    "Answer",
    "Child",
    "ChildError",
    "Crashed",
    "Limits",
    "OutOfMemory",
    "Packed",
    "Raised",
    "Reply",
    "Returned",
    "TimedOut",
    "pack",
    "unpack",
]

AHEAD = 4
"""Calls that a child may have at once: enough that it never waits for the parent."""

PATIENCE_S = 600.0
"""How long a child may start up, import or wait for the timing core before something is broken."""

# How often to look whether the process is alive: its pipe can outlive it in a forked grandchild.
_SLICE_S = 0.1
_TAIL_BYTES = 2000


class ChildError(RuntimeError):
    """The child process itself does not work; no candidate is to blame."""


class _Dead(NamedTuple):
    """The process ended, or says nonsense."""


class _Late(NamedTuple):
    """The process did not answer in time."""


class Packed(NamedTuple):
    """What a function returned or raised, still packed: only who wants it need be able to import its types.

    Attributes:
        kind: How the call ended.
        payload: The pickled value or exception.
    """

    kind: bytes
    payload: bytes


Answer: TypeAlias = Packed | Crashed | TimedOut | OutOfMemory
"""How a packed call ended."""


def pack(call: Call) -> bytes:
    """Return a call as `Child.exchange` takes it."""
    # The arguments stay packed until the child has imported what they need.
    arguments = pickle.dumps(call.arguments, pickle.HIGHEST_PROTOCOL)
    return pickle.dumps((call.function, arguments), pickle.HIGHEST_PROTOCOL)


def unpack(answer: Answer) -> Reply:
    """Return the reply that an answer of `Child.exchange` holds."""
    if not isinstance(answer, Packed):
        return answer
    if answer.kind == RETURNED:
        return Returned(pickle.loads(answer.payload))
    if answer.kind == RAISED:
        return cast(Raised, pickle.loads(answer.payload))
    return OutOfMemory(answer.payload.decode())


class Child:
    """Runs calls one after the other in a process of its own, which is replaced when it dies or hangs.

    The process starts on the first call. Use it from one thread at a time, and close it.

    Attributes:
        limits: What a call may use.
    """

    def __init__(self, limits: Limits | None = None):
        self.limits = limits or Limits()
        self._process: _Process | None = None

    def call(self, call: Call) -> Reply:
        """Run one call.

        Raises:
            ChildError: The process does not start or stops working between calls.
        """
        return next(self.stream((call,)))

    def stream(self, calls: Iterable[Call], ahead: int = AHEAD) -> Iterator[Reply]:
        """Run calls in order and yield their replies in order, sending a few calls ahead.

        A call that kills the process or takes too long costs its own reply only: the calls after it run
        in a new process. Abandoning the iterator kills the process if calls are under way.

        Args:
            calls: Taken from only as far as they can be sent.
            ahead: Calls that the process may have at once, at least 1.

        Raises:
            ChildError: The process does not start or stops working between calls.
        """
        for answer in self.exchange(map(pack, calls), ahead):
            yield unpack(answer)

    def exchange(self, requests: Iterable[bytes], ahead: int = AHEAD) -> Iterator[Answer]:
        """Do what `stream` does with calls that are packed, and leave the answers packed.

        Raises:
            ChildError: The process does not start or stops working between calls.
        """
        source = iter(requests)
        pending = deque(islice(source, ahead))
        sent = failures = 0
        try:
            while pending:
                process = self._ready(idle=not sent)
                for request in islice(pending, sent, None):
                    process.send(request)
                sent = len(pending)
                received = process.receive()
                if isinstance(received, Packed):
                    answer: Answer | None = received
                    sent -= 1
                else:
                    answer = self._bury(process, received)
                    sent = 0
                if answer is None:
                    failures += 1
                    if failures > 1:
                        raise ChildError(f"the isolated child process does not work: {process.epitaph()}")
                    continue
                failures = 0
                pending.popleft()
                pending.extend(islice(source, 1))
                yield answer
        finally:
            if sent:
                self._kill()

    def interrupt(self) -> None:
        """Kill the process from any thread; a call that is under way ends as if it had killed it."""
        process = self._process
        if process:
            process.strike()

    def close(self) -> None:
        """End the process. A later call starts a new one."""
        if self._process:
            self._process.finish()
            self._process = None

    def __enter__(self) -> "Child":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        # Absent when the constructor failed early.
        if getattr(self, "_process", None):
            self._kill()

    def _ready(self, idle: bool) -> "_Process":
        if idle and self._process and not self._process.alive():
            self._kill()  # no candidate is to blame
        if not self._process:
            self._process = _Process(self.limits)
        return self._process

    def _kill(self) -> None:
        if self._process:
            self._process.kill()
            self._process = None

    def _bury(self, process: "_Process", end: _Dead | _Late) -> Answer | None:
        """Kill the process and say what the call at hand did; None where no call was running."""
        by_itself = process.ends_within(1.0) if isinstance(end, _Dead) else False
        process.kill()
        self._process = None
        if process.waiting:
            return None
        if isinstance(end, _Late):
            return TimedOut(self.limits.timeout_s)
        if not by_itself:
            return Crashed("the process wrote nonsense into its pipe, or closed it")
        if process.status == -signal.SIGKILL:
            return OutOfMemory("the process was killed, as the system does when memory runs out")
        return Crashed(process.epitaph())


def _child_environment(limits: Limits) -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if name not in SLOW_BLAS}
    environment.update(dict.fromkeys(THREAD_VARIABLES, str(limits.threads)))
    environment["PYTHONPATH"] = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
    environment.update(limits.environment)
    return environment


class _Process:
    """One life of a child: its pipes, and the clock of the call at hand.

    Attributes:
        waiting: Whether the process starts up, imports or waits for the timing core: the clock stands still.
        status: Exit status once it is dead, negative for a signal.
    """

    def __init__(self, limits: Limits):
        self.waiting = True
        self.status: int | None = None
        self._timeout_s = limits.timeout_s
        self._since = 0.0
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
                [sys.executable, "-P", "-m", "irgym.measure.worker", *map(str, theirs)],
                pass_fds=theirs,
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                env=_child_environment(limits),
                start_new_session=True,
            )
        except OSError:
            self._close()
            raise
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        os.set_blocking(self._requests, False)
        os.set_blocking(self._answers, False)
        self._poll = select.poll()
        self._poll.register(self._answers, select.POLLIN)
        self.send(pickle.dumps(limits))

    def alive(self) -> bool:
        return self._popen.poll() is None

    def receive(self) -> Packed | _Dead | _Late:
        """Return the next answer, watching the clock of the call at hand.

        The clock starts here, or when the process says so: a parent that was away while its pipe was full
        must not take that time for the candidate's.
        """
        self._since = time.monotonic()
        while True:
            answer = self._next_answer()
            if answer:
                return answer
            if self._ended:
                return _Dead()
            limit_s = PATIENCE_S if self.waiting else self._timeout_s
            left_s = self._since + limit_s - time.monotonic()
            if left_s <= 0:
                return _Late()
            if not self._exchange(min(left_s, _SLICE_S)) and not self.alive() and not self._exchange(0.0):
                self._ended = True

    def kill(self) -> None:
        """Kill the process and all that it started, and keep what it printed last."""
        self._kill_group()
        self._reap()

    def strike(self) -> None:
        """Kill the process and all that it started while another thread may wait for it."""
        if self.alive():
            self._kill_group()

    def _kill_group(self) -> None:
        # The group may be gone; macOS says EPERM where only a zombie is left of it.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._popen.pid, signal.SIGKILL)

    def finish(self) -> None:
        """Let an idle process end by itself; kill one that does not."""
        os.close(self._requests)
        self._requests = -1
        self.ends_within(0.5)
        self.kill()

    def ends_within(self, seconds: float) -> bool:
        """Wait for the process to end by itself, and say whether it did."""
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(seconds)
        return not self.alive()

    def epitaph(self) -> str:
        """Say in one line how the process ended."""
        if self.status is None:
            how = "the process was lost"
        elif self.status < 0:
            how = f"killed by {signal.Signals(-self.status).name}"
        else:
            how = f"exited with status {self.status}"
        return f"{how}; it printed: {self._last_words}" if self._last_words else how

    def _reap(self) -> None:
        self.status = self._popen.wait()
        size = self._output.seek(0, os.SEEK_END)
        self._output.seek(max(0, size - _TAIL_BYTES))
        self._last_words = " ".join(self._output.read().decode(errors="replace").split())
        self._close()

    def _close(self) -> None:
        self._output.close()
        for descriptor in (self._requests, self._answers, self._lifeline):
            if descriptor >= 0:
                os.close(descriptor)
        self._requests = self._answers = self._lifeline = -1

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
            self._outgoing.clear()  # it died; the other pipe says so too

    def _exchange(self, wait_s: float) -> bool:
        """Write what is queued and read what has come, waiting for either; say whether anything was read."""
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
        """Take the next answer from what was read, following the clock's notices on the way."""
        while len(self._incoming) >= ANSWER.size:
            kind, length = ANSWER.unpack_from(self._incoming)
            if kind not in KINDS:
                self._incoming.clear()
                self._ended = True  # a wild write reached the pipe: the process is not to be trusted
                return None
            end = ANSWER.size + length
            if len(self._incoming) < end:
                return None
            payload = bytes(self._incoming[ANSWER.size : end])
            del self._incoming[:end]
            self._since = time.monotonic()
            self.waiting = kind == WAITING
            if kind in (RETURNED, RAISED, NO_MEMORY):
                return Packed(kind, payload)
        return None
