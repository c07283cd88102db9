"""The source files of programs, with compiler options."""

from dataclasses import dataclass
from pathlib import Path

from irgym.core.uri import ProgramUri
from irgym.envs.cse.programs.uris import C, member_of
from irgym.llvmir.programs.clang import searched
from irgym.llvmir.programs.kernels import KERNELS
from irgym.llvmir.programs.packages.fetching import unpacked
from irgym.llvmir.programs.packages.pinned import packages


@dataclass(frozen=True)
class SourceFile:
    """A file of C, or of LLVM's IR.

    Attributes:
        path: Path of the file.
        options: Options of the C compiler: header folders and macros.
        pinned: Whether the file and its headers never change.
    """

    path: Path
    options: tuple[str, ...] = ()
    pinned: bool = False

    @property
    def compiled(self) -> bool:
        """Whether it is C."""
        return self.path.suffix.lower() == C


def file_of(program: ProgramUri) -> SourceFile:
    """Return the source file of a program, fetching its package if needed.

    Raises:
        StorageError: The package cannot be fetched.
    """
    if program.path is not None:
        return SourceFile(program.path, searched())
    name, _, rest = member_of(program).partition("/")
    if not rest:
        return SourceFile(KERNELS / name, pinned=True)
    folder = unpacked(packages()[name])
    return SourceFile(folder / rest, packages()[name].options(folder), pinned=True)
