"""Files of tensors and plain values: written whole or not at all, and checked when read."""

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any, cast

import torch

from irgym.core.errors import StorageError
from irgym.core.files import write_file


def write(path: Path, content: dict[str, Any], previous: Path | None = None) -> None:
    """Write `content` so that a crash at any moment leaves the old file or the new one, both whole.

    Args:
        path: File to write.
        content: Tensors, numbers, texts, and lists and dictionaries of them.
        previous: Where the file that is replaced is kept.

    Raises:
        StorageError: The disk is full or the file cannot be written; what was there before stays.
    """
    buffer = io.BytesIO()
    torch.save(content, buffer)
    write_file(path, buffer.getbuffer(), previous)


def read(path: Path, kind: str) -> dict[str, Any]:
    """Return what `write` wrote. No code in the file is run.

    Args:
        path: File to read.
        kind: What the file should be, for messages; its content's `kind` must equal it.

    Raises:
        StorageError: There is no such file, it is damaged, or it is something else.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
        if damaged is not None:
            raise StorageError(f"{path} is damaged: restore it from a copy or train again")
        content: Any = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise StorageError(f"there is no {kind} at {path}: check the path or train one first") from None
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error
    except (zipfile.BadZipFile, pickle.UnpicklingError, RuntimeError, EOFError, ValueError) as error:
        raise StorageError(
            f"{path} is no {kind}, or it is truncated: restore it from a copy or train again"
        ) from error
    if not isinstance(content, dict) or cast(dict[str, Any], content).get("kind") != kind:
        raise StorageError(f"{path} is not an irgym {kind}: choose a file that irgym wrote")
    return cast(dict[str, Any], content)
