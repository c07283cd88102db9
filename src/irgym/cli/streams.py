"""Standard streams that are full, closed, or read by nobody any more."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO, cast


class OutputError(Exception):
    """Standard output or standard error takes no more; the cause says why."""


@contextmanager
def watched_output() -> Generator[None]:
    """Tell errors of standard output and standard error from those of other files; closed ones drop all.

    Raises:
        OutputError: What was printed cannot be written.
    """
    _occupy_closed_descriptors()
    sys.stdout = sys.stdout or _null()
    sys.stderr = sys.stderr or _null()
    for stream in (sys.stdout, sys.stderr):
        _take_any_text(stream)
    out, err = _Watched(sys.stdout), _Watched(sys.stderr)
    with redirect_stdout(cast(TextIO, out)), redirect_stderr(cast(TextIO, err)):
        yield
        out.flush()


def drop_output() -> None:
    """Let what standard output still holds go nowhere, so that Python does not complain when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _null() -> TextIO:
    return Path(os.devnull).open("w")


def _occupy_closed_descriptors() -> None:
    """Open the null device as those of the first three files that are closed.

    The next file to be opened, such as the cost cache, would otherwise be taken for the output.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the least number that is free


def _take_any_text(stream: TextIO) -> None:
    """Let a stream print names of files that are no Unicode as they are, and escapes for letters it lacks."""
    if isinstance(stream, TextIOWrapper):
        unicode = stream.encoding.lower().startswith("utf")
        stream.reconfigure(errors="surrogateescape" if unicode else "backslashreplace")


class _Watched:
    """A text stream that names itself when it fails."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as error:
            raise OutputError from error

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            raise OutputError from error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
