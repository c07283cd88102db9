"""A rough estimate of an operator's time from shapes alone: a roofline (Williams et al. 2009).

The rates are typical ones of one core, not this machine's: what `Costs` measures is far closer. It serves
where costs must be had at once and nothing may be measured, as potentials of rewards.
"""

from dataclasses import dataclass
from math import prod

from irgym.core.target import Target
from irgym.envs.graph.costs.calibration import class_of
from irgym.envs.graph.ir.graph import Graph, Node
from irgym.envs.graph.ir.types import TensorType


@dataclass(frozen=True)
class Rates:
    """What a machine does.

    Attributes:
        flops: Floating-point operations in a nanosecond, in products of matrices.
        bytes: Bytes moved in a nanosecond.
        operator_ns: What an operator takes however small it is.
    """

    flops: float
    bytes: float
    operator_ns: float = 1_000.0


CYCLES = 2.5
"""Cycles in a nanosecond."""

STARTED = 2
"""Multiply-adds of whole vectors that a core starts in a cycle."""

MOVED = 10.0
"""Bytes that a core moves in a nanosecond."""


def rates_of(target: Target, threads: int) -> Rates:
    """Return what a machine does on so many cores: it computes that much faster, and moves no more."""
    return Rates(CYCLES * STARTED * 2 * target.lanes * threads, MOVED)


EFFICIENCY = {"product": 0.5, "attention": 0.4, "convolution": 0.35, "layout": 0.6}
"""Share of the peak that classes of operators reach; `layout` has the blocked convolutions."""

DEPTHWISE = 0.02
"""The same for a plain convolution each of whose groups has one channel."""

BLOCKED = "com.microsoft.nchwc."
"""What the names of operators on blocked layouts begin with."""

ELEMENT = {"activation": 8.0, "normalisation": 8.0, "reduction": 2.0}
"""Operations for each element of a result, in classes that compute no products; 1 in others."""

SCALAR = 0.1
"""Share of the peak that these reach."""

FREE = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
"""Operators that move nothing."""


def estimated(graph: Graph, one: Node, rates: Rates) -> float:
    """Return about what an operator takes, nanoseconds. Operands of unknown shape count as nothing."""
    if one.operator in FREE:
        return rates.operator_ns
    operands = [graph.types[value] for value in one.operands if value in graph.types]
    results = [graph.types[value] for value in one.results if value in graph.types]
    moved = sum(kind.bytes for kind in (*operands, *results))
    if class_of(one.operator) == "movement":  # a part of the operand, or all of it
        moved = min(moved, 2 * sum(kind.bytes for kind in results))
    computing = 0.0
    if operands and results:
        computing = _flops(one, operands, results[0]) / (rates.flops * _share(one, operands))
    return rates.operator_ns + max(computing, moved / rates.bytes)


def _share(one: Node, operands: list[TensorType]) -> float:
    """Return the share of the peak that an operator reaches."""
    kind = class_of(one.operator)
    if kind == "convolution" and len(operands) > 1 and operands[1].shape[1:2] == (1,):
        return DEPTHWISE
    return EFFICIENCY.get(kind, SCALAR)


def _flops(one: Node, operands: list[TensorType], result: TensorType) -> float:
    """Return the floating-point operations of an operator."""
    kind = class_of(one.operator)
    shapes = [operand.shape for operand in operands]
    if len(shapes) > 1:
        if kind == "convolution" or one.operator == f"{BLOCKED}Conv":
            return 2.0 * result.size * prod(shapes[1][1:])
        if kind == "product" and shapes[0]:
            transposed = bool(one.attribute("transA")) and len(shapes[0]) > 1
            return 2.0 * result.size * shapes[0][-2 if transposed else -1]
        if kind == "attention":
            return _attention(one, shapes, result)
    return ELEMENT.get(kind, 1.0) * result.size


def _attention(one: Node, shapes: list[tuple[int, ...]], result: TensorType) -> float:
    """Return the operations of attention: scores, what they choose, and the projection where it is inside."""
    if one.operator == "com.microsoft.Attention":  # of an input [B, S, D] by weights [D, 3 * D]
        scores = 4.0 * result.size * shapes[0][1]
        return scores + 2.0 * prod(shapes[0]) * shapes[1][-1]
    keys = shapes[1][-2] if len(shapes[1]) > 1 else 1  # [B, T, D], or [B, heads, T, D / heads]
    return 4.0 * result.size * keys
