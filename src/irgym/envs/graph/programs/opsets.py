"""Versions of ONNX's own operators: models of old versions rewritten in terms of a newer one.

onnx has a version converter too. It is not used: it keeps the attributes of operators whose meaning changed.
"""

# onnx leaves parts of its own types open.
# pyright: reportUnknownMemberType=false

import onnx
import onnx.inliner

from irgym.base.errors import ProgramError
from irgym.envs.graph.ir.dense import graphs_inside, nodes_of
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
        ProgramError: A function calls itself, or has operators that differ in the model's version.
    """
    version = version_of(model)
    for function in model.functions:
        for entry in function.opset_import:
            if entry.domain not in OWN or version is None or entry.version == version:
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
    """Say whether the operators of a function are the same in two versions."""
    nodes = [inner for one in function.node for graph in graphs_inside(one) for inner in nodes_of(graph)]
    names = {one.op_type for one in (*function.node, *nodes) if one.domain in OWN}
    return all(_since(name, version) == _since(name, other) for name in names)


def _since(operator: str, version: int) -> int | None:
    """Return the version in which an operator of a version came; None where it has none of that name."""
    try:
        return onnx.defs.get_schema(operator, version).since_version
    except onnx.defs.SchemaError:
        return None


def first_line(error: Exception) -> str:
    """Return the first line of an error that says something."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
