"""Programs of the `hlo` environment, by URI: models in JAX, and files."""

from irgym.core.uri import Files, Grammar, ProgramUri
from irgym.envs.hlo.programs.families import FAMILIES

STABLEHLO = (".mlir", ".stablehlo", ".mlirbc", ".bc")
"""Last suffixes of files of StableHLO, as text, bytecode or portable artifact."""

SUFFIXES = (".hlo", ".txt", ".pb", *STABLEHLO)
"""Last suffixes of program files: HLO text (two), HLO proto, StableHLO text or bytecode."""

GRAMMAR = Grammar("hlo", FAMILIES, Files(SUFFIXES), "hlo://FAMILY?name=value&... or hlo:FILE")
"""The URIs of programs."""


def parse_program(uri: str) -> ProgramUri:
    """Return the program of a URI.

    Args:
        uri: `hlo://gpt2?layers=1&mode=forward`, or `hlo:module.hlo.txt`.

    Raises:
        ProgramError: It is malformed, has an unknown family or option or incompatible sizes, or names a file
            that does not exist or is of an unknown kind.
    """
    return GRAMMAR.parse(uri)


def source_file(uri: str) -> str:
    """Return the path of the user's file that a URI names; empty if it names a model."""
    path = parse_program(uri).path
    return "" if path is None else str(path.resolve())
