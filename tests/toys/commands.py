"""What running a command came to."""

from collections.abc import Callable
from typing import NamedTuple


class Result(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


Command = Callable[..., Result]
