"""Places of a model's external weights, which must lie in its folder."""

# The types of onnx are incomplete.
# pyright: reportUnknownMemberType=false

from pathlib import Path
from typing import NamedTuple

from onnx import TensorProto
from onnx.external_data_helper import ExternalDataInfo

from irgym.base.errors import ProgramError
from irgym.core.uri import is_file
from irgym.envs.graph.programs.bounds import check_dims

LARGEST = (1 << 63) - 1
"""Largest offset in a file."""


class Place(NamedTuple):
    """The place of an external weight.

    Attributes:
        location: The file's name in the model.
        file: The file.
        offset: Where the weight begins, in bytes.
        length: Length in bytes; None if the model does not say.
    """

    location: str
    file: Path
    offset: int
    length: int | None


def place_of(tensor: TensorProto, folder: Path, name: str) -> Place:
    """Return the place of a weight, in a regular file within the model's folder.

    Args:
        tensor: The weight.
        folder: The folder, with links resolved.
        name: The model's name in messages.

    Raises:
        ProgramError: The file is missing or outside the folder, or the place is impossible.
    """
    check_dims(tensor, name)
    try:
        info = ExternalDataInfo(tensor)
    except ValueError as error:
        raise ProgramError(f"{name} has weights in no part of a file ({error}): save it again") from error
    plain = info.location.isprintable() and 0 < len(info.location) <= 200
    shown = info.location if plain else f"{info.location[:60]!r}"
    try:
        file = (folder / info.location).resolve()
    except (OSError, RuntimeError, ValueError):
        file = folder / " "  # a name that no file has: too long, with a NUL, or a link to itself
    if not file.is_relative_to(folder):
        raise ProgramError(
            f"{name} has weights in {shown}, outside its folder: save it again with them inside"
        )
    if not is_file(file):
        raise ProgramError(f"{name} has weights in {shown}, which does not exist: put it beside the model")
    if max(info.offset or 0, info.length or 0) > LARGEST:
        raise ProgramError(f"{name} has weights beyond the end of {shown}: save it again")
    return Place(info.location, file, info.offset or 0, info.length)
