"""What commands share: tables for people, JSON for programs."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.status import Status
from rich.text import Text

from irgym.core.json_files import write_json


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
        """Show what is being done, while it is done and where that is a terminal."""
        with self._console.status(Text(text)) as status:
            yield StatusLine(status)


@dataclass(frozen=True)
class StatusLine:
    """What is being done."""

    _status: Status

    def update(self, text: str) -> None:
        """Show another text."""
        self._status.update(Text(text))


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
