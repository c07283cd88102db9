"""Conditions on the constants that rules merge and move: their products must stay ordinary numbers.

For real numbers, `(x * b) * c` equals `x * (b * c)`. In floating point this fails where `b * c` is infinite,
zero or subnormal, or where `x * b` is and `b * c` is not. All rules are subject to these conditions, in
addition to those that they state:

- A constant computed from other constants, as a weight, as an attribute or by a node, is an ordinary number
  of its type (finite and normal) wherever its operands are. In sums, large terms must not cancel: they may be
  there to round what is added to them.
- Where a rule moves, merges or splits products (`reassociates`), constant factors are moderate: apart from
  zeros, no element has a magnitude above `Format.moderate`, which is half of the exponent range (2^63 in
  float32, 2^7 in float16), or below its reciprocal. A factor times a number in that range is then finite and
  normal, both before and after the rule.
"""

import ast
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from irgym.envs.graph.ir.computing import computed
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.magnitudes import ARITHMETIC, Format, format_of
from irgym.envs.graph.ir.node import Attribute, Node
from irgym.envs.graph.ir.weights import Computed, Weight

NODES = {"Add": "add", "Sub": "subtract", "Mul": "multiply", "Div": "divide", "MatMul": "matmul"}
"""Operators that may compute a constant from constants, and the equivalent functions of weights."""

SCALES = frozenset({"Mul", "Div", "BatchNormalization"})
"""Operators whose constant operands are factors."""

PRODUCTS = frozenset(
    {
        *SCALES,
        "Associative",
        "Attention",
        "BlockedConv",
        "Conv",
        "FusedConv",
        "FusedGemm",
        "FusedMatMul",
        "GRU",
        "Gemm",
        "LSTM",
        "LayerNormalization",
        "MatMul",
        "MultiHeadAttention",
        "Same",
        "divide",
        "matmul",
        "multiply",
        "winograd_weights",
    }
)
"""Operators and functions that multiply, by the names that rules use."""

FACTORS = frozenset({"alpha", "beta", "scale"})
"""Attributes of multiplying operators that are factors."""

_WITHOUT_DOMAIN = {
    f"com.microsoft.{name}": name for name in ("FusedMatMul", "FusedGemm", "MultiHeadAttention")
}


class UnsoundError(Exception):
    """A new constant would be infinite, zero or subnormal, though its operands are not."""


class Constant(Protocol):
    """An operand that may be a constant."""

    @property
    def weight(self) -> Weight | None:
        """The constant; None for an operand that depends on inputs."""
        ...


def reassociates(before: str, after: str) -> bool:
    """Say whether a rule moves, merges or splits products: pattern and replacement have more than two.

    Args:
        before: The pattern.
        after: The replacement.
    """
    called = [*_called(before), *_called(after)]
    return (
        any(name in PRODUCTS - {"Same"} for name in called) and sum(name in PRODUCTS for name in called) > 2
    )


def computes(before: str, after: str) -> bool:
    """Say whether a rule may compute new constants, as weights, attributes or nodes."""
    if reassociates(before, after) or any(name in ARITHMETIC for name in _names(after)):
        return True
    return sum(name in NODES or name == "Same" for name in _called(after)) > 1


def _called(text: str) -> list[str]:
    """Return the names of the functions that code calls."""
    calls = (call.func for call in ast.walk(ast.parse(text)) if isinstance(call, ast.Call))
    return [name.id for name in calls if isinstance(name, ast.Name)]


def _names(text: str) -> set[str]:
    return {name.id for name in ast.walk(ast.parse(text)) if isinstance(name, ast.Name)}


def moderate(graph: Graph, nodes: Iterable[Node]) -> bool:
    """Say whether the constant factors of nodes are moderate; see the module."""
    return all(_moderate(graph, node) for node in nodes)


def _moderate(graph: Graph, node: Node) -> bool:
    operator = _WITHOUT_DOMAIN.get(node.operator, node.operator)
    if operator not in PRODUCTS:
        return True
    kind = format_of(graph.types[node.results[0]].dtype) if node.results[0] in graph.types else None
    if kind is None:
        return True
    numbers = [value for name, value in node.attributes if name in FACTORS and isinstance(value, float)]
    if any(value and not 1 / kind.moderate <= abs(value) <= kind.moderate for value in numbers):
        return False
    weights = [graph.weights[name] for name in node.operands if name in graph.weights]
    return all(_factor(weight, kind, operator) for weight in weights)


def _factor(weight: Weight, kind: Format, operator: str) -> bool:
    if format_of(weight.type.dtype) is None or not weight.type.size:
        return True
    known = weight.magnitude
    if known.greatest > kind.moderate:
        return False
    return operator not in SCALES or known.counting(kind) >= 1 / kind.moderate


def checked_constant(weight: Weight) -> Weight:
    """Return a computed constant unchanged.

    Raises:
        UnsoundError: The constant is no ordinary number, though its operands are.
    """
    if isinstance(weight, Computed) and not weight.sound:
        raise UnsoundError(f"{weight.function} leaves the range of {weight.type.dtype}")
    return weight


def check_constants(
    operator: str, operands: Sequence[Constant | None], attributes: Mapping[str, Attribute]
) -> None:
    """Check the attributes of a node and, if all its operands are constants, its result.

    Raises:
        UnsoundError: A new constant is no ordinary number, though its operands are.
    """
    weights = [operand.weight for operand in operands if operand is not None and operand.weight is not None]
    if operator in NODES and len(weights) == len(operands) == 2:
        checked_constant(computed(NODES[operator], *weights))
    for name, value in attributes.items():
        if name in FACTORS and isinstance(value, float) and not _ordinary(value):
            raise UnsoundError(f"{name} = {value} leaves the range of float32")


def _ordinary(value: float) -> bool:
    kind = format_of("float32")
    return kind is None or value == 0 or (math.isfinite(value) and kind.tiny <= abs(value) <= kind.most)
