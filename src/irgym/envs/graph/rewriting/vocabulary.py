"""Names that conditions and replacements of rules may use: Python's built-ins, shape functions, the match."""

import math
from collections.abc import Container, Sequence
from types import CodeType
from typing import Any

from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.sizes import Undecided, any_open
from irgym.envs.graph.rewriting.matching import Match
from irgym.envs.graph.rewriting.quantisation import CONDITIONS
from irgym.envs.graph.rewriting.shapes import SHAPES, ones_moved, window
from irgym.envs.graph.rewriting.values import Attributes, Value, value_of


def idle(node: Attributes, x: Value, rest: Sequence[Value | None], y: Value) -> bool:
    """Say whether a node of class `Idle` only passes its first operand on.

    Args:
        node: Attributes of the node.
        x: First operand.
        rest: Other operands.
        y: Result.
    """
    if x.type != y.type:
        return False
    operand = rest[0] if rest else None
    match node.operator:
        case "Add" | "Sub":
            return operand is not None and operand.number == 0
        case "Mul" | "Div" | "Pow":
            return operand is not None and operand.number == 1
        case "Concat":
            return not rest
        case "Slice":
            return window(x.shape, rest) is not None
        case "Transpose":
            order = node.get("perm")
            return isinstance(order, tuple) and ones_moved(x.shape, [int(axis) for axis in order])
        case "Dropout":
            training = rest[1] if len(rest) > 1 else None
            return training is None or training.number == 0
        case _:  # with the same shape, a cast, a reshape, an expansion, a tiling and a split keep all
            return True


def counted(*bounds: int) -> range:
    """Return a range.

    Raises:
        Undecided: A bound is an open size.
    """
    if any_open(bounds):
        raise Undecided(f"range{bounds}")
    return range(*bounds)


_PYTHON = (
    abs,
    all,
    any,
    dict,
    enumerate,
    int,
    len,
    list,
    max,
    min,
    set,
    sorted,
    sum,
    tuple,
    zip,
    math.prod,
)

BUILTINS = {
    **{function.__name__: function for function in _PYTHON},
    **SHAPES,
    **CONDITIONS,
    "idle": idle,
    "range": counted,
}
"""Functions that rules may call, by name: some of Python's, of `shapes` and of `quantisation`, and `idle`."""


def names_used(code: CodeType) -> frozenset[str]:
    """Return the names that code uses, including those inside comprehensions."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return frozenset(code.co_names).union(*[names_used(part) for part in inner])


def names_of(graph: Graph, match: Match, block: int, wanted: Container[str]) -> dict[str, Any]:
    """Return the meaning of the names of a match: values, attribute values, and attributes of nodes.

    Besides, `block` is the argument, and `opset` the version of ONNX's operator set.

    Args:
        graph: The graph of the match.
        match: The match.
        block: Channels of a block in the layout of ONNX Runtime's nchwc operators.
        wanted: Names of values and nodes to include.
    """
    known: dict[str, Any] = {"block": block, **match.attributes}
    if "opset" in wanted:
        known["opset"] = dict(graph.opsets).get("", 0)
    for name, bound in match.values.items():
        if name in wanted:
            single = isinstance(bound, str)
            known[name] = (
                value_of(graph, bound) if single else tuple([value_of(graph, part) for part in bound])
            )
    for name, node in match.nodes.items():
        if name in wanted:
            known[name] = Attributes(node)
    return known
