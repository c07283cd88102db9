"""URIs of programs: functions of irgym's kernels, of a package, or of a file."""

from irgym.base.errors import ProgramError
from irgym.core.uri import Family, Files, Grammar, ProgramUri
from irgym.envs.cse.programs.functions import functions
from irgym.llvmir.programs.files import SUFFIXES, kernels, listed, member_of
from irgym.llvmir.programs.packages.pinned import packages_of

KERNELS_FAMILY, PACKAGES_FAMILY = "kernels", "packages"

FAMILIES = {
    KERNELS_FAMILY: Family(KERNELS_FAMILY, "functions of irgym's kernels in C", body="sorting.c#quick_sort"),
    PACKAGES_FAMILY: Family(
        PACKAGES_FAMILY,
        "functions of source distributions, fetched on first use",
        body="lz4/lz4libs/lz4.c#LZ4_decompress_generic",
    ),
}
"""The families of programs."""

GRAMMAR = Grammar(
    "cse",
    FAMILIES,
    Files(SUFFIXES, fragments=True),
    "cse:FILE#FUNCTION, cse://kernels/sorting.c#quick_sort or cse://packages/lz4/lz4libs/lz4.c#LZ4_decompress_generic",
)
"""The URIs of programs."""


def parse_uri(uri: str) -> ProgramUri:
    """Return the program of a URI.

    Raises:
        ProgramError: It is malformed, or names no existing file.
    """
    program = GRAMMAR.parse(uri)
    member = member_of(program)
    if program.family == KERNELS_FAMILY and member not in kernels():
        raise ProgramError(f"{uri!r} names none of the kernels: choose one of {', '.join(kernels())}")
    if program.family == PACKAGES_FAMILY and member not in functions():
        name = member.partition("/")[0]
        known = sorted(file for file in functions() if file.startswith(f"{name}/")) or sorted(
            packages_of("cse")
        )
        raise ProgramError(f"{uri!r} names no file of the packages: choose one of {listed(known)}")
    return program
