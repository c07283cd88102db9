"""A single external process that answers requests by lines: its pipes, its clock, and how it ends."""

import fcntl
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from irgym.measure.external.protocol import Answered, Ends, Garbled, LineLimits, LineReply
from irgym.measure.isolation.process import ended_how
from irgym.measure.isolation.protocol import Crashed, TimedOut
from irgym.measure.isolation.watch import Watch
from irgym.measure.variables import for_child

_CHUNK = 1 << 16
_TAIL_BYTES = 2000
_TAIL_READS = 16  # a pipe holds no more
_SHOWN = 60


class LineProcess:
    """A single process: its pipes, and the clock of the current request.

    Attributes:
        settled: Whether no request is under way, since the last one was answered in full.
    """

    def __init__(self, command: Sequence[str], folder: Path | None, limits: LineLimits) -> None:
        self.settled = True
        self._limits = limits
        self._incoming = bytearray()
        self._searched = 0
        self._outgoing = bytearray()
        self._complaints = bytearray()
        self._silent = False
        lifeline, self._lifeline = os.pipe()
        try:
            self._popen = subprocess.Popen(
                command,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(lifeline,),
                cwd=folder,
                env=for_child(os.environ, limits.threads, limits.environment),
                start_new_session=True,
            )
            _kill_with_parent(lifeline, self._popen.pid)
        except OSError:
            os.close(self._lifeline)
            raise
        finally:
            os.close(lifeline)
        assert self._popen.stdin and self._popen.stdout and self._popen.stderr
        self._input, self._output, self._errors = (
            stream.fileno() for stream in (self._popen.stdin, self._popen.stdout, self._popen.stderr)
        )
        self._poll = select.poll()
        for descriptor in (self._input, self._output, self._errors):
            os.set_blocking(descriptor, False)
        for descriptor in (self._output, self._errors):
            self._poll.register(descriptor, select.POLLIN)
        self._watch = Watch(self._popen.pid)

    def ask(self, request: bytes, ends: Ends, timeout_s: float) -> LineReply:
        """Send a request and return the answer, or the failure, after which the process cannot be used."""
        self.settled = False
        self._send(request)
        self._watch.restart(timeout_s)
        lines: list[str] = []
        size = 0
        late: bool | None = None
        while True:
            while (line := self._line()) is not None:
                size += len(line) + 1
                try:
                    lines.append(line.decode())
                except UnicodeDecodeError:
                    return Garbled(f"it wrote a line that is no UTF-8: {_shown(line)}")
                if len(line) > self._limits.line_bytes or size > self._limits.answer_bytes:
                    break
                if ends(lines[-1]):
                    self.settled = True
                    return Answered(tuple(lines))
            if size > self._limits.answer_bytes:
                return Garbled(
                    f"it wrote more than {self._limits.answer_bytes} bytes and did not end its answer"
                )
            if max(len(self._incoming), len(line or b"")) > self._limits.line_bytes:
                return Garbled(f"it wrote a line of more than {self._limits.line_bytes} bytes")
            if late is not None:
                return TimedOut(timeout_s, doubtful=not late)
            if self._silent:
                return Crashed(self._epitaph())
            late = self._watch.late()
            self._hear(0.0 if late is not None else self._watch.wait_s)

    def in_step(self, ends: Ends) -> bool:
        """Drop unsolicited output of the process, and say whether it is ready for a request."""
        heard = 0
        while True:
            while (line := self._line()) is not None:
                heard += len(line) + 1
                if ends(line.decode(errors="replace")):
                    return False
            endless = max(heard, len(self._incoming)) > self._limits.answer_bytes
            if endless or self._silent or not self._exchange(0.0):
                return not (endless or self._silent or self._incoming or self._ended())

    def finish(self, farewell: str | None) -> None:
        """End the process: let it exit, then send SIGTERM, then kill it and its descendants."""
        if farewell is not None:
            self._send(f"{farewell}\n".encode())
        self._ends_within(self._limits.end_s, hang_up=True)
        self._signal(signal.SIGTERM)
        self._ends_within(self._limits.end_s)
        self.kill()

    def kill(self) -> None:
        """Kill the process and its descendants."""
        self._signal(signal.SIGKILL)
        lifeline, self._lifeline = self._lifeline, -1
        if lifeline >= 0:
            os.close(lifeline)
        self._popen.wait()
        for stream in (self._popen.stdin, self._popen.stdout, self._popen.stderr):
            if stream:
                stream.close()

    def _epitaph(self) -> str:
        """Kill the process, and return one line on how it had ended and its last output to stderr."""
        ended = self._ends_within(1.0)
        self._signal(signal.SIGKILL)
        status = self._popen.wait()
        for _ in range(_TAIL_READS):
            self._read(self._errors)
        how = ended_how(status) if ended else "it closed its output"
        said = " ".join(self._complaints.decode(errors="replace").split())
        return f"{how}; it printed: {said}" if said else how

    def _ends_within(self, seconds: float, hang_up: bool = False) -> bool:
        """Say whether the process ends in time, reading its output meanwhile.

        Args:
            seconds: Seconds to wait.
            hang_up: Whether to close its input once everything is sent.
        """
        deadline = time.monotonic() + seconds
        while not self._ended():
            if hang_up and not self._outgoing and self._popen.stdin and not self._popen.stdin.closed:
                self._popen.stdin.close()
            if time.monotonic() >= deadline:
                return False
            self._exchange(0.01)
            self._incoming.clear()
            if self._silent:
                time.sleep(0.01)
        return True

    def _ended(self) -> bool:
        """Say whether the process has ended, without reaping it, so that its group keeps its number."""
        if self._popen.returncode is not None:
            return True
        try:
            return psutil.Process(self._popen.pid).status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True

    def _signal(self, number: signal.Signals) -> None:
        # The leader is at least a zombie until it is reaped, so the number is not another group's.
        # macOS returns EPERM if only a zombie is left.
        if self._popen.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._popen.pid, number)

    def _line(self) -> bytes | None:
        """Take the next complete line from the data read; None if there is none."""
        end = self._incoming.find(b"\n", self._searched)
        if end < 0:
            self._searched = len(self._incoming)
            return None
        line = bytes(self._incoming[:end])
        del self._incoming[: end + 1]
        self._searched = 0
        return line.removesuffix(b"\r")

    def _hear(self, wait_s: float) -> None:
        """Read and write what is possible; a process that ended and left nothing to read is silent."""
        # Its pipe can outlive it in a descendant.
        if not self._exchange(wait_s) and self._ended() and not self._exchange(0.0):
            self._silent = True

    def _exchange(self, wait_s: float) -> bool:
        """Wait until data can be read or written, do so, and say whether anything was read."""
        heard = False
        for descriptor, _ in self._poll.poll(wait_s * 1000):
            if descriptor == self._input:
                self._flush()
            elif self._read(descriptor):
                heard = True
            else:
                self._poll.unregister(descriptor)
                self._silent = self._silent or descriptor == self._output
        return heard

    def _read(self, descriptor: int) -> bool:
        """Read some data from a pipe, and say whether there was any."""
        try:
            part = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return False
        if descriptor == self._output:
            self._incoming += part
        else:
            self._complaints += part
            del self._complaints[:-_TAIL_BYTES]
        return bool(part)

    def _send(self, data: bytes) -> None:
        if data:
            self._outgoing += data
            self._poll.register(self._input, select.POLLOUT)
            self._flush()

    def _flush(self) -> None:
        """Write as much as the pipe takes."""
        try:
            while self._outgoing:
                written = os.write(self._input, self._outgoing)
                del self._outgoing[:written]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._outgoing.clear()  # it died or does not read; its output shows which
        self._poll.unregister(self._input)


def _kill_with_parent(lifeline: int, group: int) -> None:
    """Let the kernel kill a process group when this process dies and its end of the pipe closes.

    The group holds the other end; the settings belong to that end, whichever process has it.
    """
    if sys.platform == "linux":
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -group)
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)


def _shown(line: bytes) -> str:
    return repr(line if len(line) <= _SHOWN else line[:_SHOWN] + b"...")
