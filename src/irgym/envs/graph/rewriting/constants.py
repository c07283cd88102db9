"""Which constants rules may merge and move: those whose products stay ordinary numbers.

For real numbers `(x * b) * c` is `x * (b * c)`. For numbers of a computer it is not where `b * c` is
infinite, zero or subnormal, nor where `x * b` is and `b * c` is not. All rules go through these conditions,
whatever their own are:

- A constant that a rule computes of others, as a weight, as an attribute or by a node of constants, is an
  ordinary number of its type wherever its parts are. In sums, large parts do not cancel: they may be there
  to round what is added to them.
- Where a rule moves, merges or parts products (`reassociates`), the factors that are constants are moderate:
  no element but zeros has a magnitude beyond `Format.moderate`, which is half of the exponents (2^63 of
  float32, 2^7 of float16), or below its reciprocal. So what a factor makes of a number in that range is
  finite and normal, before the rule and after it.
"""

import ast
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.magnitudes import ARITHMETIC, Format, format_of
from irgym.envs.graph.ir.node import Attribute, Node
from irgym.envs.graph.ir.weights import Computed, Weight, computed

NODES = {"Add": "add", "Sub": "subtract", "Mul": "multiply", "Div": "divide", "MatMul": "matmul"}
"""Operators that make a constant of constants, and the functions of weights that do the same."""

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
"""What multiplies, as rules call it."""

FACTORS = frozenset({"alpha", "beta", "scale"})
"""Attributes that are factors, of the operators that multiply."""

_WITHOUT_DOMAIN = {
    f"com.microsoft.{name}": name for name in ("FusedMatMul", "FusedGemm", "MultiHeadAttention")
}


class UnsoundError(Exception):
    """A constant that a rule would make is infinite, zero or subnormal, and its parts are not."""


class Constant(Protocol):
    """An operand that may be a constant."""

    @property
    def weight(self) -> Weight | None:
        """The constant."""
        ...


def reassociates(before: str, after: str) -> bool:
    """Say whether a rule moves, merges or parts products: it has more than two, before and after together.

    Args:
        before: Its pattern.
        after: What it makes.
    """
    called = [*_called(before), *_called(after)]
    return (
        any(name in PRODUCTS - {"Same"} for name in called) and sum(name in PRODUCTS for name in called) > 2
    )


def computes(before: str, after: str) -> bool:
    """Say whether a rule may make constants that are new numbers: as weights, attributes or nodes."""
    if reassociates(before, after) or any(name in ARITHMETIC for name in _names(after)):
        return True
    return sum(name in NODES or name == "Same" for name in _called(after)) > 1


def _called(text: str) -> list[str]:
    """Return the names that are called in a text."""
    calls = (one.func for one in ast.walk(ast.parse(text)) if isinstance(one, ast.Call))
    return [one.id for one in calls if isinstance(one, ast.Name)]


def _names(text: str) -> set[str]:
    return {one.id for one in ast.walk(ast.parse(text)) if isinstance(one, ast.Name)}


def moderate(graph: Graph, nodes: Iterable[Node]) -> bool:
    """Say whether the constant factors of some nodes are moderate; see the module."""
    return all(_moderate(graph, one) for one in nodes)


def _moderate(graph: Graph, one: Node) -> bool:
    operator = _WITHOUT_DOMAIN.get(one.operator, one.operator)
    if operator not in PRODUCTS:
        return True
    kind = format_of(graph.types[one.results[0]].dtype) if one.results[0] in graph.types else None
    if kind is None:
        return True
    numbers = [value for name, value in one.attributes if name in FACTORS and isinstance(value, float)]
    if any(value and not 1 / kind.moderate <= abs(value) <= kind.moderate for value in numbers):
        return False
    weights = [graph.weights[name] for name in one.operands if name in graph.weights]
    return all(_factor(weight, kind, operator) for weight in weights)


def _factor(weight: Weight, kind: Format, operator: str) -> bool:
    if format_of(weight.type.dtype) is None or not weight.type.size:
        return True
    known = weight.magnitude
    if known.greatest > kind.moderate:
        return False
    return operator not in SCALES or known.counting(kind) >= 1 / kind.moderate


def checked_constant(weight: Weight) -> Weight:
    """Return a constant that is computed.

    Raises:
        UnsoundError: It is no ordinary number where its parts are.
    """
    if isinstance(weight, Computed) and not weight.sound:
        raise UnsoundError(f"{weight.function} leaves the range of {weight.type.dtype}")
    return weight


def check_constants(
    operator: str, operands: Sequence[Constant | None], attributes: Mapping[str, Attribute]
) -> None:
    """Check the constants that a node makes, where all its operands are constants, and its attributes.

    Raises:
        UnsoundError: One is no ordinary number where its parts are.
    """
    weights = [one.weight for one in operands if one is not None and one.weight is not None]
    if operator in NODES and len(weights) == len(operands) == 2:
        checked_constant(computed(NODES[operator], *weights))
    for name, value in attributes.items():
        if name in FACTORS and isinstance(value, float) and not _ordinary(value):
            raise UnsoundError(f"{name} = {value} leaves the range of float32")


def _ordinary(value: float) -> bool:
    kind = format_of("float32")
    return kind is None or value == 0 or (math.isfinite(value) and kind.tiny <= abs(value) <= kind.most)
