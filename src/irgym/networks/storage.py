"""Files of tensors and plain values: written whole or not at all, and checked when read."""

import io
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import torch

from irgym.base.files import write_file
from irgym.policies.files import checked


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
    return checked(path, kind, _read)


def _read(path: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pickles that are not as torch writes them, which end in an error
        content = torch.load(path, map_location="cpu", weights_only=True)
    _check_sizes(content)
    return content


def _check_sizes(value: Any) -> None:
    """Make sure that no tensor repeats what its storage holds once: a copy of it might fill the memory.

    Raises:
        ValueError: One does.
    """
    if isinstance(value, torch.Tensor):
        held = value.untyped_storage().nbytes()
        if value.numel() * value.element_size() > held:
            raise ValueError(f"{value.numel()} elements in a storage of {held} bytes")
    elif isinstance(value, dict):
        for part in cast(dict[Any, Any], value).values():
            _check_sizes(part)
    elif isinstance(value, list | tuple):
        for part in cast(Sequence[Any], value):
            _check_sizes(part)
