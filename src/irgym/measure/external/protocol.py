"""Limits of a session with an external process, and the ways in which a request can end."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from irgym.measure.isolation.protocol import Crashed, TimedOut

Ends: TypeAlias = Callable[[str], bool]
"""Returns whether a line, without its line break, is the last one of an answer."""


@dataclass(frozen=True)
class LineLimits:
    """Limits of a session.

    Attributes:
        timeout_s: Time limit of a request in seconds, as `watch` counts them.
        start_s: Time limit of the greeting in seconds, if there is one.
        line_bytes: Greatest length of a line.
        answer_bytes: Greatest length of an answer, line breaks included.
        failures: Number of consecutive failures that are tolerated; one more is an error.
        end_s: Seconds that the process has to exit when told to, and again after SIGTERM.
        threads: Number of threads for numerical libraries in the process.
        environment: Environment variables in addition to the parent's.
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
        lines: The lines of the answer without line breaks, including the line that ends it.
    """

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Garbled:
    """The process wrote something that cannot be an answer.

    Attributes:
        detail: Description in one line.
    """

    detail: str


LineReply: TypeAlias = Answered | Garbled | Crashed | TimedOut
"""Outcome of a request."""


def told(reply: LineReply) -> str:
    """Return a description of how a request ended."""
    if isinstance(reply, Answered):
        return "it answered"
    if isinstance(reply, TimedOut):
        return f"it did not answer within {reply.seconds:g} s"
    return reply.detail
