"""Signals that end a command: one line instead of a traceback, and a terminal whose cursor shows."""

import os
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

INTERRUPTED = 130
"""Exit code of an interrupted command."""


CHILD = "irgym.measure.isolation.worker"
"""The module that isolated processes run."""


def started_as_command() -> bool:
    """Say whether this process was started as `irgym` or `python -m irgym`, rather than importing it."""
    words = sys.orig_argv
    if sys.argv[:1] == ["-m"]:  # Python has not found the module to run yet
        return _module() == "irgym"
    return bool(sys.argv) and Path(sys.argv[0]).name == "irgym" and sys.argv[0] in words


def started_as_child() -> bool:
    """Say whether this process is an isolated one, which a process of irgym started."""
    return sys.argv[:1] == ["-m"] and _module() == CHILD


def _module() -> str:
    """Return the module that Python was told to run, empty for none."""
    words = sys.orig_argv
    return "".join(words[words.index("-m") + 1 :][:1])


def leave_when_interrupted() -> None:
    """Let an interrupt end this process at once, until `raise_when_interrupted`: nothing has begun yet."""
    untouched = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if untouched and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _leave)


def raise_when_interrupted() -> None:
    """Raise `KeyboardInterrupt` on the first interrupt; end the process at once on the second.

    An exception during clean-up, or in a library's exit functions, would only be a traceback. Files are
    written whole and child processes die with their parent, so ending at once is safe.
    """
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, _raise_once)


def leave_silently_when_interrupted() -> None:
    """End the process without a word on any further interrupt: the command has reported the first one."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, _leave_silently)


@contextmanager
def cursor_shown_when_terminated() -> Generator[None]:
    """Show the terminal's cursor before SIGTERM ends the process, while a progress display hides it."""
    untouched = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if not untouched or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _raise_once(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGINT, _leave)
    signal.default_int_handler(number, frame)


def _leave(number: int, frame: FrameType | None) -> None:
    os.write(2, b"irgym: interrupted\n")
    _leave_silently(number, frame)


def _leave_silently(number: int, frame: FrameType | None) -> None:
    del number, frame
    _show_cursor()
    os._exit(INTERRUPTED)


def _terminate(number: int, frame: FrameType | None) -> None:
    del frame
    _show_cursor()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _show_cursor() -> None:
    if os.isatty(1):
        os.write(1, b"\x1b[?25h")
