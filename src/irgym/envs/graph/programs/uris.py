"""Programs of the `graph` environment, by URI: models of exporters, and files of ONNX."""

from irgym.core.uri import Files, Grammar, ProgramUri
from irgym.envs.graph.programs.families import FAMILIES

SUFFIX = ".onnx"
"""Suffix of the files that are read."""

GRAMMAR = Grammar(
    "graph",
    FAMILIES,
    Files((SUFFIX,), bindings=True),
    "graph://FAMILY?name=value&... or graph:FILE.onnx?dimension=number&...",
)
"""The URIs of programs."""


def parse_program(uri: str) -> ProgramUri:
    """Return the program of a URI.

    Args:
        uri: `graph://bert?layers=2`, or `graph:model.onnx?batch=1&sequence=128`, where the options bind the
            dimensions that the file leaves open, by their names in the file.

    Raises:
        ProgramError: It is malformed, has an unknown family or option, sizes that do not fit together, or
            names a file that is not there or of another kind.
    """
    return GRAMMAR.parse(uri)
