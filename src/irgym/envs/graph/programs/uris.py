"""URIs of the `graph` environment: families of exported models, and ONNX files."""

from pathlib import Path

from irgym.base.errors import ProgramError
from irgym.core.uri import Files, Grammar, ProgramUri
from irgym.envs.graph.programs.families import FAMILIES

SUFFIX = ".onnx"
"""Suffix of ONNX files."""

FIXED = "fixed"
"""The binding that fixes all open dimensions, in a model that has none of this name."""

GRAMMAR = Grammar(
    "graph",
    FAMILIES,
    Files((SUFFIX,), bindings=True, ranges=True, inputs=True),
    "graph://FAMILY?name=value&... or graph:FILE.onnx?dimension=number&...",
)
"""The grammar of the URIs."""


def parse_program(uri: str) -> ProgramUri:
    """Return the program of a URI.

    Args:
        uri: `graph://bert?layers=2`, or `graph:model.onnx?batch=1&sequence=128`, where the options tell the
            sizes of open dimensions, by their names in the file, at which it is measured; or several with
            weights, `?sizes=batch=1:0.7&sizes=batch=8:0.3`. With `fixed=1`, the model is for one size alone.
            `range.ids=0:30522` gives the half-open range of the integer input `ids`, and
            `inputs=samples.npz` a file or folder of samples of the inputs.

    Raises:
        ProgramError: The URI is malformed, has an unknown family or option, sizes that do not fit together,
            or names a file that does not exist or is of another kind.
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
"""Suffixes of packed or converted ONNX files, and a remedy for each."""


def refuse_other_forms(path: Path) -> None:
    """Refuse a packed or converted ONNX file.

    Raises:
        ProgramError: The file is one.
    """
    for suffix, said in OTHER_FORMS.items():
        if path.name.lower().endswith(suffix):
            raise ProgramError(f"{path.name} {said}")
