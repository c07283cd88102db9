"""A session with an external process that speaks lines: a request is one line, an answer is one or several.

The caller says which line ends an answer. A request that fails costs itself only: the process is replaced, so
that nothing which it says too late can be taken for the answer to another request. Replacements are bounded:
a process that fails again and again is an error.
"""

from collections.abc import Sequence
from pathlib import Path

from irgym.base.closing import Closing
from irgym.base.errors import BackendError
from irgym.measure.external.process import LineProcess
from irgym.measure.external.protocol import Answered, Ends, LineLimits, LineReply, told


class LineSession(Closing):
    """Asks an external process one request after the other.

    The process starts on the first request, in a process group of its own. What it writes between requests
    is dropped; where that would end an answer, nobody knows to which request, and the process is replaced.
    On Linux the group is killed when this process dies. Use it from one thread at a time, and close it.

    Args:
        command: The program and its arguments.
        ends: Which line ends an answer.
        name: What errors call the process.
        remedy: What errors advise where it does not work.
        greeting: Which line says that the process is ready; None where it says nothing at first.
        farewell: The line that asks it to end; None where the end of its input does.
        folder: Its working folder.
        limits: What to bear with.
    """

    def __init__(
        self,
        command: Sequence[str],
        ends: Ends,
        *,
        name: str,
        remedy: str,
        greeting: Ends | None = None,
        farewell: str | None = None,
        folder: Path | None = None,
        limits: LineLimits | None = None,
    ) -> None:
        self._command = list(command)
        self._ends = ends
        self._name = name
        self._remedy = remedy
        self._greeting = greeting
        self._farewell = farewell
        self._folder = folder
        self._limits = limits or LineLimits()
        self._life: LineProcess | None = None
        self._failures = 0
        self._lost = 0

    def request(self, line: str, ends: Ends | None = None, timeout_s: float | None = None) -> LineReply:
        """Send a line and return the answer, or how the process failed.

        Args:
            line: The request, without a line break.
            ends: Which line ends this answer; by default that of the session.
            timeout_s: Seconds that it may take; by default those of the limits.

        Raises:
            BackendError: The process does not start, or fails again and again. `close` allows new attempts.
            ValueError: The request has a line break in it.
        """
        if "\n" in line or "\r" in line:
            raise ValueError(f"a request is one line, not {line!r}")
        wanted = ends or self._ends
        life = self._ready(wanted)
        try:
            reply = life.ask(f"{line}\n".encode(), wanted, timeout_s or self._limits.timeout_s)
        finally:
            if not life.settled:  # an interrupt included: what it says later answers nothing
                self._kill()
        if isinstance(reply, Answered):
            self._failures = 0
            return reply
        self._failures += 1
        if self._failures > self._limits.failures:
            raise self._broken(f"failed {self._failures} times in a row", reply)
        return reply

    def close(self) -> None:
        """End the process: by its farewell and the end of its input, then by SIGTERM, then by SIGKILL."""
        life, self._life = self._life, None
        self._failures = self._lost = 0
        if life:
            life.finish(self._farewell)

    def __del__(self) -> None:
        # Absent when the constructor failed early.
        if getattr(self, "_life", None):
            self._kill()

    def _ready(self, ends: Ends) -> LineProcess:
        """Return a process that waits for a request, a new one where there is none."""
        if self._failures > self._limits.failures:
            raise self._broken(f"failed {self._failures} times in a row", None)
        if self._life:
            if self._life.in_step(ends):
                self._lost = 0
                return self._life
            self._kill()
            self._lost += 1
            if self._lost > self._limits.failures:
                self._failures = self._lost
                raise self._broken(f"ended or spoke unasked after each of {self._lost} requests", None)
        self._life = self._started()
        return self._life

    def _started(self) -> LineProcess:
        try:
            life = LineProcess(self._command, self._folder, self._limits)
        except OSError as error:
            raise BackendError(
                f"{self._name} cannot be started ({self._command[0]}: {error.strerror}): {self._remedy}"
            ) from error
        if self._greeting is None:
            return life
        try:
            reply = life.ask(b"", self._greeting, self._limits.start_s)
        finally:
            if not life.settled:
                life.kill()
        if not isinstance(reply, Answered):
            self._failures += 1
            raise self._broken("did not start", reply)
        return life

    def _kill(self) -> None:
        life, self._life = self._life, None
        if life:
            life.kill()

    def _broken(self, what: str, reply: LineReply | None) -> BackendError:
        detail = f" ({told(reply)})" if reply else ""
        return BackendError(f"{self._name} {what}{detail}: {self._remedy}")
