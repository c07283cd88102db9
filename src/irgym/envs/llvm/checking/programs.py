"""Comparison of two executables: their output, exit status and signals, under limits."""

import os
import resource
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

from irgym.core.cost import Validation

TOLERANCE = "output and exit status, byte for byte"
"""The tolerance of comparisons, for messages."""

_SHOWN = 40
_LONGER = 5


@dataclass(frozen=True)
class Limits:
    """Limits of a run.

    Attributes:
        seconds: Greatest time of a run of the original; the other program may take five times as long.
        output_bytes: Greatest size of the output, and of each file that the program writes.
        memory_bytes: Greatest address space.
    """

    seconds: float = 10.0
    output_bytes: int = 1 << 24
    memory_bytes: int = 1 << 32


@dataclass(frozen=True)
class Ending:
    """Output and end of a run.

    Attributes:
        output: What it wrote to standard output.
        ended: How it ended: exit status, signal or limit.
        limited: Whether a limit stopped it.
    """

    output: bytes
    ended: str
    limited: bool = False


def compared_programs(
    original: Path,
    optimised: Path,
    arguments: Sequence[str] = (),
    stdin: bytes = b"",
    limits: Limits | None = None,
) -> Validation:
    """Run two programs on the same input, and compare what they do.

    Each runs in a new folder, which is removed afterwards. The original runs twice: where it
    does not repeat itself, or a limit stops it, nothing can be compared.

    Args:
        original: The original program.
        optimised: The optimised program.
        arguments: Arguments of both.
        stdin: Content of their standard input.
        limits: Limits of each run.

    Raises:
        OSError: A program cannot be started.
    """
    limits = limits or Limits()
    wanted = _run(original, arguments, stdin, limits, limits.seconds)
    again = _run(original, arguments, stdin, limits, limits.seconds)
    if wanted.limited or again.limited:
        return Validation(True, 0.0, TOLERANCE, 0, blind=f"the original program is stopped: {wanted.ended}")
    if wanted != again:
        return Validation(
            True, 0.0, TOLERANCE, 0, blind="the original program's output differs from run to run"
        )
    found = _run(optimised, arguments, stdin, limits, _LONGER * limits.seconds)
    detail = ""
    if found.ended != wanted.ended:
        detail = f"the program ends with {found.ended}, not with {wanted.ended}"
    elif found.output != wanted.output:
        place = next(
            (
                n
                for n, pair in enumerate(zip(wanted.output, found.output, strict=False))
                if pair[0] != pair[1]
            ),
            min(len(wanted.output), len(found.output)),
        )
        shown = found.output[place : place + _SHOWN], wanted.output[place : place + _SHOWN]
        detail = f"the output differs from byte {place} on: {shown[0]!r}, not {shown[1]!r}"
    return Validation(not detail, 0.0, TOLERANCE, 1, detail)


def _run(program: Path, arguments: Sequence[str], stdin: bytes, limits: Limits, seconds: float) -> Ending:
    with TemporaryDirectory(prefix="irgym-") as folder, TemporaryFile() as output, TemporaryFile() as given:
        given.write(stdin)
        given.seek(0)
        process = subprocess.Popen(
            [program.absolute(), *arguments],
            stdin=given,
            stdout=output,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env={"PATH": os.defpath, "LC_ALL": "C"},
            start_new_session=True,
        )
        _limit(process.pid, limits, seconds)
        late = False
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            late = True
        finally:
            _kill(process)
        output.seek(0)
        content = output.read(limits.output_bytes)
    if late or process.returncode == -signal.SIGXCPU:
        return Ending(content, f"no end within {seconds:g} s", limited=True)
    if process.returncode == -signal.SIGXFSZ:
        return Ending(content, "too much output", limited=True)
    if process.returncode < 0:
        return Ending(content, f"signal {signal.Signals(-process.returncode).name}")
    return Ending(content, f"status {process.returncode}")


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """End a program and what it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _limit(process: int, limits: Limits, seconds: float) -> None:
    """Set the limits of a process that has just begun; nothing is left to limit if it has ended already."""
    values = {
        resource.RLIMIT_FSIZE: limits.output_bytes,
        resource.RLIMIT_AS: limits.memory_bytes,
        resource.RLIMIT_CPU: int(seconds) + 1,
        resource.RLIMIT_CORE: 0,
    }
    with suppress(ProcessLookupError):
        for kind, value in values.items():
            resource.prlimit(process, kind, (value, value))
