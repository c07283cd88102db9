"""The weights of programs that were torch modules: values and names, which `from_torch` wrote beside them."""

from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from irgym.core.errors import StorageError
from irgym.envs.linalg.programs.uris import File, parse_uri


def weights_of(uri: str) -> dict[int, NDArray[Any]]:
    """Return the weights that `from_torch` wrote beside a program, by their places among the arguments.

    Raises:
        StorageError: They cannot be read.
    """
    return {int(name.removeprefix("arg")): value for name, value in _kept(uri).items() if name != "names"}


def names_of_weights(uri: str) -> list[str]:
    """Return the names in the module of the weights that are a program's first arguments; none for others.

    Raises:
        StorageError: They cannot be read.
    """
    origin = parse_uri(uri).origin
    if not isinstance(origin, File) or origin.function or not _archive(origin).exists():
        return []
    return list(map(str, _kept(uri).get("names", ())))


def _kept(uri: str) -> dict[str, NDArray[Any]]:
    """Return what `from_torch` wrote beside a program."""
    origin = parse_uri(uri).origin
    assert isinstance(origin, File)
    path = _archive(origin)
    try:
        with np.load(path) as archive:
            return dict(archive)
    except (OSError, ValueError, BadZipFile) as error:
        raise StorageError(f"{path} cannot be read ({error}): import the module again") from error


def _archive(origin: File) -> Path:
    return origin.path.with_suffix(".npz")
