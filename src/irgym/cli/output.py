"""Output that commands share: tables for people, JSON for programs."""

import re
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console, RenderableType
from rich.status import Status
from rich.text import Text

from irgym.base.interrupts import cursor_shown_when_terminated
from irgym.base.json_files import write_json

PROGRESS = "#"
"""Prefix of lines that report progress."""

EVERY_S = 5.0
"""Seconds after which a line is printed again when only numbers in it have changed."""


class Output:
    """Where commands print what they found; as wide as its text needs when that is not a terminal.

    Text is shown as it is. Nothing in it is markup, as names of programs and paths may look like it; styles
    are named beside the text, or in a `rich.text.Text`. No command has another console.
    """

    def __init__(self) -> None:
        wide = None if Console().is_terminal else 160
        self._console = Console(markup=False, emoji=False, highlight=False, width=wide)

    def print(self, what: RenderableType, style: str | None = None) -> None:
        """Print text, or a table or another thing that rich can show; long lines of text stay whole."""
        self._console.print(what, style=style, soft_wrap=isinstance(what, str | Text))

    @contextmanager
    def status(self, text: str) -> Generator["StatusLine"]:
        """Show what is being done, while it is done; in lines of standard error where that is no terminal."""
        if not self._console.is_terminal:
            yield PlainLines()
            return
        with cursor_shown_when_terminated(), self._console.status(Text(text)) as status:
            yield SpinningLine(status)


class StatusLine(Protocol):
    """Progress of a command."""

    def update(self, text: str) -> None:
        """Show another text."""
        ...


@dataclass(frozen=True)
class SpinningLine:
    """Progress in a line that changes."""

    _status: Status

    def update(self, text: str) -> None:
        """Show another text in place of the one before."""
        self._status.update(Text(text))


class PlainLines:
    """Progress line after line: a new activity at once, else every few seconds."""

    def __init__(self) -> None:
        self._words = ""
        self._printed = 0.0

    def update(self, text: str) -> None:
        """Print a text, unless only numbers in it have changed since a moment ago."""
        text = text.replace("\n", "\\n")
        words, now = re.sub(r"[\d.]+", "", text), time.monotonic()
        if words != self._words or now - self._printed >= EVERY_S:
            print(f"{PROGRESS} {text}", file=sys.stderr, flush=True)
            self._words, self._printed = words, now


def console() -> Output:
    """Return where results are printed."""
    return Output()


def write_json_to(path: Path | None, data: Any) -> None:
    """Write data as JSON where an option says, if it says so.

    Raises:
        StorageError: The file cannot be written.
    """
    if path is not None:
        write_json(path, data)
