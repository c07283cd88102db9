"""Limits of a session with an external process, and the ways in which a request can end."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from irgym.measure.isolation.protocol import Crashed, TimedOut

Ends: TypeAlias = Callable[[str], bool]
"""Says whether a line, without its line break, is the last one of an answer."""


@dataclass(frozen=True)
class LineLimits:
    """What a session bears with.

    Attributes:
        timeout_s: Seconds that a request may take, as `watch` counts them.
        start_s: Seconds until the greeting, where there is one.
        line_bytes: Greatest length of a line.
        answer_bytes: Greatest length of an answer, line breaks included.
        failures: Failures in a row after which one more is an error.
        end_s: Seconds that the process has to end by itself when it is told to, and again after SIGTERM.
        threads: Threads that numerical libraries in the process may use.
        environment: Environment variables beyond those of the parent.
    """

    timeout_s: float = 60.0
    start_s: float = 60.0
    line_bytes: int = 1 << 20
    answer_bytes: int = 1 << 24
    failures: int = 3
    end_s: float = 1.0
    threads: int = 1
    environment: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)


@dataclass(frozen=True)
class Answered:
    """The process answered.

    Attributes:
        lines: The lines of the answer without their line breaks; the one that ends it is the last.
    """

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Garbled:
    """The process wrote what cannot be an answer.

    Attributes:
        detail: What, in one line.
    """

    detail: str


LineReply: TypeAlias = Answered | Garbled | Crashed | TimedOut
"""How a request ended."""


def told(reply: LineReply) -> str:
    """Return in words how a request ended."""
    if isinstance(reply, Answered):
        return "it answered"
    if isinstance(reply, TimedOut):
        return f"it did not answer within {reply.seconds:g} s"
    return reply.detail
