"""Runs of executables: on given arguments and input, in a new folder, under limits."""

import hashlib
import os
import resource
import shlex
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from threading import Timer
from typing import IO

from irgym.base.errors import IrgymError

LONGER = 5
"""Limit on the time of an optimised program, as a multiple of the original's."""

LEAST_S = 1.0
"""Least limit on a run, in seconds."""


class OtherEndError(IrgymError):
    """A run ended otherwise than the run before."""


@dataclass(frozen=True)
class Run:
    """How a whole program is run.

    Attributes:
        arguments: Its arguments.
        stdin: Content of its standard input.
    """

    arguments: tuple[str, ...] = ()
    stdin: bytes = field(default=b"", repr=False)

    @property
    def text(self) -> str:
        """A text that tells different runs apart."""
        return f"run {shlex.join(self.arguments)} < {hashlib.sha256(self.stdin).hexdigest()[:16]}"


@dataclass(frozen=True)
class Limits:
    """Limits of a run.

    Attributes:
        seconds: Greatest time.
        output_bytes: Greatest size of the output, and of each file that the program writes.
        memory_bytes: Greatest address space.
    """

    seconds: float = 10.0
    output_bytes: int = 1 << 24
    memory_bytes: int = 1 << 32


LIMITS = Limits()
"""Limits of the original program."""


@dataclass(frozen=True)
class Ending:
    """Output and end of a run.

    Attributes:
        output: What it wrote to standard output.
        status: Its exit status, negative for a signal; None if it took too long.
    """

    output: bytes
    status: int | None

    @property
    def text(self) -> str:
        """How it ended, in words."""
        if self.status is None or self.status == -signal.SIGXCPU:
            return "no end within the time limit"
        if self.status == -signal.SIGXFSZ:
            return "too much output"
        return f"signal {signal.Signals(-self.status).name}" if self.status < 0 else f"status {self.status}"

    @property
    def limited(self) -> bool:
        """Whether a limit stopped it."""
        return self.status is None or self.status in (-signal.SIGXCPU, -signal.SIGXFSZ)

    @property
    def killed(self) -> bool:
        """Whether a signal ended it, but none of a limit."""
        return self.status is not None and self.status < 0 and not self.limited


def ending(program: Path, run: Run, limits: Limits = LIMITS) -> Ending:
    """Run a program once, and return its output and end.

    Raises:
        OSError: It cannot be started.
    """
    with TemporaryDirectory(prefix="irgym-") as folder, TemporaryFile() as output, TemporaryFile() as given:
        given.write(run.stdin)
        given.seek(0)
        status = _status(_command(program, run), folder, given, output, limits)
        output.seek(0)
        return Ending(output.read(limits.output_bytes), status)


def repeated(program: Path, run: Run, status: int | None, limits: Limits = LIMITS) -> Callable[[int], None]:
    """Return a function that runs a program the given number of times, each in a new folder, without output.

    The function raises `OtherEndError` if a run has another exit status than the given one.
    """
    command = _command(program, run)

    def repeat(count: int) -> None:
        with TemporaryFile() as given:
            given.write(run.stdin)
            for _ in range(count):
                given.seek(0)
                with TemporaryDirectory(prefix="irgym-") as folder:
                    found = _status(command, folder, given, subprocess.DEVNULL, limits)
                if found != status:
                    end, first = Ending(b"", found).text, Ending(b"", status).text
                    raise OtherEndError(
                        f"a run ends with {end}, and another with {first}: choose other inputs"
                    )

    return repeat


def _command(program: Path, run: Run) -> list[str]:
    return [str(program.absolute()), *run.arguments]


def _status(
    command: list[str], folder: str, given: IO[bytes], output: IO[bytes] | int, limits: Limits
) -> int | None:
    """Run a program to its end and return its status, negative for a signal; None if it took too long.

    A thread kills it when it takes too long: waiting with a time limit would look for its end now and then.
    """
    process = subprocess.Popen(
        command,
        stdin=given,
        stdout=output,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env={"PATH": os.defpath, "LC_ALL": "C"},
        start_new_session=True,
    )
    late: list[bool] = []

    def end() -> None:
        late.append(True)
        _kill(process.pid)

    timer = Timer(limits.seconds, end)
    try:
        _limit(process.pid, limits)
        timer.start()
        process.wait()
    finally:
        timer.cancel()
        _kill(process.pid)
        process.wait()
    return None if late else process.returncode


def _kill(group: int) -> None:
    """End a program and what it started."""
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _limit(process: int, limits: Limits) -> None:
    """Set the limits of a process that has just begun; nothing is left to limit if it has ended already."""
    values = {
        resource.RLIMIT_FSIZE: limits.output_bytes,
        resource.RLIMIT_AS: limits.memory_bytes,
        resource.RLIMIT_CPU: int(limits.seconds) + 1,
        resource.RLIMIT_CORE: 0,
    }
    with suppress(ProcessLookupError):
        for kind, value in values.items():
            resource.prlimit(process, kind, (value, value))
