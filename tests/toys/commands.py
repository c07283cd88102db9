"""Results of commands."""

from collections.abc import Callable
from typing import NamedTuple


def without_progress(err: str) -> str:
    """Text on stderr without the lines of progress."""
    return "".join(line for line in err.splitlines(keepends=True) if not line.startswith("# "))


class Result(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


Command = Callable[..., Result]
