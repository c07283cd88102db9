"""Programs of the `graph` environment, by URI: models of exporters, and files of ONNX."""

from pathlib import Path

from irgym.base.errors import ProgramError
from irgym.core.uri import Files, Grammar, ProgramUri
from irgym.envs.graph.programs.families import FAMILIES

SUFFIX = ".onnx"
"""Suffix of the files that are read."""

GRAMMAR = Grammar(
    "graph",
    FAMILIES,
    Files((SUFFIX,), bindings=True, ranges=True),
    "graph://FAMILY?name=value&... or graph:FILE.onnx?dimension=number&...",
)
"""The URIs of programs."""


def parse_program(uri: str) -> ProgramUri:
    """Return the program of a URI.

    Args:
        uri: `graph://bert?layers=2`, or `graph:model.onnx?batch=1&sequence=128`, where the options bind the
            dimensions that the file leaves open, by their names in the file. `range.ids=0:30522` says that
            the input `ids` holds whole numbers from 0 on, below 30522.

    Raises:
        ProgramError: It is malformed, has an unknown family or option, sizes that do not fit together, or
            names a file that is not there or of another kind.
    """
    refuse_other_forms(Path(uri.partition("?")[0]))
    return GRAMMAR.parse(uri)


OTHER_FORMS = {
    ".ort": "is of ONNX Runtime's own format: give the ONNX file that it was made from",
    f"{SUFFIX}.gz": "is packed by gzip: unpack it",
    f"{SUFFIX}.zip": "is an archive: unpack it",
    f"{SUFFIX}.data": "holds the weights of a model: give the ONNX file beside it",
    f"{SUFFIX}_data": "holds the weights of a model: give the ONNX file beside it",
}
"""Suffixes of files that ONNX files are packed in or become, and what to do about each."""


def refuse_other_forms(path: Path) -> None:
    """Make sure that a file is none that an ONNX file is packed in or becomes.

    Raises:
        ProgramError: It is.
    """
    for suffix, said in OTHER_FORMS.items():
        if path.name.lower().endswith(suffix):
            raise ProgramError(f"{path.name} {said}")
