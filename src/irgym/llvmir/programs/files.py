"""The source files of programs, with compiler options."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from irgym.base.errors import ProgramError
from irgym.core.catalogue import begins, mentions
from irgym.core.uri import ProgramUri
from irgym.llvmir.programs.clang import searched
from irgym.llvmir.programs.kernels import KERNELS
from irgym.llvmir.programs.packages.fetching import unpacked
from irgym.llvmir.programs.packages.pinned import packages

C = ".c"
"""The suffix of C."""

SUFFIXES = (C, ".ll", ".bc")
"""Suffixes of program files: C, and LLVM's IR as text or bitcode."""

BITCODE = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")
"""Magic numbers of bitcode, bare and in a wrapper."""

SHOWN = 12
"""Number of names that a message lists."""


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
        return is_source(self.path)


def is_source(file: Path) -> bool:
    """Say whether a file is C, by its name."""
    return file.suffix.lower() == C


def file_of(program: ProgramUri) -> SourceFile:
    """Return the source file of a program: the user's, a kernel's, or a package's, fetched if needed.

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


def is_program(file: Path) -> bool:
    """Say whether a file is C, or IR by its content."""
    suffix = file.suffix.lower()
    return (
        is_source(file)
        or (suffix == ".ll" and mentions(file, "define "))
        or (suffix == ".bc" and begins(file, *BITCODE))
    )


def member_of(program: ProgramUri) -> str:
    """Return the file of a program within its family; empty for the user's files."""
    return program.body.partition("#")[0]


def function_of(program: ProgramUri) -> str:
    """Return the name of the function, without sigil; empty if the URI names none."""
    return program.fragment or program.body.partition("#")[2]


@cache
def kernels() -> tuple[str, ...]:
    """Return the file names of irgym's kernels."""
    return tuple(sorted(file.name for file in KERNELS.glob(f"*{C}")))


def ir_text(content: bytes, file: Path) -> str:
    """Return the text of a file of IR.

    Raises:
        ProgramError: It is no text.
    """
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ProgramError(f"{file} is neither LLVM's IR as text nor bitcode: name a file that is") from error


def listed(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others, for a message."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
