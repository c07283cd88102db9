"""Digests of the files that a model consists of. Runs in a child process."""

from pathlib import Path
from typing import NamedTuple

from irgym.base.errors import explained
from irgym.envs.graph.ir.reading import content_of
from irgym.envs.graph.programs.files import read


class Files(NamedTuple):
    """The files of a model.

    Attributes:
        own: Digest of the model's main file.
        beside: Digests of the files with its weights, by path.
        size: Bytes of all of them.
    """

    own: str
    beside: dict[str, str]
    size: int


def files(path: Path) -> Files:
    """Return the digests of a model's files.

    Raises:
        ProgramError: The file is no model, or refers to weights outside its folder.
        StorageError: A file cannot be read.
    """
    beside = read(path)[1]
    with explained(f"cannot read the files of {path}", "check their permissions"):
        size = sum(file.stat().st_size for file in (path, *beside))
        return Files(content_of(path), {str(file): content_of(file) for file in beside}, size)
