"""Operators on quantised numbers, and models that compute with integers only once they are optimised."""

from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Node

OPERATORS = frozenset(
    {
        "ConvInteger",
        "DequantizeLinear",
        "DynamicQuantizeLinear",
        "MatMulInteger",
        "QLinearConv",
        "QLinearMatMul",
        "QuantizeLinear",
    }
)
"""Operators of ONNX on quantised numbers."""

PREFIXES = ("com.microsoft.QLinear", "com.microsoft.QGemm")
"""Beginnings of the names of ONNX Runtime's operators on quantised numbers that exporters write."""


def is_quantised(node: Node) -> bool:
    """Say whether a node computes with quantised numbers."""
    return node.operator in OPERATORS or node.operator.startswith(PREFIXES)


def waits(graph: Graph) -> bool:
    """Say whether operators in floating point stand between DequantizeLinear and QuantizeLinear.

    So they do in the format QDQ. ONNX Runtime's optimiser replaces the three by one operator on integers;
    without it, each runs by itself.
    """
    return any(
        node.operator == "QuantizeLinear" and _dequantises(graph, graph.producer(node.inputs[0]))
        for node in graph.nodes.values()
    )


def _dequantises(graph: Graph, node: Node | None) -> bool:
    makers = [] if node is None else [graph.producer(value) for value in node.inputs]
    return any(maker is not None and maker.operator == "DequantizeLinear" for maker in makers)
