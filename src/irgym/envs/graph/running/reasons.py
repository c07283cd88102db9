"""Why ONNX Runtime does not run a model, and what to do about it, in words."""

import re

from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.running.sessions import CompileError, version

_UNKNOWN = re.compile(r"Fatal error: (?:(?P<domain>[^\s:]*):)?(?P<operator>\w+)\(-?\d+\) is not a registered")
_MISSING = re.compile(r"Could not find an implementation for (?P<operator>\w+)\(\d+\)")


def reason(error: CompileError, graph: Graph, name: str) -> str:
    """Return what keeps a model from running, with the remedy.

    Args:
        error: What ONNX Runtime says.
        graph: The model.
        name: Its URI.
    """
    said = str(error)
    if unknown := _UNKNOWN.search(said):
        operator, domain = unknown["operator"], unknown["domain"]
        where = f"of the domain {domain}" if domain else "of ONNX"
        return (
            f"{version()} has no operator {operator} {where}: export the model with operators that ONNX "
            "Runtime has by itself"
        )
    if missing := _MISSING.search(said):
        operator = missing["operator"]
        kinds = {
            graph.types[value].dtype
            for one in graph.nodes.values()
            if one.operator.rpartition(".")[2] == operator
            for value in one.operands
            if value in graph.types
        }
        types = f" of {' and '.join(sorted(kinds))}" if kinds else ""
        return (
            f"{version()} has no {operator}{types} on a CPU: export the model with other types, such as "
            "float32"
        )
    sizes = "bind its open dimensions to sizes that fit, or " if "?" in name else ""
    return f"{said}; {sizes}export it for this version of ONNX Runtime, and give ranges for its whole inputs"
