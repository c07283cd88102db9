"""A hostile file: the function that makes it, and the command that opens it."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

TUNE = ("--evaluations", "2", "--seed", "0")
"""Options of `irgym tune` that keep a run short if a file opens after all."""


@dataclass(frozen=True)
class Opening:
    """A command that opens a file.

    Attributes:
        command: The program and its arguments.
        environment: Environment variables in addition to this process's.
        refused: Whether the command has to end with exit code 2; otherwise it may succeed too.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    refused: bool = False


Maker = Callable[[Path, str], Opening]
"""Makes a file in an empty folder, and says how to open it.

The text is the payload, a shell command that must never run.
"""


def irgym(*arguments: object, refused: bool = False) -> Opening:
    """Return an opening by the command line."""
    return Opening((sys.executable, "-m", "irgym", *map(str, arguments)), refused=refused)


def tune(program: object, *options: str, refused: bool = False) -> Opening:
    """Return an opening by `irgym tune`."""
    return irgym("tune", program, *TUNE, *options, refused=refused)


def python(lines: Sequence[str], *arguments: object) -> Opening:
    """Return an opening by Python code; errors of the user end it as on the command line."""
    body = "\n".join(f"    {line}" for line in lines)
    script = (
        "import sys\nfrom irgym.base.errors import IrgymError\ntry:\n"
        f"{body}\nexcept IrgymError as error:\n"
        "    print(f'irgym: {error}', file=sys.stderr)\n    sys.exit(2)\n"
    )
    return Opening((sys.executable, "-c", script, *map(str, arguments)))
