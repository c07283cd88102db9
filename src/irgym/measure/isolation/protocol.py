"""Messages between a parent and its isolated child: limits, replies, and frames on a pipe."""

import os
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, TypeAlias, cast

from irgym.base.errors import IrgymError
from irgym.core.cost import Call

GIB = 1 << 30


@dataclass(frozen=True)
class Limits:
    """Limits of a candidate.

    Attributes:
        timeout_s: Time limit of a call in seconds. Waiting and imports do not count, nor does time in which
            the process was stopped or others had the processor, see `watch`.
        memory_bytes: Private memory that the process may take, in addition to that after its imports.
        file_bytes: Greatest size of a file that it may write, including its output.
        core: Timing core; None where processes cannot be pinned.
        shared_core: Whether other workers time on that core too. The process is then pinned to it only while
            timing, and otherwise for its whole life.
        threads: Number of threads of a candidate; further threads get the cores before the timing core.
        environment: Environment variables in addition to the parent's.
    """

    timeout_s: float = 10.0
    memory_bytes: int = 4 * GIB
    file_bytes: int = 1 * GIB
    core: int | None = None
    shared_core: bool = False
    threads: int = 1
    environment: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)


@dataclass(frozen=True)
class Returned:
    """The function returned.

    Attributes:
        value: The returned value.
    """

    value: Any


@dataclass(frozen=True)
class Raised:
    """The function raised an exception.

    Attributes:
        message: The exception in one line: its type and text.
        traceback: The traceback, as Python prints it.
        user_error: The exception if it is an error of the user.
    """

    message: str
    traceback: str
    user_error: IrgymError | None = None


@dataclass(frozen=True)
class Crashed:
    """The process died.

    Attributes:
        detail: How it died, and its last output.
        doubtful: Whether something other than the call may have caused it, twice.
    """

    detail: str
    doubtful: bool = False


@dataclass(frozen=True)
class TimedOut:
    """The call took too long and its process was killed.

    Attributes:
        seconds: The limit.
        doubtful: Whether it was not computing all the time, twice.
    """

    seconds: float
    doubtful: bool = False


@dataclass(frozen=True)
class OutOfMemory:
    """The call exceeded its memory limit.

    Attributes:
        detail: The refused allocation, or how the process died.
        doubtful: Whether something other than the call may have caused it, twice.
    """

    detail: str
    doubtful: bool = False


Reply: TypeAlias = Returned | Raised | Crashed | TimedOut | OutOfMemory
"""Outcome of a call."""


def resolve(call: Call) -> Callable[..., Any]:
    """Import the function that a call names.

    Raises:
        ValueError: The name is not of the form `package.module:function`.
        ImportError: There is no such module.
        AttributeError: The module has no such function.
    """
    module, colon, name = call.function.partition(":")
    if not colon or not module or not name:
        raise ValueError(f"{call.function!r} does not name a function: write package.module:function")
    return cast(Callable[..., Any], getattr(import_module(module), name))


# Kinds of messages from the child.
RUNNING = b"R"  # the clock of the current call runs from now on
WAITING = b"W"  # the clock is stopped: the child starts up, imports, or waits for the lock that follows
TOLD = b"T"  # a line of text on how the current call gets on
RETURNED = b"V"  # pickled value
RAISED = b"E"  # pickled Raised
NO_MEMORY = b"M"  # text

KINDS = frozenset((RUNNING, WAITING, TOLD, RETURNED, RAISED, NO_MEMORY))

END = b"\n"
"""Ends the name of the function in a call; its pickled arguments follow."""

# From the parent: length, payload. From the child: kind, length, payload.
REQUEST = struct.Struct("<Q")
ANSWER = struct.Struct("<cQ")


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of `data` to a blocking pipe."""
    written = os.write(descriptor, data)
    while written < len(data):
        written += os.write(descriptor, memoryview(data)[written:])
