"""URIs of programs: modules of irgym's kernels, of packages, of csmith, or of files; or a function of one."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from irgym.base.errors import ProgramError
from irgym.base.reading import content_of_program
from irgym.core.program_files import files_matching, is_glob
from irgym.core.uri import LARGEST, Family, Files, Grammar, Option, ProgramUri, is_file
from irgym.envs.llvm.programs.modules import modules
from irgym.envs.llvm.programs.whole import whole_programs
from irgym.envs.llvm.whole.running import Run
from irgym.llvmir.programs.files import SUFFIXES, kernels, listed, member_of
from irgym.llvmir.programs.packages.pinned import packages_of

KERNELS_FAMILY, PACKAGES_FAMILY, CSMITH_FAMILY = "kernels", "packages", "csmith"

WHOLE_FAMILY = "programs"
"""The family of irgym's programs with a `main`."""

ARGUMENTS, STDIN, LINKED = "args", "stdin", "with"
"""Options of files: arguments of the program, a file with its input, files that are linked with it."""

LARGEST_INPUT = 1 << 26
"""Most bytes of a program's standard input."""

FAMILIES = {
    KERNELS_FAMILY: Family(KERNELS_FAMILY, "irgym's kernels in C", body="sorting.c"),
    PACKAGES_FAMILY: Family(
        PACKAGES_FAMILY, "C of source distributions, fetched on first use", body="lz4/lz4libs/lz4.c"
    ),
    WHOLE_FAMILY: Family(WHOLE_FAMILY, "irgym's programs in C with a main, to be timed", body="nbody.c"),
    CSMITH_FAMILY: Family(
        CSMITH_FAMILY,
        "whole programs that csmith generates, where it is installed",
        (Option("seed", 1, high=LARGEST, low=0),),
    ),
}
"""The families of programs."""

GRAMMAR = Grammar(
    "llvm",
    FAMILIES,
    Files(SUFFIXES, fragments=True, texts=(ARGUMENTS, STDIN, LINKED)),
    "llvm:FILE, llvm:FILE#FUNCTION, llvm:FILE?with=OTHER,...&args=WORDS&stdin=FILE, "
    "llvm://kernels/sorting.c, llvm://programs/nbody.c, llvm://packages/lz4/lz4libs/lz4.c or llvm://csmith?seed=1",
)
"""The URIs of programs."""


def parse_uri(uri: str) -> ProgramUri:
    """Return the program of a URI.

    Raises:
        ProgramError: It is malformed, or names no existing file.
    """
    program = GRAMMAR.parse(uri)
    member, mark, function = program.body.partition("#")
    if mark and not function:
        raise ProgramError(f"{uri!r} names no function: write one after #, or leave out #")
    if program.family == KERNELS_FAMILY and member not in kernels():
        raise ProgramError(f"{uri!r} names none of the kernels: choose one of {', '.join(kernels())}")
    if program.family == WHOLE_FAMILY and program.body not in whole_programs():
        raise ProgramError(f"{uri!r} names none of the programs: choose one of {', '.join(whole_programs())}")
    if program.family == PACKAGES_FAMILY and member not in modules():
        name = member.partition("/")[0]
        known = sorted(file for file in modules() if file.startswith(f"{name}/"))
        known = known or sorted(packages_of("llvm"))
        raise ProgramError(f"{uri!r} names no file of the packages: choose one of {listed(known)}")
    linked_files(program)
    run_of(program)
    return program


def linked_files(program: ProgramUri) -> Sequence[Path]:
    """Return the files that are linked with a program's file, in order.

    Raises:
        ProgramError: There is none of a name, or it is of another kind.
    """
    found: dict[Path, None] = {}
    for name in dict(program.texts).get(LINKED, "").split(","):
        if name:
            place = _place(program, name)
            matching = files_matching(str(place)) if is_glob(name) else [place]
            fitting = [file for file in matching if is_file(file) and file.suffix.lower() in SUFFIXES]
            if not fitting:
                kinds = ", ".join(f"*{suffix}" for suffix in SUFFIXES)
                raise ProgramError(
                    f"there is no file {place} to link with {program.path}: name one of {kinds}, relative to "
                    "the program's folder"
                )
            found |= dict.fromkeys(fitting)
    return [file for file in found if file != program.path]


def run_of(program: ProgramUri) -> Run:
    """Return the arguments and the input of a program.

    Raises:
        ProgramError: The arguments have unbalanced quotes, or the file with the input cannot be read.
    """
    texts = dict(program.texts)
    try:
        arguments = tuple(shlex.split(texts.get(ARGUMENTS, "")))
    except ValueError as error:
        raise ProgramError(f"{program.uri!r}: {ARGUMENTS} has an open quotation mark; close it") from error
    name = texts.get(STDIN, "")
    return Run(arguments, content_of_program(_place(program, name), LARGEST_INPUT) if name else b"")


def runs_always(program: ProgramUri) -> bool:
    """Say whether checks run a program under any objective: irgym's, csmith's, and where the URI says how."""
    names = dict(program.texts).keys()
    return program.family in (CSMITH_FAMILY, WHOLE_FAMILY) or ARGUMENTS in names or STDIN in names


def _place(program: ProgramUri, name: str) -> Path:
    """Return the path of a file that a program's URI names: relative to the folder of the program's file."""
    assert program.path is not None
    return program.path.parent / name


def family_of(program: ProgramUri) -> str:
    """Return what a program has in common with others: its package, its kernel's file, or csmith.

    Files of the user have none: the result is empty.
    """
    return member_of(program).partition("/")[0] or program.family
