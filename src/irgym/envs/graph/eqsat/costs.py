"""What operators cost, by a simple model: the work at a peak, or the bytes at a bandwidth, and a call.

It needs no measurements. Where operators are measured, those costs are better.
"""

from collections.abc import Callable
from math import prod
from typing import TypeAlias

from irgym.envs.graph.ir.graph import Graph, Node
from irgym.envs.graph.ir.types import TensorType

NodeCost: TypeAlias = Callable[[Graph, Node], float]
"""From a graph and one of its operators to the operator's time, in nanoseconds."""

FLOPS_PER_NS = 60.0
BYTES_PER_NS = 20.0
CALL_NS = 1_000.0

_BYTES = 4


def counted(graph: Graph, one: Node) -> float:
    """Return 1: graphs with the fewest operators are the cheapest."""
    del graph, one
    return 1.0


def estimated(graph: Graph, one: Node) -> float:
    """Return about how long one core takes for an operator, in nanoseconds."""
    results = [graph.types[name] for name in one.results if name in graph.types]
    operands = [graph.types[name] for name in one.inputs if name in graph.types]
    moved = sum(kind.size for kind in (*results, *operands)) * _BYTES
    work = _work(one, operands, results)
    return CALL_NS + max(moved / BYTES_PER_NS, work / FLOPS_PER_NS)


def _work(one: Node, operands: list[TensorType], results: list[TensorType]) -> float:
    """Return the floating-point operations of products; 0 for other operators, whose bytes count."""
    kind = one.operator.rpartition(".")[2]
    if not results or len(operands) < 2 or min(len(one.shape) for one in operands[:2]) < 2:
        return 0.0
    size = results[0].size
    if "Conv" in kind and len(operands[1].shape) > 2:
        return 2.0 * size * prod(operands[1].shape[1:])
    if kind in ("Gemm", "FusedGemm"):
        inner = operands[0].size // max(1, results[0].shape[0])
        return 2.0 * size * inner
    if kind in ("MatMul", "FusedMatMul"):
        return 2.0 * size * operands[0].shape[::-1][1 if one.attribute("transA") else 0]
    if kind == "Attention" and one.operator != "Attention":  # the packed projections, and then as below
        tokens, width = operands[0].size // operands[0].shape[-1], operands[0].shape[-1]
        return 2.0 * tokens * operands[1].size + 4.0 * tokens * operands[0].shape[1] * width
    if kind in ("MultiHeadAttention", "Attention"):
        return 4.0 * size * list(operands[1].shape)[-2]
    return 0.0
