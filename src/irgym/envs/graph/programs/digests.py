"""The files that a model consists of, and what stands for their contents. Runs in a child process."""

from pathlib import Path
from typing import NamedTuple

from irgym.base.errors import explained
from irgym.envs.graph.ir.reading import content_of
from irgym.envs.graph.programs.files import read


class Files(NamedTuple):
    """The files of a model.

    Attributes:
        own: Digest of the model's own file.
        beside: Digests of those that hold its weights, by path.
        size: Bytes of all of them.
    """

    own: str
    beside: dict[str, str]
    size: int


def files(path: Path) -> Files:
    """Return what stands for the files of a model.

    Raises:
        ProgramError: It is no model, or its weights are where they may not be.
        StorageError: A file cannot be read.
    """
    beside = read(path)[1]
    with explained(f"cannot read the files of {path}", "check their permissions"):
        size = sum(file.stat().st_size for file in (path, *beside))
        return Files(content_of(path), {str(file): content_of(file) for file in beside}, size)
