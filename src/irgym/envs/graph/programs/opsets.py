"""Conversion of models between versions of ONNX's operators (opsets).

The version converter of onnx is not used: it keeps the attributes of operators whose meaning changed.
"""

# The types of onnx are incomplete.
# pyright: reportUnknownMemberType=false

import onnx
import onnx.inliner

from irgym.base.errors import ProgramError
from irgym.envs.graph.ir.dense import DEFAULT, graphs_inside, nodes_of
from irgym.envs.graph.programs.upgrading import UPGRADED, Upgrade

SAME = 13
"""The oldest opset that is read without conversion."""

OLDEST = 7
"""The oldest opset that is read, which is also the oldest that ONNX Runtime supports."""


def version_of(model: onnx.ModelProto) -> int | None:
    """Return the opset of ONNX's default domain that a model imports; None if it imports none."""
    return next((entry.version for entry in model.opset_import if entry.domain in DEFAULT), None)


def converted(model: onnx.ModelProto, path: str) -> onnx.ModelProto:
    """Return a model with its functions inlined and its opset upgraded if needed.

    Args:
        model: A model with inputs of fixed shapes. It may be changed.
        path: The model's name in messages.

    Raises:
        ProgramError: The opset is too old, or unknown to onnx; or an old operator has no equivalent in newer
            opsets.
    """
    if model.functions:
        model = _inlined(model, path)
    version = version_of(model)
    if version is None:
        model.opset_import.add(version=UPGRADED)  # the model has none of its operators
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
    """Return a model with calls replaced by the operators of the functions.

    Raises:
        ProgramError: A function calls itself, or has operators that differ in the model's opset.
    """
    version = version_of(model)
    for function in model.functions:
        for entry in function.opset_import:
            if entry.domain not in DEFAULT or version is None or entry.version == version:
                continue
            if not _means_the_same(function, entry.version, version):
                raise ProgramError(
                    f"{path} is of opset {version}, and its function {function.name} of opset "
                    f"{entry.version}: export it with one opset for both"
                )
            entry.version = version
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


def _means_the_same(function: onnx.FunctionProto, version: int, other: int) -> bool:
    """Say whether the operators of a function are the same in two opsets."""
    nodes = [inner for node in function.node for graph in graphs_inside(node) for inner in nodes_of(graph)]
    names = {node.op_type for node in (*function.node, *nodes) if node.domain in DEFAULT}
    return all(_since(name, version) == _since(name, other) for name in names)


def _since(operator: str, version: int) -> int | None:
    """Return the opset that introduced an operator as of a given opset; None if that lacks the operator."""
    try:
        return onnx.defs.get_schema(operator, version).since_version
    except onnx.defs.SchemaError:
        return None


def first_line(error: Exception) -> str:
    """Return the first line of an error's text that is not blank."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
