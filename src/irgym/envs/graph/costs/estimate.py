"""A rough estimate of an operator's time from shapes alone: a roofline (Williams et al. 2009).

The rates are typical of a core, not measured on this machine; `Costs` is far more accurate. The estimate
serves where costs are needed immediately, without measurements, as in potentials of shaped rewards.
"""

from dataclasses import dataclass
from math import prod

from irgym.core.target import Target
from irgym.envs.graph.costs.calibration import class_of
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Node
from irgym.envs.graph.ir.types import TensorType


@dataclass(frozen=True)
class Rates:
    """Speeds of a machine.

    Attributes:
        flops: Floating-point operations per nanosecond, in matrix products.
        bytes: Bytes moved per nanosecond.
        operator_ns: Overhead of an operator of any size.
    """

    flops: float
    bytes: float
    operator_ns: float = 1_000.0


CYCLES = 2.5
"""Cycles per nanosecond."""

STARTED = 2
"""Vector multiply-adds that a core issues per cycle."""

MOVED = 10.0
"""Bytes that a core moves per nanosecond."""


def rates_of(target: Target, threads: int) -> Rates:
    """Return the speeds of a machine: compute scales with the number of threads, bandwidth does not."""
    return Rates(CYCLES * STARTED * 2 * target.lanes * threads, MOVED)


EFFICIENCY = {"product": 0.5, "attention": 0.4, "convolution": 0.35, "layout": 0.6}
"""Share of the peak that each class of operators reaches; `layout` includes blocked convolutions."""

DEPTHWISE = 0.02
"""Share of the peak that an unblocked depthwise convolution reaches."""

BLOCKED = "com.microsoft.nchwc."
"""Prefix of the names of operators on blocked layouts."""

ELEMENT = {"activation": 8.0, "normalisation": 8.0, "reduction": 2.0}
"""Operations per element of a result, in classes that compute no products; 1 in others."""

SCALAR = 0.1
"""Share of the peak that operators of those classes reach."""

FREE = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
"""Operators that move no data."""


def estimated(graph: Graph, node: Node, rates: Rates) -> float:
    """Return the estimated time of an operator in nanoseconds. Operands of unknown shape count as empty."""
    if node.operator in FREE:
        return rates.operator_ns
    operands = [graph.types[value] for value in node.operands if value in graph.types]
    results = [graph.types[value] for value in node.results if value in graph.types]
    moved = sum(kind.bytes for kind in (*operands, *results))
    if class_of(node.operator) == "movement":  # it may read only a part of its operand
        moved = min(moved, 2 * sum(kind.bytes for kind in results))
    computing = 0.0
    if operands and results:
        computing = _flops(node, operands, results[0]) / (rates.flops * _share(node, operands))
    return rates.operator_ns + max(computing, moved / rates.bytes)


def _share(node: Node, operands: list[TensorType]) -> float:
    """Return the share of the peak that an operator reaches."""
    kind = class_of(node.operator)
    if kind == "convolution" and len(operands) > 1 and operands[1].shape[1:2] == (1,):
        return DEPTHWISE
    return EFFICIENCY.get(kind, SCALAR)


def _flops(node: Node, operands: list[TensorType], result: TensorType) -> float:
    """Return the floating-point operations of an operator."""
    kind = class_of(node.operator)
    shapes = [operand.shape for operand in operands]
    if len(shapes) > 1:
        if kind == "convolution" or node.operator == f"{BLOCKED}Conv":
            return 2.0 * result.size * prod(shapes[1][1:])
        if kind == "product" and shapes[0]:
            transposed = bool(node.attribute("transA")) and len(shapes[0]) > 1
            return 2.0 * result.size * shapes[0][-2 if transposed else -1]
        if kind == "attention":
            return _attention(node, shapes, result)
    return ELEMENT.get(kind, 1.0) * result.size


def _attention(node: Node, shapes: list[tuple[int, ...]], result: TensorType) -> float:
    """Return the operations of attention: scores, weighted sums, and the fused input projection if any."""
    if node.operator == "com.microsoft.Attention":  # of an input [B, S, D] by weights [D, 3 * D]
        scores = 4.0 * result.size * shapes[0][1]
        return scores + 2.0 * prod(shapes[0]) * shapes[1][-1]
    keys = shapes[1][-2] if len(shapes[1]) > 1 else 1  # [B, T, D], or [B, heads, T, D / heads]
    return 4.0 * result.size * keys
