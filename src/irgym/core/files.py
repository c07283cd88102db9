"""Files that appear whole or not at all, whatever happens while they are written."""

import os
import secrets
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from irgym.core.errors import StorageError


def write_file(path: Path, content: bytes) -> None:
    """Write a file; one that is there is replaced at once, by the complete new one.

    Raises:
        StorageError: It cannot be written.
    """
    write_files({path: content})


def write_files(files: Mapping[Path, bytes]) -> None:
    """Write files beside their destinations, and move them there once all are complete.

    Raises:
        StorageError: One cannot be written.
    """
    complete: dict[Path, Path] = {}
    path = next(iter(files))
    try:
        with ExitStack() as cleanup:
            for path, content in files.items():
                part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
                with part.open("xb") as file:
                    cleanup.callback(part.unlink, missing_ok=True)
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                complete[path] = part
            for path, part in complete.items():
                part.replace(path)
    except OSError as error:
        raise StorageError(
            f"cannot write {path} ({error.strerror}): choose an existing folder that is writable and has room"
        ) from error


def make_folder(folder: Path) -> None:
    """Make a folder for what irgym keeps, and those above it, where they are missing.

    Raises:
        StorageError: It cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"cannot make {folder} ({error.strerror}): free some space or set IRGYM_CACHE_DIR"
        ) from error
