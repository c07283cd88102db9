"""A session with an external process: a request is one line, an answer is one or several lines.

The caller says which line ends an answer. A failed request affects no other: the process is replaced, so that
late output cannot be taken for the answer to another request. The number of replacements is limited: a
process that fails repeatedly is an error.
"""

from collections.abc import Sequence
from pathlib import Path

from irgym.base.closing import Closing
from irgym.base.errors import BackendError
from irgym.measure.external.process import LineProcess
from irgym.measure.external.protocol import Answered, Ends, LineLimits, LineReply, told


class LineSession(Closing):
    """Sends requests to an external process, one at a time.

    The process starts on the first request, in a new process group. Output between requests is dropped; if it
    contains the end of an answer, the process is replaced, since the request is unknown. On Linux the group
    is killed when this process dies. Use it from one thread at a time, and close it.

    Args:
        command: The program and its arguments.
        ends: Recognises the line that ends an answer.
        name: Name of the process in errors.
        remedy: Advice in errors where it does not work.
        greeting: Recognises the line that says that the process is ready; None if there is no such line.
        farewell: Line that asks the process to exit; None if the end of its input does.
        folder: Its working folder.
        limits: Limits of the session.
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
            ends: Recognises the line that ends this answer; by default the session's.
            timeout_s: Time limit in seconds; by default the session's.

        Raises:
            BackendError: The process does not start, or fails repeatedly. `close` allows new attempts.
            ValueError: The request has a line break in it.
        """
        if "\n" in line or "\r" in line:
            raise ValueError(f"a request is one line, not {line!r}")
        wanted = ends or self._ends
        life = self._ready(wanted)
        try:
            reply = life.ask(f"{line}\n".encode(), wanted, timeout_s or self._limits.timeout_s)
        finally:
            if not life.settled:  # also after an interrupt: later output answers no request
                self._kill()
        if isinstance(reply, Answered):
            self._failures = 0
            return reply
        self._failures += 1
        if self._failures > self._limits.failures:
            raise self._broken(f"failed {self._failures} times in a row", reply)
        return reply

    def close(self) -> None:
        """End the process: by the farewell and the end of its input, then by SIGTERM, then by SIGKILL."""
        life, self._life = self._life, None
        self._failures = self._lost = 0
        if life:
            life.finish(self._farewell)

    def __del__(self) -> None:
        # Absent when the constructor failed early.
        if getattr(self, "_life", None):
            self._kill()

    def _ready(self, ends: Ends) -> LineProcess:
        """Return a process that is ready for a request, a new one if necessary."""
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
