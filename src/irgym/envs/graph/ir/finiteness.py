"""Which values are finite, as far as the operators that make them tell.

It is assumed that a model's inputs are finite, and that no sum or product of such numbers overflows: what
makes infinities, or no numbers, are constants, divisions, roots and logarithms. Masks add numbers near the
greatest that there is; two of those together would overflow, so that values that hold them are told apart.
"""

import math
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Protocol

import numpy as np

from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Computed, Literal, Plain, Stored, Weight

LARGE = 1e18
"""What is less than this is taken for an ordinary number."""


class Size(IntEnum):
    """How large the elements of a value may be."""

    ORDINARY = 0
    MASK = 1
    UNKNOWN = 2


class Sized(Protocol):
    """What is asked of a node."""

    @property
    def operator(self) -> str:
        """The operator."""
        ...

    @property
    def operands(self) -> tuple[str, ...]:
        """All values that it needs."""
        ...

    @property
    def results(self) -> tuple[str, ...]:
        """All values that it makes."""
        ...


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
"""Results are elements of the operands."""

_BOUNDED = frozenset(["Softmax", "Sigmoid", "HardSigmoid", "Tanh", "Erf", "Softsign"])
"""Results are ordinary, whatever finite numbers the operands are."""

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
"""Results are ordinary where the operands are."""


_INFINITE = frozenset(["deviation", "mask"])
"""Functions of weights that may make infinities, or no numbers, of ordinary numbers."""


def size_of_weight(weight: Weight) -> Size:
    """Return how large the elements of a weight may be."""
    return _size_of_weight(weight, {})


def _size_of_weight(weight: Weight, known: dict[str, Size]) -> Size:
    """Return the same; `known` has what was found for weights within it, by digest: they may come again."""
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
    inner = [one for one in weight.arguments if isinstance(one, Stored | Literal | Computed)]
    ordinary = all(_size_of_weight(one, known) is Size.ORDINARY for one in inner)
    return Size.ORDINARY if ordinary else Size.UNKNOWN


def size_of_results(
    one: Sized,
    sizes: Mapping[str, Size],
    weights: Mapping[str, Weight],
    types: Mapping[str, TensorType],
) -> Iterable[tuple[str, Size]]:
    """Return how large the elements of a node's results may be.

    Args:
        one: The node.
        sizes: What is known of its operands; inputs are finite.
        weights: By name.
        types: Of values and weights, where they are known.
    """
    size = _size(one, [_operand(name, sizes, weights, types) for name in one.operands])
    if one.operator == "Pow" and _counts(weights.get(one.operands[1])):
        size = _ordinary(_operand(one.operands[0], sizes, weights, types))
    if one.operator == "Div" and _divides(weights.get(one.operands[1])):
        size = _ordinary(_operand(one.operands[0], sizes, weights, types))
    return [(value, size) for value in one.results]


def _ordinary(size: Size) -> Size:
    return size if size is Size.ORDINARY else Size.UNKNOWN


def _counts(exponent: Weight | None) -> bool:
    """Say whether an exponent is known to be a small whole number."""
    return isinstance(exponent, Literal) and bool(np.isin(exponent.array, (0, 1, 2, 3, 4)).all())


def _divides(divisor: Weight | Plain | None) -> bool:
    """Say whether a divisor is known to be no zero, nor close to it."""
    return isinstance(divisor, Literal) and bool((abs(divisor.array) > 1 / LARGE).all())


def _operand(
    name: str, sizes: Mapping[str, Size], weights: Mapping[str, Weight], types: Mapping[str, TensorType]
) -> Size:
    if name in types and types[name].dtype.startswith(("bool", "int", "uint")):
        return Size.ORDINARY
    return size_of_weight(weights[name]) if name in weights else sizes.get(name, Size.UNKNOWN)


def _size(one: Sized, operands: list[Size]) -> Size:
    largest = max(operands, default=Size.UNKNOWN)
    if one.operator in _MOVES:
        return largest
    if one.operator in _BOUNDED:
        return Size.ORDINARY if largest is not Size.UNKNOWN else Size.UNKNOWN
    if one.operator in ("Add", "Sub") and operands.count(Size.MASK) == 1:
        return largest
    ordinary = largest is Size.ORDINARY and one.operator in _ORDINARY
    return Size.ORDINARY if ordinary else Size.UNKNOWN
