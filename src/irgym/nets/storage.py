"""Files of tensors and plain values: written whole or not at all, and checked when read."""

import io
from pathlib import Path
from typing import Any

import torch

from irgym.acting.files import checked
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
    return checked(path, kind, lambda path: torch.load(path, map_location="cpu", weights_only=True))
