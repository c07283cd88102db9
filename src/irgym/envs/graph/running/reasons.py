"""Explanations, with remedies, of why ONNX Runtime does not run a model."""

import re

from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.running.sessions import CompileError, TooSlowError, version

_UNKNOWN = re.compile(r"Fatal error: (?:(?P<domain>[^\s:]*):)?(?P<operator>\w+)\(-?\d+\) is not a registered")
_MISSING = re.compile(r"Could not find an implementation for (?P<operator>\w+)\(\d+\)")
_UNFIT = re.compile(r"Type 'tensor\((?P<type>\w+)\)' of input parameter .* of operator \((?P<operator>\w+)\)")
_NEWER = re.compile(r"official support for domain ai\.onnx is till opset (?P<newest>\d+)")


def reason(error: CompileError, graph: Graph, name: str) -> str:
    """Return why a model does not run, with the remedy.

    Args:
        error: The error of ONNX Runtime.
        graph: The model.
        name: Its URI.
    """
    said = str(error)
    if isinstance(error, TooSlowError):
        return f"{said}: make it smaller"
    if newer := _NEWER.search(said):
        return f"{version()} reads opsets up to {newer['newest']}: export it with one of them"
    if unknown := _UNKNOWN.search(said):
        where = f"of the domain {unknown['domain']}" if unknown["domain"] else "of ONNX"
        return (
            f"{version()} has no operator {unknown['operator']} {where}: export the model with operators "
            "that ONNX Runtime has built in"
        )
    if unfit := _UNFIT.search(said):
        return _without_kernel(unfit["operator"], {unfit["type"]})
    if missing := _MISSING.search(said):
        return _without_kernel(missing["operator"], _types(graph, missing["operator"]))
    sizes = "bind its open dimensions to sizes that fit, or " if "?" in name else ""
    return f"{said}: {sizes}export it for this version of ONNX Runtime"


def _without_kernel(operator: str, types: set[str]) -> str:
    of = f" of {' and '.join(sorted(types))}" if types else ""
    return f"{version()} has no {operator}{of} on a CPU: export the model with other types, such as float32"


def _types(graph: Graph, operator: str) -> set[str]:
    """Return the element types of the operands of all nodes of an operator."""
    return {
        graph.types[value].dtype
        for node in graph.nodes.values()
        if node.operator.rpartition(".")[2] == operator
        for value in node.operands
        if value in graph.types
    }
