"""Where the weights of a model may be that are outside its own file."""

# onnx leaves parts of its own types open.
# pyright: reportUnknownMemberType=false

from pathlib import Path
from typing import NamedTuple

from onnx import TensorProto
from onnx.external_data_helper import ExternalDataInfo

from irgym.base.errors import ProgramError
from irgym.core.uri import is_file
from irgym.envs.graph.programs.bounds import check_dims

LARGEST = (1 << 63) - 1
"""Greatest place in a file."""


class Place(NamedTuple):
    """Where a weight is.

    Attributes:
        location: The file as the model names it.
        file: That file.
        offset: Where the weight begins, in bytes.
        length: Its bytes; None where the model does not say.
    """

    location: str
    file: Path
    offset: int
    length: int | None


def place_of(tensor: TensorProto, folder: Path, name: str) -> Place:
    """Return where a weight is, which must be a regular file within the model's folder.

    Args:
        tensor: The weight.
        folder: The folder, without links.
        name: What messages call the model.

    Raises:
        ProgramError: It is elsewhere or nowhere.
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
            f"{name} has weights in {shown}, outside its folder: save it anew with them inside"
        )
    if not is_file(file):
        raise ProgramError(f"{name} has weights in {shown}, which is not there: put it beside the model")
    if max(info.offset or 0, info.length or 0) > LARGEST:
        raise ProgramError(f"{name} has weights beyond the end of {shown}: save it again")
    return Place(info.location, file, info.offset or 0, info.length)
