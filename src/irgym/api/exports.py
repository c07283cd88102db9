"""Exports, checked before the work that leads to them."""

import re
from pathlib import Path

from irgym.api.requests import Measuring
from irgym.base.files import SMALL, check_writable
from irgym.core.environment import Environment
from irgym.core.task import form_of
from irgym.core.uri import is_file


def check_export_of(environment: Environment, uri: str, measuring: Measuring, path: Path | None) -> None:
    """Make sure that a program can be exported to a place, if one is given, before it is tuned.

    Raises:
        IrgymError: There is no such program, or the suffix names no form that it has.
        StorageError: The file cannot be written.
    """
    if path is not None:
        task = measuring.task(environment, uri)
        form_of(path, task.forms)
        check_writable(path, SMALL + _file_bytes(task.uri))


def _file_bytes(uri: str) -> int:
    """Return the size of a program's file; 0 for programs that are no files."""
    path = Path(re.split("[?#]", uri.partition(":")[2], maxsplit=1)[0])
    return path.stat().st_size if is_file(path) else 0
