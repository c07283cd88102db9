"""The archive of a file of torch.export: its allowed entries, and a checked copy for torch to load."""

import json
import re
import shutil
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from irgym.base.values import parse_json
from irgym.measure.pt2.payloads import checked_table
from irgym.measure.pt2.program import checked_program
from irgym.measure.pt2.refusal import Refused

MODEL = "models/model.json"
"""The description of the program."""

TABLE = re.compile(r"data/(?:weights|constants)/model_\w+_config\.json")
"""Tables of weights and of constants."""

PAYLOAD = re.compile(r"data/(?:weights|constants|sample_inputs)/(?:model\.pt|weight_\d+|tensor_\d+)")
"""Tensors: raw bytes, or files of `torch.save`, which torch reads in its weights-only mode."""

PLAIN = re.compile(r"archive_format|archive_version|version|byteorder|\.data/\w+|extra/[\w.\-/]+")
"""Entries that are read as text."""

COMPILED = "data/aotinductor/"
"""Folder of compiled libraries, which torch would load."""

OLD_MODEL = "serialized_exported_program.json"
"""The description of the program in files of torch up to 2.6."""

OLD = re.compile(r"version|serialized_(?:state_dict|constants|example_inputs)\.pt|extra_files/[\w.\-/]+")
"""The other entries of such files."""

LARGEST_TEXT = 1 << 28
"""Greatest size of a description or a table in bytes."""


@dataclass(frozen=True)
class Layout:
    """Entries that an archive may have.

    Attributes:
        folder: Folder of all entries, with its slash; empty if there is none.
        model: Name of the description of the program.
        copied: Patterns of the names of entries that are copied unchanged.
    """

    folder: str
    model: str
    copied: tuple[re.Pattern[str], ...]


def copy_checked(path: Path, copy: IO[bytes]) -> None:
    """Write a copy of an archive with its checked content only.

    Args:
        path: The archive.
        copy: An empty file.

    Raises:
        Refused: It is not an archive, or holds more than data and operators of torch.
        OSError: It cannot be read, or the copy cannot be written.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            sizes = _sizes(archive, path.stat().st_size)
            layout = _layout(sizes)
            with zipfile.ZipFile(copy, "w") as written:
                for name in sizes:
                    _copy_entry(archive, name, layout, sizes, written)
    except (zipfile.BadZipFile, NotImplementedError, EOFError, ValueError) as error:
        raise Refused("is no archive of torch.export, or was cut off") from error


def _sizes(archive: zipfile.ZipFile, whole: int) -> Mapping[str, int]:
    """Return the sizes of an archive's entries, by name."""
    sizes: dict[str, int] = {}
    for entry in archive.infolist():
        if entry.filename in sizes:
            raise Refused(f"holds two entries named {entry.filename!r}")
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
            raise Refused(f"has a compressed entry ({entry.filename!r}), which torch.export never writes")
        sizes[entry.filename] = entry.file_size
    if sum(sizes.values()) > whole:
        raise Refused("says that it holds more than the file has bytes")
    return sizes


def _layout(sizes: Mapping[str, int]) -> Layout:
    if OLD_MODEL in sizes:
        return Layout("", OLD_MODEL, (OLD,))
    folder = next(iter(sizes), "").partition("/")[0] + "/"
    others = [name for name in sizes if not name.startswith(folder)]
    if others or folder + MODEL not in sizes:
        raise Refused(f"has no entry {MODEL}")
    return Layout(folder, MODEL, (PAYLOAD, PLAIN))


def _copy_entry(
    archive: zipfile.ZipFile, name: str, layout: Layout, sizes: Mapping[str, int], written: zipfile.ZipFile
) -> None:
    """Copy an entry of an archive: unchanged, its checked content, or not at all."""
    inner = name.removeprefix(layout.folder)
    if inner.startswith(COMPILED):
        raise Refused("holds compiled libraries, which would run as they are loaded")
    if inner == layout.model:
        written.writestr(name, json.dumps(checked_program(_parsed(archive, name))))
    elif layout.folder and TABLE.fullmatch(inner):
        folder = name.rpartition("/")[0]
        held = {entry.rpartition("/")[2]: size for entry, size in sizes.items() if entry.startswith(folder)}
        written.writestr(name, json.dumps(checked_table(_parsed(archive, name), held)))
    elif any(pattern.fullmatch(inner) for pattern in layout.copied):
        with archive.open(name) as source, written.open(name, "w", force_zip64=True) as target:
            shutil.copyfileobj(source, target, 1 << 20)


def _parsed(archive: zipfile.ZipFile, name: str) -> Any:
    """Return the content of a JSON entry."""
    if archive.getinfo(name).file_size > LARGEST_TEXT:
        raise Refused(f"has an entry {name!r} of more than {LARGEST_TEXT >> 20} MiB of text")
    try:
        return parse_json(archive.read(name).decode())
    except ValueError as error:
        raise Refused(f"has an entry {name!r} that is no JSON") from error
