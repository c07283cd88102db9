"""Samples of a program's inputs, as users have them: .npz and .npy files, and folders of them.

A sample holds an array for each input, by name. The files are not trusted: Python objects are never
unpickled, and no array may claim more than its file has.
"""

import io
import math
import tokenize
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from irgym.base.errors import ProgramError, explained
from irgym.base.files import make_folder, write_files
from irgym.base.reading import check_size
from irgym.measure.store import content_digest, digest

Array = NDArray[Any]

NPZ = ".npz"
"""Suffix of files with an array for each input."""

NPY = ".npy"
"""Suffix of files with a single array."""

UNNAMED = ""
"""Name of the array in an .npy file: it belongs to the only input."""

LARGEST = 4 << 30
"""Most bytes of all samples."""

MOST = 1000
"""Greatest number of samples."""

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""Time of all entries in packed files, so that equal arrays make equal files."""


@dataclass(frozen=True)
class Sample:
    """Inputs of one run.

    Attributes:
        name: Name of its file, for messages.
        arrays: The inputs by name; that of an .npy file is `UNNAMED`.
    """

    name: str
    arrays: Mapping[str, Array]


class Given(NamedTuple):
    """The samples that a user gives.

    Attributes:
        path: The file or folder with them.
        digest: Digest of their content.
    """

    path: Path
    digest: str

    def read(self) -> list[Sample]:
        """Return the samples.

        Raises:
            ProgramError: As for `samples_at`; or the content is another by now.
        """
        if digest_at(self.path) != self.digest:
            raise ProgramError(f"{self.path} changed while it was read: run the command again")
        return samples_at(self.path)


def files_at(path: Path) -> list[Path]:
    """Return the files with samples at a path: itself, or those in a folder, in order of their names.

    Raises:
        ProgramError: There are none, or too many, or the path cannot be read.
    """
    with explained(f"cannot read {path}", "check the path and its permissions", ProgramError):
        if not path.is_dir():
            return [path]
        found = sorted(
            file
            for file in path.iterdir()
            if file.suffix.lower() in (NPZ, NPY) and not file.name.startswith(".")
        )
    if not found:
        raise ProgramError(f"the folder {path} has no {NPZ} or {NPY} files: put samples of the inputs there")
    if len(found) > MOST:
        raise ProgramError(f"the folder {path} has {len(found):,} samples, and at most {MOST:,} are read")
    return found


def size_at(path: Path) -> int:
    """Return the bytes of the samples at a path.

    Raises:
        ProgramError: As for `files_at`; or they are too large.
    """
    size = sum(check_size(file) for file in files_at(path))
    if size > LARGEST:
        raise _too_large(path)
    return size


def digest_at(path: Path) -> str:
    """Return a digest of the samples at a path.

    Raises:
        ProgramError: As for `size_at`.
    """
    size_at(path)
    with explained(f"cannot read {path}", "check the path and its permissions", ProgramError):
        return digest(*(f"{file.suffix} {content_digest(file.read_bytes())}" for file in files_at(path)))


def samples_at(path: Path) -> list[Sample]:
    """Return the samples at a path.

    Raises:
        ProgramError: A file is none, is damaged, or holds something else than arrays of numbers.
    """
    size_at(path)
    with explained(f"cannot read {path}", "check the path and its permissions", ProgramError):
        found = [_read(file) for file in files_at(path)]
    if sum(array.nbytes for sample in found for array in sample.arrays.values()) > LARGEST:
        raise _too_large(path)
    return found


def packed(arrays: Mapping[str, Array]) -> bytes:
    """Return the content of an .npz file."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name in sorted(arrays):
            entry = io.BytesIO()
            np.lib.format.write_array(entry, np.asarray(arrays[name], order="C"), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}{NPY}", _EPOCH), entry.getvalue())
    return content.getvalue()


def _read(file: Path) -> Sample:
    """Return the sample in a file."""
    with file.open("rb") as opened:
        start = opened.read(6)
        opened.seek(0)
        if start == np.lib.format.MAGIC_PREFIX:
            return Sample(file.name, {UNNAMED: _array(opened, file.stat().st_size, f"{file}")})
        if not start.startswith(b"PK"):
            raise ProgramError(
                f"{file} is no {NPZ} or {NPY} file: write one, as in numpy.savez({f'inputs{NPZ}'!r}, x=x)"
            )
        try:
            return Sample(file.name, _archive(opened, file))
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
            raise _damaged(f"{file}") from error


def _archive(opened: IO[bytes], file: Path) -> dict[str, Array]:
    """Return the arrays in an .npz file, by name."""
    arrays: dict[str, Array] = {}
    with zipfile.ZipFile(opened) as archive:
        entries = archive.infolist()
        if sum(entry.file_size for entry in entries) > LARGEST:
            raise _too_large(file)
        for entry in entries:
            name = entry.filename.removesuffix(NPY)
            if name == entry.filename:
                raise ProgramError(
                    f"{file} holds {_shown(entry.filename)}, which is no array: write it by numpy.savez"
                )
            if name in arrays:
                raise ProgramError(f"{file} holds {_shown(name)} twice: write it again by numpy.savez")
            with archive.open(entry) as content:
                arrays[name] = _array(content, entry.file_size, f"{_shown(name)} in {file}")
    if not arrays:
        raise ProgramError(f"{file} holds no arrays: write one for each input, by numpy.savez")
    return arrays


def _array(content: IO[bytes], size: int, what: str) -> Array:
    """Return the array in an .npy file of a known size."""
    try:
        shape, by_columns, dtype = _header(content)
    except (
        ValueError,
        SyntaxError,
        tokenize.TokenError,
    ) as error:  # numpy reads headers as Python's literals
        raise _damaged(what) from error
    if dtype.hasobject:
        raise ProgramError(f"{what} holds Python objects, which are not unpickled: save an array of numbers")
    if dtype.kind not in "biufc":
        raise ProgramError(f"{what} holds {dtype}: save an array of numbers or truth values")
    length = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or length > size:
        raise _damaged(what)
    data = content.read(length)
    if len(data) != length:
        raise _damaged(what)
    array = np.frombuffer(data, dtype).reshape(shape, order="F" if by_columns else "C")
    return np.asarray(array, dtype.newbyteorder("="), order="C")


def _header(content: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, order and element type of an array.

    Raises:
        ValueError: The header is malformed.
    """
    version = np.lib.format.read_magic(content)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(content)
    if version == (2, 0):
        return np.lib.format.read_array_header_2_0(content)
    raise ValueError(f"version {version}")  # later ones only differ in the names of fields


def _damaged(what: str) -> ProgramError:
    return ProgramError(f"{what} is damaged or was cut off: write it again by numpy.savez")


def _too_large(path: Path) -> ProgramError:
    return ProgramError(f"{path} has more than {LARGEST >> 30} GiB of samples: give fewer")


def _shown(name: str) -> str:
    """Return a name from a file, as it can be printed."""
    return name if name.isprintable() and len(name) <= 60 else repr(name[:60])


def checked(arrays: Mapping[Any, Any], name: str) -> dict[str, Array]:
    """Return inputs given in Python as arrays, by name.

    Args:
        arrays: Arrays, or what numpy makes arrays of, by input.
        name: Name of the sample in messages.

    Raises:
        ProgramError: A name is no text, or a value is no array of numbers.
    """
    found: dict[str, Array] = {}
    for key, value in arrays.items():
        if not isinstance(key, str):
            raise ProgramError(f"{name}: {key!r} is no name of an input: give arrays by name")
        try:
            found[key] = np.asarray(value)
        except (TypeError, ValueError, RuntimeError) as error:
            raise ProgramError(f"{name}: {key} is no array ({error}): give a numpy array") from error
        if found[key].dtype.kind not in "biufc":
            raise ProgramError(f"{name}: {key} holds {found[key].dtype}: give an array of numbers")
    return found


def stored(samples: Sequence[Mapping[str, Array]], folder: Path) -> Path:
    """Write samples into a folder that is named by their content; return it.

    Raises:
        StorageError: It cannot be written.
    """
    contents = [packed(sample) for sample in samples]
    place = folder / digest(*contents)
    files = {place / f"{number:04d}{NPZ}": content for number, content in enumerate(contents)}
    if not all(file.is_file() for file in files):
        make_folder(place)
        write_files(files)
    return place
