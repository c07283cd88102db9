"""Inputs and sizes that a user has for a program in a file: named in its URI, inputs also in a file."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast

from irgym.base.errors import IrgymError
from irgym.core.queries import with_inputs, with_sizes
from irgym.measure.machine import cache_dir

Inputs: TypeAlias = str | os.PathLike[str] | Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""A file or folder with inputs, arrays by the names of inputs, or a sequence of such samples."""

Sizes: TypeAlias = Mapping[str, int] | Sequence[Mapping[str, int] | tuple[Mapping[str, int], float]]
"""Sizes of open dimensions by name; or several such, each perhaps in a pair with its weight."""

FOLDER = "inputs"
"""Folder, in the user's cache folder, of inputs that were given as arrays."""


def named_with(program: object, inputs: Inputs | None, sizes: Sizes | None = None) -> object:
    """Return a program's URI with its inputs and sizes in it; the program itself if there are none.

    Arrays are written to the user's cache folder, so that the URI names them in later processes too.

    Args:
        program: The URI or path of a file, or an object.
        inputs: The inputs.
        sizes: The sizes that it is measured at.

    Raises:
        IrgymError: The program is an object, the inputs are neither a path nor arrays by name, or the sizes
            make no sense.
        StorageError: The cache folder cannot be written.
    """
    if sizes is not None:
        program = _sized(program, sizes)
    if inputs is None:
        return program
    if not isinstance(program, str | os.PathLike):
        raise IrgymError(
            f"inputs= belongs to a program in a file, and {type(program).__name__} is an object: give its "
            "inputs after it, or as example_inputs"
        )
    uri = os.fspath(cast("str | os.PathLike[str]", program))
    return with_inputs(uri, _place(inputs))


def _sized(program: object, sizes: Sizes) -> str:
    """Return the URI of a program with sizes in it."""
    if not isinstance(program, str | os.PathLike):
        raise IrgymError(
            f"sizes= belongs to a program in a file, and {type(program).__name__} is an object: give "
            "example_inputs of several sizes"
        )
    listed = cast("Sequence[object]", sizes) if isinstance(sizes, list | tuple) else [sizes]
    texts = [_size_text(given) for given in listed]
    if not texts:
        raise IrgymError("there are no sizes in the list: give at least one, or leave sizes out")
    return with_sizes(os.fspath(cast("str | os.PathLike[str]", program)), texts)


def _size_text(given: object) -> str:
    """Return sizes and their weight as on the command line."""
    pair = cast("tuple[object, ...]", given) if isinstance(given, tuple) else (given, None)
    sizes, weight = pair if len(pair) == 2 else (None, None)
    named: Mapping[object, object] = (
        cast("Mapping[object, object]", sizes) if isinstance(sizes, Mapping) else {}
    )
    if not named or not all(
        isinstance(name, str) and isinstance(size, int) and not isinstance(size, bool)
        for name, size in named.items()
    ):
        raise IrgymError(
            f"{given!r} are no sizes: give whole numbers by name, as in {{'batch': 8}}, or a pair of them "
            "and their weight, as in ({'batch': 8}, 0.3)"
        )
    words = ",".join(f"{name}={size}" for name, size in named.items())
    return words if weight is None else f"{words}:{weight}"


def _place(inputs: Inputs) -> Path:
    """Return the file or folder of inputs."""
    if isinstance(inputs, str | os.PathLike):
        return Path(inputs)
    samples = _listed(inputs)
    if not samples:
        raise IrgymError("there are no samples among the inputs: give at least one, or leave inputs out")
    from irgym.measure.samples import checked, stored  # late: it needs numpy

    named = [
        checked(sample, f"sample {place}" if len(samples) > 1 else "inputs")
        for place, sample in enumerate(samples, 1)
    ]
    return stored(named, cache_dir() / FOLDER)


def _listed(inputs: object) -> list[Mapping[Any, Any]]:
    """Return samples as a list."""
    kind = type(inputs).__name__
    listed: Any = [inputs] if isinstance(inputs, Mapping) else inputs
    samples: list[Mapping[Any, Any]] = []
    for sample in cast("Sequence[object]", listed if isinstance(listed, list | tuple) else [None]):
        if not isinstance(sample, Mapping) or not sample:
            raise IrgymError(
                f"inputs cannot be of type {kind}: give arrays by name, as in {{'x': array}}, a list of such "
                "samples, or the path of an .npz file"
            )
        samples.append(cast("Mapping[Any, Any]", sample))
    return samples
