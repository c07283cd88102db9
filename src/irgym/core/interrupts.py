"""An interrupt while the command line is still being imported: one line instead of a traceback."""

import os
import signal
import sys
import threading
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
    """Let interrupts be exceptions again, as they are in every Python program."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(number: int, frame: FrameType | None) -> None:
    del number, frame
    os.write(2, b"irgym: interrupted\n")
    os._exit(INTERRUPTED)
