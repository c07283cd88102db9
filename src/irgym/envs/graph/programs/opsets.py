"""Versions of ONNX's own operators: models of old versions rewritten in terms of a newer one.

onnx has a version converter too. It is not used: it keeps the attributes of operators whose meaning changed.
"""

# onnx leaves parts of its own types open.
# pyright: reportUnknownMemberType=false

import onnx
import onnx.inliner

from irgym.core.errors import ProgramError
from irgym.envs.graph.programs.upgrading import UPGRADED, Upgrade

SAME = 13
"""The oldest version that is read as it is."""

OLDEST = 7
"""The oldest version that is read: the one from which on ONNX Runtime promises to run models."""

OWN = ("", "ai.onnx")
"""Names of the domain of ONNX's own operators."""


def version_of(model: onnx.ModelProto) -> int | None:
    """Return the version of ONNX's own operators that a model imports; None where it imports none."""
    return next((entry.version for entry in model.opset_import if entry.domain in OWN), None)


def converted(model: onnx.ModelProto, path: str) -> onnx.ModelProto:
    """Return a model without functions of its own, with ONNX's operators of a version that is read.

    Args:
        model: Its inputs have fixed shapes. It may be changed.
        path: What messages call it.

    Raises:
        ProgramError: Its version is too old, or unknown to onnx; or it has an old operator that has no
            equivalent in newer versions.
    """
    if model.functions:
        model = _inlined(model, path)
    version = version_of(model)
    if version is None:
        model.opset_import.add(version=UPGRADED)  # of which it has no operators
        return model
    newest = onnx.defs.onnx_opset_version()
    if not OLDEST <= version <= newest:
        raise ProgramError(
            f"{path} is of opset {version}, and those from {OLDEST} to {newest} are read by onnx "
            f"{onnx.__version__} and ONNX Runtime: export it with one of them"
        )
    if version < SAME:
        Upgrade(model, version, path).run()
    return model


def _inlined(model: onnx.ModelProto, path: str) -> onnx.ModelProto:
    """Return a model with its functions' operators in the place of calls.

    Raises:
        ProgramError: A function calls itself, or has operators of another version than the model.
    """
    for function in model.functions:
        versions = {entry.domain: entry.version for entry in function.opset_import if entry.domain in OWN}
        own = next(iter(versions.values()), None)
        if own not in (None, version_of(model)):
            raise ProgramError(
                f"{path} is of opset {version_of(model)}, and its function {function.name} of opset {own}: "
                "export it with one opset for both"
            )
    try:
        model = onnx.inliner.inline_local_functions(model)
    except (RuntimeError, ValueError) as error:
        raise ProgramError(
            f"onnx cannot inline the functions of {path} ({first_line(error)}): export it without functions"
        ) from error
    if model.functions:
        names = ", ".join(function.name for function in model.functions)
        raise ProgramError(f"onnx cannot inline the functions {names} of {path}: export it without functions")
    return model


def first_line(error: Exception) -> str:
    """Return the first line of an error that says something."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
