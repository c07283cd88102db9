"""The URIs of programs: a function of the project's own kernels, or of a file."""

from pathlib import Path

from irgym.core.errors import ProgramError
from irgym.core.uri import Family, Files, Grammar, ProgramUri, is_file

C = ".c"
"""The suffix of C."""

SUFFIXES = (C, ".ll", ".bc")
"""Suffixes of the files that are read: C, and LLVM's IR as text or as bitcode."""

KERNELS = Path(__file__).parent.parent / "kernels"
"""The folder of the project's own C."""

FAMILIES = {"kernels": Family("kernels", "functions of the project's own C", body="sorting.c#quick_sort")}
"""The families of programs."""

GRAMMAR = Grammar(
    "cse",
    FAMILIES,
    Files(SUFFIXES, fragments=True),
    "cse:FILE#FUNCTION or cse://kernels/sorting.c#quick_sort",
)
"""The URIs of programs."""


def parse_uri(uri: str) -> ProgramUri:
    """Return the program of a URI.

    Raises:
        ProgramError: It is malformed, or names no file that is there.
    """
    program = GRAMMAR.parse(uri)
    if program.path is None and not is_file(file_of(program)):
        known = ", ".join(sorted(file.name for file in KERNELS.glob(f"*{C}")))
        raise ProgramError(f"{uri!r} names none of the kernels: choose one of {known}")
    return program


def file_of(program: ProgramUri) -> Path:
    """Return the file that a program is in."""
    return program.path or KERNELS / Path(program.body.partition("#")[0]).name


def function_of(program: ProgramUri) -> str:
    """Return the name of the function, without sigil; empty where none is named."""
    return program.fragment or program.body.partition("#")[2]
