"""URIs of programs: modules of irgym's kernels, of packages, of csmith, or of files; or a function of one."""

from irgym.base.errors import ProgramError
from irgym.core.uri import LARGEST, Family, Files, Grammar, Option, ProgramUri
from irgym.envs.llvm.programs.modules import modules
from irgym.llvmir.programs.files import SUFFIXES, kernels, listed, member_of
from irgym.llvmir.programs.packages.pinned import packages_of

KERNELS_FAMILY, PACKAGES_FAMILY, CSMITH_FAMILY = "kernels", "packages", "csmith"

FAMILIES = {
    KERNELS_FAMILY: Family(KERNELS_FAMILY, "irgym's kernels in C", body="sorting.c"),
    PACKAGES_FAMILY: Family(
        PACKAGES_FAMILY, "C of source distributions, fetched on first use", body="lz4/lz4libs/lz4.c"
    ),
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
    Files(SUFFIXES, fragments=True),
    "llvm:FILE, llvm:FILE#FUNCTION, llvm://kernels/sorting.c, llvm://packages/lz4/lz4libs/lz4.c or "
    "llvm://csmith?seed=1",
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
    if program.family == PACKAGES_FAMILY and member not in modules():
        name = member.partition("/")[0]
        known = sorted(file for file in modules() if file.startswith(f"{name}/"))
        known = known or sorted(packages_of("llvm"))
        raise ProgramError(f"{uri!r} names no file of the packages: choose one of {listed(known)}")
    return program


def family_of(program: ProgramUri) -> str:
    """Return what a program has in common with others: its package, its kernel's file, or csmith.

    Files of the user have none: the result is empty.
    """
    return member_of(program).partition("/")[0] or program.family
