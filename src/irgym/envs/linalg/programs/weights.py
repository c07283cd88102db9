"""Weights of programs imported from torch: an archive beside the program, with values and names."""

from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from typing import Any, TypeVar
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from irgym.base.errors import StorageError
from irgym.envs.linalg.programs.uris import TORCH, File, parse_uri

ARCHIVE = ".npz"
"""Suffix of the archive."""

NAMES = "names"

_T = TypeVar("_T")


def archived(values: Mapping[int, NDArray[Any]], names: Sequence[str]) -> bytes:
    """Return the archive of a program's weights.

    Args:
        values: Values of arguments, by their places.
        names: Names of the first arguments in the module.
    """
    archive = BytesIO()
    arrays: dict[str, NDArray[Any]] = {f"arg{place}": value for place, value in values.items()}
    arrays[NAMES] = np.array(names, dtype=np.str_)
    np.savez(archive, allow_pickle=False, **arrays)
    return archive.getvalue()


def weights_of(uri: str) -> dict[int, NDArray[Any]]:
    """Return the weights that `from_torch` wrote beside a program, by their places among the arguments.

    Raises:
        StorageError: They cannot be read.
    """
    origin = parse_uri(uri).origin
    assert isinstance(origin, File)
    return _read(
        origin,
        lambda archive: {
            int(name.removeprefix("arg")): value for name, value in archive.items() if name != NAMES
        },
    )


def names_of_weights(uri: str) -> list[str]:
    """Return the module's names of the weights that a program takes first; none for other programs.

    Raises:
        StorageError: They cannot be read.
    """
    origin = parse_uri(uri).origin
    if not isinstance(origin, File) or origin.function or not origin.path.with_suffix(TORCH).exists():
        return []  # an archive of that name may be the user's
    return _read(origin, lambda archive: list(map(str, archive[NAMES])))


def _read(origin: File, take: Callable[[Mapping[str, NDArray[Any]]], _T]) -> _T:
    """Apply `take` to the archive beside a program; only the arrays that it accesses are read."""
    path = origin.path.with_suffix(ARCHIVE)
    try:
        with np.load(path) as archive:
            return take(archive)
    except (OSError, KeyError, ValueError, TypeError, EOFError, MemoryError, BadZipFile) as error:
        raise StorageError(f"{path} cannot be read ({error}): import the module again") from error
