"""A static analysis of which values are finite.

It assumes that a model's inputs are finite, and that no sum or product of ordinary numbers overflows.
Infinities and NaNs then come from constants, divisions, roots and logarithms alone. Attention masks add
numbers close to the largest finite one. The sum of two such numbers would overflow, so masks form a separate
class.
"""

import math
from collections.abc import Iterable, Mapping
from enum import IntEnum

import numpy as np

from irgym.envs.graph.ir.node import Node
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Computed, Literal, Plain, Stored, Weight

LARGE = 1e18
"""Magnitudes below this count as ordinary numbers."""


class Size(IntEnum):
    """How large the elements of a value may be."""

    ORDINARY = 0
    MASK = 1
    UNKNOWN = 2


_MOVES = frozenset(
    [
        "Concat",
        "Expand",
        "Flatten",
        "Gather",
        "GatherElements",
        "GatherND",
        "Identity",
        "MaxPool",
        "Reshape",
        "Slice",
        "Split",
        "Squeeze",
        "Tile",
        "Transpose",
        "Unsqueeze",
        "Where",
        "Max",
        "Min",
    ]
)
"""Operators whose results consist of elements of the operands."""

_BOUNDED = frozenset(["Softmax", "Sigmoid", "HardSigmoid", "Tanh", "Erf", "Softsign"])
"""Operators whose results are ordinary for all finite operands."""

_ORDINARY = frozenset(
    [
        "Abs",
        "Add",
        "AveragePool",
        "Cast",
        "Ceil",
        "Clip",
        "Conv",
        "Cos",
        "Einsum",
        "Elu",
        "Floor",
        "GRU",
        "Gelu",
        "Gemm",
        "GlobalAveragePool",
        "GroupNormalization",
        "HardSwish",
        "InstanceNormalization",
        "LSTM",
        "LayerNormalization",
        "LeakyRelu",
        "MatMul",
        "Mish",
        "Mul",
        "Neg",
        "Pad",
        "PRelu",
        "ReduceMax",
        "ReduceMean",
        "ReduceMin",
        "ReduceSum",
        "Relu",
        "Round",
        "RMSNormalization",
        "Selu",
        "Sign",
        "SimplifiedLayerNormalization",
        "Sin",
        "Softplus",
        "Sub",
        "Sum",
        "ThresholdedRelu",
        "com.microsoft.Attention",
        "com.microsoft.BiasGelu",
        "com.microsoft.FastGelu",
        "com.microsoft.FusedConv",
        "com.microsoft.FusedGemm",
        "com.microsoft.FusedMatMul",
        "com.microsoft.Gelu",
        "com.microsoft.MultiHeadAttention",
        "com.microsoft.QuickGelu",
        "com.microsoft.SkipLayerNormalization",
        "com.microsoft.SkipSimplifiedLayerNormalization",
    ]
)
"""Operators whose results are ordinary if the operands are."""


_INFINITE = frozenset(["deviation", "mask"])
"""Functions of weights that may turn ordinary numbers into infinities or NaNs."""


def size_of_weight(weight: Weight) -> Size:
    """Return how large the elements of a weight may be."""
    return _size_of_weight(weight, {})


def _size_of_weight(weight: Weight, known: dict[str, Size]) -> Size:
    """Return the same; `known` caches, by digest, the sizes of weights that it is computed from."""
    if isinstance(weight, Computed):
        if weight.digest not in known:
            known[weight.digest] = _size_of_computed(weight, known)
        return known[weight.digest]
    if weight.greatest < LARGE:
        return Size.ORDINARY
    return Size.MASK if weight.greatest < math.inf else Size.UNKNOWN


def _size_of_computed(weight: Computed, known: dict[str, Size]) -> Size:
    if weight.function in _INFINITE or (weight.function == "divide" and not _divides(weight.arguments[1])):
        return Size.UNKNOWN
    inner = [part for part in weight.arguments if isinstance(part, Stored | Literal | Computed)]
    ordinary = all(_size_of_weight(part, known) is Size.ORDINARY for part in inner)
    return Size.ORDINARY if ordinary else Size.UNKNOWN


def size_of_results(
    node: Node,
    sizes: Mapping[str, Size],
    weights: Mapping[str, Weight],
    types: Mapping[str, TensorType],
) -> Iterable[tuple[str, Size]]:
    """Return how large the elements of a node's results may be.

    Args:
        node: The node.
        sizes: Sizes of its operands; inputs are finite.
        weights: By name.
        types: Of values and weights, where they are known.
    """
    size = _size(node, [_operand(name, sizes, weights, types) for name in node.operands])
    if node.operator == "Pow" and _counts(weights.get(node.operands[1])):
        size = _ordinary(_operand(node.operands[0], sizes, weights, types))
    if node.operator == "Div" and _divides(weights.get(node.operands[1])):
        size = _ordinary(_operand(node.operands[0], sizes, weights, types))
    return [(value, size) for value in node.results]


def _ordinary(size: Size) -> Size:
    return size if size is Size.ORDINARY else Size.UNKNOWN


def _counts(exponent: Weight | None) -> bool:
    """Say whether an exponent is known to be a small whole number."""
    return isinstance(exponent, Literal) and bool(np.isin(exponent.array, (0, 1, 2, 3, 4)).all())


def _divides(divisor: Weight | Plain | None) -> bool:
    """Say whether a divisor is known to be neither zero nor close to it."""
    return isinstance(divisor, Literal) and bool((abs(divisor.array) > 1 / LARGE).all())


def _operand(
    name: str, sizes: Mapping[str, Size], weights: Mapping[str, Weight], types: Mapping[str, TensorType]
) -> Size:
    if name in types and types[name].dtype.startswith(("bool", "int", "uint")):
        return Size.ORDINARY
    return size_of_weight(weights[name]) if name in weights else sizes.get(name, Size.UNKNOWN)


def _size(node: Node, operands: list[Size]) -> Size:
    largest = max(operands, default=Size.UNKNOWN)
    if node.operator in _MOVES:
        return largest
    if node.operator in _BOUNDED:
        return Size.ORDINARY if largest is not Size.UNKNOWN else Size.UNKNOWN
    if node.operator in ("Add", "Sub") and operands.count(Size.MASK) == 1:
        return largest
    ordinary = largest is Size.ORDINARY and node.operator in _ORDINARY
    return Size.ORDINARY if ordinary else Size.UNKNOWN
