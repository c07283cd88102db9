"""The `irgym` command."""

import gc
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass
from typing import Any, NoReturn

from irgym.base.errors import IrgymError, StorageError
from irgym.base.files import check_distinct, check_writable
from irgym.base.garbage import collect_seldom
from irgym.base.interrupts import (
    INTERRUPTED,
    leave_silently_when_interrupted,
    raise_when_interrupted,
)
from irgym.cli.commands import parsed
from irgym.cli.streams import OutputError, drop_output, watched_output
from irgym.cli.words import sentence

_OUTPUTS = ("json", "csv", "export", "report", "out", "trace")
"""Options of commands that name a file to write."""


def main(arguments: list[str] | None = None) -> None:
    """Run a command; exit with 2 and one sentence where the input is bad, with 130 when interrupted."""
    try:
        with watched_output():
            _run(sys.argv[1:] if arguments is None else arguments)
    except IrgymError as error:
        _end(sentence(error), 2)
    except KeyboardInterrupt:
        leave_silently_when_interrupted()
        _end("interrupted", INTERRUPTED)
    except MemoryError:
        _end("memory ran out: free some, raise the limit (ulimit -v), or choose a smaller program", 2)
    except (OutputError, BrokenPipeError) as error:
        drop_output()
        if isinstance(error.__cause__ or error, BrokenPipeError):
            # Whoever read our output has gone, as in `irgym programs loops | head`: nothing is left to say.
            sys.exit(1)
        _end(f"the output cannot be written ({error.__cause__}): free some space, or send it elsewhere", 2)
    finally:
        if arguments is None:
            # As it ends, Python would look for garbage in all that there is, for an eighth of a second.
            gc.freeze()


def _run(words: list[str]) -> None:
    collect_seldom()
    command = parsed(words)
    raise_when_interrupted()  # not before: an exception may get lost in a library that is being imported
    try:
        _check_outputs(command)
        command.run()
    except FileNotFoundError as error:
        if not str(error.strerror).startswith("No usable temporary directory"):
            raise
        raise StorageError(
            "there is no usable temporary folder: set TMPDIR to a folder that is writable and has room"
        ) from error


def _check_outputs(command: Any) -> None:
    """Make sure, before any work is done, that the files that options name can be written.

    Raises:
        StorageError: One cannot, or two options name one file.
    """
    given = {name: path for name, path in _options(command) if name in _OUTPUTS and path is not None}
    check_distinct({f"--{name}": path for name, path in given.items()})
    for name in ("json", "csv"):
        if name in given:
            check_writable(given[name])


def _options(command: Any) -> Iterator[tuple[str, Any]]:
    """Yield the options of a command, those of the requests in it too."""
    for option in fields(command):
        name, value = option.name, getattr(command, option.name)
        if is_dataclass(value):
            yield from _options(value)
        else:
            yield name, value


def _end(text: str, code: int) -> NoReturn:
    """Exit with a line on stderr."""
    with suppress(OSError):  # nothing can be said where stderr is full, too
        print(f"irgym: {text}", file=sys.stderr)
    sys.exit(code)
