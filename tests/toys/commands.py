"""What running a command came to."""

from collections.abc import Callable
from typing import NamedTuple


def without_progress(err: str) -> str:
    """What went to stderr but for the lines that tell what is being done."""
    return "".join(line for line in err.splitlines(keepends=True) if not line.startswith("# "))


class Result(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


Command = Callable[..., Result]
