"""Products of matrices and tensors."""

import re
from collections import Counter
from collections.abc import Mapping

import numpy as np

from irgym.envs.graph.ir.sizes import broadcast_shapes
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.reference.activations import OF_PRODUCTS, activated
from irgym.envs.graph.reference.calls import Array, Call, Operator, OperatorError


def matmul_shape(call: Call, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of numpy's matrix product.

    Raises:
        OperatorError: The shapes do not fit.
    """
    left, right = (a if len(a) > 1 else (1, *a)), (b if len(b) > 1 else (*b, 1))
    if not call.agree(left[-1], right[-2]):
        raise OperatorError(
            f"a product of shapes {a} and {b} does not exist; their inner sizes must be equal"
        )
    batch = broadcast_shapes(left[:-2], right[:-2], trusted=call.trusted)
    return (*batch, *left[-2:-1][: len(a) > 1], *right[-1:][: len(b) > 1])


def _matmul(call: Call, a: Array, b: Array) -> Array:
    return np.matmul(a, b)


def _matmul_type(call: Call, a: TensorType, b: TensorType) -> TensorType:
    return TensorType(a.dtype, matmul_shape(call, a.shape, b.shape))


def _axes(call: Call, which: str, rank: int) -> tuple[int, ...]:
    """Return the order of axes in which FusedMatMul reads input A or B."""
    axes = list(range(rank))
    if call.integer(f"transBatch{which}", 0):
        axes = [*axes[1:-1], 0, axes[-1]]
    if call.integer(f"trans{which}", 0) and rank > 1:
        axes = [*axes[:-2], axes[-1], axes[-2]]
    return tuple(axes)


def _fused_matmul(call: Call, a: Array, b: Array) -> Array:
    _check_fused(call, b.shape)
    left, right = a.transpose(_axes(call, "A", a.ndim)), b.transpose(_axes(call, "B", b.ndim))
    return np.asarray(call.number("alpha", 1.0) * np.matmul(left, right)).astype(a.dtype, copy=False)


def _fused_matmul_type(call: Call, a: TensorType, b: TensorType) -> TensorType:
    _check_fused(call, b.shape)
    shapes = [
        tuple(kind.shape[axis] for axis in _axes(call, which, len(kind.shape)))
        for which, kind in (("A", a), ("B", b))
    ]
    return TensorType(a.dtype, matmul_shape(call, *shapes))


def _check_fused(call: Call, b: tuple[int, ...]) -> None:
    # ONNX Runtime 1.32 does not transpose A in this case, though it uses the transposed shape.
    if len(b) == 1 and call.integer("transA", 0):
        raise call.refusal("transA and a vector on the right")


def _gemm(call: Call, a: Array, b: Array, c: Array | None = None) -> Array:
    left = a.T if call.integer("transA", 0) else a
    right = b.T if call.integer("transB", 0) else b
    product = call.number("alpha", 1.0) * (left @ right)
    if c is not None:
        product = product + call.number("beta", 1.0) * c
    return product.astype(a.dtype, copy=False)


def _gemm_type(call: Call, a: TensorType, b: TensorType, c: TensorType | None = None) -> TensorType:
    left = a.shape[::-1] if call.integer("transA", 0) else a.shape
    right = b.shape[::-1] if call.integer("transB", 0) else b.shape
    return TensorType(a.dtype, matmul_shape(call, left, right))


def _fused_gemm(call: Call, a: Array, b: Array, c: Array | None = None) -> Array:
    names = [f"activation_{letter}" for letter in ("alpha", "beta", "gamma")]
    parameters = [call.number(name) for name in names if name in call.attributes]
    return activated(_gemm(call, a, b, c), call.text("activation", ""), parameters, OF_PRODUCTS)


def _einsum(call: Call, *inputs: Array) -> Array:
    return np.einsum(call.text("equation"), *inputs, optimize=len(inputs) > 2)


def _einsum_type(call: Call, *inputs: TensorType) -> TensorType:
    left, _, right = call.text("equation").replace(" ", "").partition("->")
    sizes: dict[str, int] = {}
    rest: tuple[int, ...] = ()
    for term, kind in zip(left.split(","), inputs, strict=True):
        before, dots, after = term.partition("...")
        inner = len(kind.shape) - len(after)
        if dots:
            rest = broadcast_shapes(rest, kind.shape[len(before) : inner], trusted=call.trusted)
        pairs = [*zip(before, kind.shape, strict=False), *zip(after, kind.shape[inner:], strict=True)]
        for letter, size in pairs:
            [sizes[letter]] = broadcast_shapes((sizes.get(letter, 1),), (size,), trusted=call.trusted)
    if "->" not in call.text("equation"):
        counts = Counter(re.sub(r"[.,]", "", left))
        right = "..." * ("..." in left) + "".join(sorted(letter for letter in counts if counts[letter] == 1))
    before, dots, after = right.partition("...")
    middle = rest if dots else ()
    shape = (*(sizes[letter] for letter in before), *middle, *(sizes[letter] for letter in after))
    return TensorType(inputs[0].dtype, shape)


OPERATORS: Mapping[str, Operator] = {
    "Einsum": Operator(_einsum, _einsum_type),
    "Gemm": Operator(_gemm, _gemm_type),
    "MatMul": Operator(_matmul, _matmul_type),
    "com.microsoft.FusedGemm": Operator(_fused_gemm, _gemm_type),
    "com.microsoft.FusedMatMul": Operator(_fused_matmul, _fused_matmul_type),
}
