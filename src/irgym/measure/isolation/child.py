"""A persistent isolated child process, in which candidates may crash, hang or exhaust memory."""

import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeAlias, cast

from irgym.base.closing import Closing
from irgym.core.cost import Call
from irgym.measure.isolation.process import Dead, Late, Packed, Process
from irgym.measure.isolation.protocol import (
    END,
    NO_MEMORY,
    RAISED,
    RETURNED,
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
"""Number of calls that a child may have: enough that it never waits for the parent."""


class ChildError(RuntimeError):
    """The child process does not work; no candidate is to blame."""


Answer: TypeAlias = Packed | Crashed | TimedOut | OutOfMemory
"""Outcome of a packed call."""


def pack(call: Call) -> bytes:
    """Return a call packed for `Child.exchange`."""
    # The arguments stay packed until the child has imported the modules that they need.
    return call.function.encode() + END + pickle.dumps(call.arguments, pickle.HIGHEST_PROTOCOL)


def unpack(answer: Answer) -> Reply:
    """Return the reply of a packed answer from `Child.exchange`."""
    if not isinstance(answer, Packed):
        return answer
    if answer.kind == RETURNED:
        return Returned(pickle.loads(answer.payload))
    if answer.kind == RAISED:
        return cast(Raised, pickle.loads(answer.payload))
    return OutOfMemory(answer.payload.decode())


class Child(Closing):
    """Runs calls one after the other in a child process, which is replaced when it dies or hangs.

    The process starts on the first call. Use it from one thread at a time, and close it.

    Args:
        limits: Limits of a call.
        told: Called with each line of text that a call tells by `irgym.measure.machine.tell`.

    Attributes:
        limits: Limits of a call.
    """

    def __init__(self, limits: Limits | None = None, told: Callable[[str], None] | None = None):
        self.limits = limits or Limits()
        self._told = told
        self._process: Process | None = None
        self._beforehand = 0

    def start(self, modules: Sequence[str], calls: Iterable[Call] = ()) -> None:
        """Start the process, if there is none, and let it prepare for later calls; do not wait for it.

        Args:
            modules: Modules to import. A failed import is reported by the call that needs the module.
            calls: Calls to run for their side effects, such as caches. Their results are dropped, and if one
                kills the process, the next call gets a new one.
        """
        if not self._process:
            self._process = self._begun(modules)
        for call in calls:
            self._process.send(pack(call))
            self._beforehand += 1

    def call(self, call: Call) -> Reply:
        """Run one call.

        Raises:
            ChildError: The process does not start or stops working between calls.
        """
        return unpack(next(self.exchange((pack(call),))))

    def stream(self, calls: Iterable[Call], ahead: int = AHEAD) -> Iterator[Reply]:
        """Run calls in order and yield their replies in order, sending a few calls ahead.

        A call that kills the process or takes too long affects only its reply: the calls after it run in a
        new process. A call runs a second time, in a new process, if it was killed from outside, timed out
        without computing, or ran out of memory in a process that had run others; then the second outcome
        counts. Abandoning the iterator kills the process if calls are under way.

        Args:
            calls: The calls; they are consumed only as they can be sent.
            ahead: Number of calls that the process may have, at least 1.

        Raises:
            ChildError: The process does not start or stops working between calls.
            StorageError: The lock of the timing core cannot be taken.
        """
        for answer in self.exchange(map(pack, calls), ahead):
            yield unpack(answer)

    def exchange(self, requests: Iterable[bytes], ahead: int = AHEAD) -> Iterator[Answer]:
        """Run packed calls as `stream` does, and yield packed answers.

        Raises:
            ChildError: The process does not start or stops working between calls.
            StorageError: The lock of the timing core cannot be taken.
        """
        self.settle()
        source = iter(requests)
        pending = deque(islice(source, ahead))
        sent = failures = 0
        retried = False
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
                if not retried and _in_doubt(process, answer):
                    retried = True
                    self._kill()
                    sent = 0
                    continue
                failures, retried = 0, False
                pending.popleft()
                pending.extend(islice(source, 1))
                yield answer
        finally:
            if sent:
                self._kill()

    def settle(self) -> None:
        """Wait for the calls given to `start`."""
        while self._beforehand and self._process:
            received = self._process.receive()
            self._beforehand -= 1
            if not isinstance(received, Packed):
                self._kill()
        self._beforehand = 0

    def interrupt(self) -> None:
        """Kill the process from any thread; a running call ends as crashed."""
        process = self._process
        if process:
            process.strike()

    def dismiss(self) -> None:
        """Tell an idle process to end before `close` waits for it: several can then end concurrently."""
        if self._process:
            self._process.dismiss()

    def close(self) -> None:
        """End the process. A later call starts a new one."""
        if self._beforehand:
            self._kill()  # the results of its calls are not needed
        if self._process:
            self._process.finish()
            self._process = None

    def __del__(self) -> None:
        # Absent when the constructor failed early.
        if getattr(self, "_process", None):
            self._kill()

    def _ready(self, idle: bool) -> "Process":
        if idle and self._process and not self._process.alive():
            self._kill()  # no candidate is to blame
        if not self._process:
            self._process = self._begun()
        return self._process

    def _begun(self, modules: Sequence[str] = ()) -> Process:
        process = Process(self.limits, modules)
        process.told = self._told
        return process

    def _kill(self) -> None:
        self._beforehand = 0
        if self._process:
            self._process.kill()
            self._process = None

    def _bury(self, process: Process, end: Dead | Late) -> Answer | None:
        """Kill the process and return the outcome of the current call; None if no call was running."""
        verdict = process.verdict(end)
        self._process = None
        return None if process.waiting else verdict


def _in_doubt(process: Process, answer: Answer) -> bool:
    """Say whether something other than the call may have caused its failure."""
    if isinstance(answer, Packed):
        return answer.kind == NO_MEMORY and process.answers > 1
    return answer.doubtful
