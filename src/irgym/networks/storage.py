"""Files of tensors and plain values: written whole or not at all, and checked when read."""

import io
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from irgym.base.files import write_file
from irgym.networks.transfer import moved
from irgym.policies.files import checked


def write(path: Path, content: dict[str, Any], previous: Path | None = None) -> None:
    """Write `content` so that a crash at any moment leaves the old file or the new one, both whole.

    Args:
        path: File to write.
        content: Tensors, numbers, texts, and lists and dictionaries of them. Tensors of other devices are
            written as those of the CPU.
        previous: Where the file that is replaced is kept.

    Raises:
        StorageError: The disk is full or the file cannot be written; what was there before stays.
    """
    buffer = io.BytesIO()
    torch.save(moved(content, torch.device("cpu")), buffer)
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


def difference(first: Any, second: Any, place: str = "the whole") -> str:
    """Return the first place where two contents of files differ, such as `rng[state]`; empty if none does.

    Args:
        first: Tensors, arrays, plain values, and lists and dictionaries of them.
        second: The same.
        place: Name of the place that they are from.
    """
    if isinstance(first, dict) and isinstance(second, dict):
        ours, theirs = cast(dict[Any, Any], first), cast(dict[Any, Any], second)
        if ours.keys() != theirs.keys():
            return place
        parts = ((ours[name], theirs[name], f"{place}[{name}]") for name in ours)
        return next(filter(None, (difference(*part) for part in parts)), "")
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        ours, theirs = cast(Sequence[Any], first), cast(Sequence[Any], second)
        if len(ours) != len(theirs):
            return place
        pairs = enumerate(zip(ours, theirs, strict=True))
        return next(filter(None, (difference(*pair, f"{place}[{number}]") for number, pair in pairs)), "")
    if isinstance(first, torch.Tensor) and isinstance(second, torch.Tensor):
        return "" if first.dtype == second.dtype and torch.equal(first, second) else place
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return "" if np.array_equal(cast(Any, first), cast(Any, second)) else place
    same = type(cast(object, first)) is type(cast(object, second))
    return "" if same and first == second else place


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
