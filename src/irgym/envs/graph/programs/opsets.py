"""Versions of ONNX's own operators: which are read, and older models as newer ones."""

# onnx leaves parts of its own types open.
# pyright: reportUnknownMemberType=false

import onnx
import onnx.inliner
import onnx.version_converter

from irgym.core.errors import ProgramError

OPSETS = range(13, 27)
"""Versions that are read as they are."""

OLDEST = 7
"""The oldest version that is read: the one from which on ONNX Runtime promises to run models."""

CONVERTED = 18
"""The version that older models are converted to."""

OWN = ("", "ai.onnx")
"""Names of the domain of ONNX's own operators."""


def converted(model: onnx.ModelProto, path: str) -> onnx.ModelProto:
    """Return a model of one of the versions that are read: ONNX's own converter rewrites older ones.

    Args:
        model: Its inputs have fixed shapes. It may be changed.
        path: What messages call it.

    Raises:
        ProgramError: Its version is too old or too new, or the converter refuses it.
    """
    version = next((entry.version for entry in model.opset_import if entry.domain in OWN), None)
    if version is None:
        model.opset_import.add(version=CONVERTED)  # of which it has no operators
        return model
    if version in OPSETS:
        return model
    if not OLDEST <= version < OPSETS.stop:
        raise ProgramError(
            f"{path} is of opset {version}, and those from {OLDEST} to {OPSETS[-1]} are read: "
            "export it with one of them"
        )
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    try:
        return onnx.version_converter.convert_version(model, CONVERTED)
    except (RuntimeError, ValueError, onnx.checker.ValidationError) as error:
        raise ProgramError(
            f"{path} is of opset {version}, and onnx cannot convert it ({first_line(error)}): "
            f"export it with opset {CONVERTED}"
        ) from error


def first_line(error: Exception) -> str:
    """Return the first line of an error that says something."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
