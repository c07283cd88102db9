"""Calls in forks of this process, which may crash or not end."""

import faulthandler
import os
import pickle
import signal
import sys
from collections.abc import Callable, Sequence
from typing import IO, Any, NoReturn, TypeVar

T = TypeVar("T")

PATIENCE = 10
"""How many times as long as on the processor a call may take in all, if it waits for something."""

_CLOCKS = (signal.SIGPROF, signal.SIGALRM)


def in_process(run: Callable[[], T], seconds: float) -> T | str:
    """Call a function in a fork of this process, and return its result; or in words, how the fork ended."""
    [found] = in_turn(lambda _, __: run(), [0], seconds)
    return found


def in_turn(
    run: Callable[[int, Callable[[T], NoReturn]], T],
    calls: Sequence[int],
    seconds: float,
    forget: bool = True,
) -> list[T | str]:
    """Call a function with some numbers in forks of this process.

    Args:
        run: The function. It takes a number, and what ends its process at once with a result.
        calls: The numbers.
        seconds: Seconds of the processor that each may take.
        forget: Whether each has a process of its own. Otherwise one process goes on as long as it lives.

    Returns:
        The results; or in words, how a process ended that was to find one.
    """
    found: list[T | str] = []
    while len(found) < len(calls):
        begin = len(found)
        there, end = _forked(run, calls[begin : begin + 1] if forget else calls[begin:], seconds)
        found += there
        if end:
            found.append(end)
    return found


def endless(seconds: float) -> str:
    """Return what is said of a call that did not end."""
    return f"it did not end within {seconds:g} s"


def _forked(
    run: Callable[[int, Callable[[T], NoReturn]], T], calls: Sequence[int], seconds: float
) -> tuple[list[T], str]:
    """Return the results that a fork finds; and how it ended if it was to find more."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        _run_and_leave(run, calls, seconds, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        found = list(_results(pipe))
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if -code in _CLOCKS:
        return found, endless(seconds)
    if code or not found:
        return found, f"it ended the process ({signal.Signals(-code).name if code < 0 else f'status {code}'})"
    return found, ""


def _results(pipe: IO[bytes]) -> list[Any]:
    found: list[Any] = []
    while True:
        try:
            found.append(pickle.load(pipe))
        except EOFError:
            return found


def _run_and_leave(
    run: Callable[[int, Callable[[T], NoReturn]], T], calls: Sequence[int], seconds: float, writing: int
) -> NoReturn:
    def write(result: T) -> None:
        content = memoryview(pickle.dumps(result))
        while content:
            content = content[os.write(writing, content) :]

    def leave(result: T) -> NoReturn:
        write(result)
        os._exit(0)

    try:
        faulthandler.disable()
        sys.unraisablehook = lambda _: os._exit(1)  # what a callback raises
        for clock in _CLOCKS:
            signal.signal(clock, signal.SIG_DFL)
        _close_others(writing)
        for call in calls:
            signal.setitimer(signal.ITIMER_PROF, seconds)
            signal.setitimer(signal.ITIMER_REAL, seconds * PATIENCE)
            write(run(call, leave))
        os._exit(0)
    finally:
        os._exit(1)


def _close_others(kept: int) -> None:
    """Close all files but one: what runs may write into any whose number it makes up."""
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)
    os.closerange(3, kept)
    os.closerange(kept + 1, os.sysconf("SC_OPEN_MAX"))
