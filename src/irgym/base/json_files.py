"""Files of JSON: written whole or not at all, and read with one sentence on what is wrong with them."""

import json
import stat
from pathlib import Path
from typing import Any, cast

from irgym.base.errors import StorageError
from irgym.base.files import write_file
from irgym.base.values import parse_json


def write_json(path: Path, data: Any) -> None:
    """Write data as JSON, whole or not at all.

    Raises:
        StorageError: The file cannot be written.
    """
    write_file(path, (json.dumps(data, indent=2) + "\n").encode())


def read_json(path: Path) -> Any | None:
    """Return what a JSON file holds, None where there is no file.

    Raises:
        StorageError: It cannot be read, or it is damaged.
    """
    text = _read(path)
    if text is None:
        return None
    try:
        content = parse_json(text)
        if content is None:
            raise ValueError("it holds nothing")
    except ValueError as error:
        raise StorageError(f"{path} is damaged ({error}): remove it or make it again") from error
    return content


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a file that has one a line; none where there is no file.

    Every whole line ends with a line break: what follows the last one was cut off, and is left out.

    Raises:
        StorageError: It cannot be read, or it is damaged.
    """
    lines = (_read(path) or "").split("\n")
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(lines[:-1], start=1):
        try:
            row: Any = parse_json(line)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            raise StorageError(f"{path} is damaged at line {number}: remove that line")
        rows.append(cast(dict[str, Any], row))
    return rows


def _read(path: Path) -> str | None:
    """Return the text of a regular file, None where there is nothing; others could be read without end."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise StorageError(f"{path} is no regular file: remove it")
        return path.read_text()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError as error:
        raise StorageError(f"{path} is damaged ({error.reason}): remove it or make it again") from error
    except OSError as error:
        raise StorageError(f"{path} cannot be read ({error.strerror}): check its permissions") from error
