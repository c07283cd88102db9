"""Quantisation: numbers to integers and back, and products and convolutions of integers.

A number is `(integer - zero point) * scale`. Integers are rounded to even and saturate. Operators of ORT's
domain are those that exporters write into models in the format QOperator, and those that rules make.
"""

from collections.abc import Callable, Mapping

import numpy as np

from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.reference.calls import Array, Call, Operator, broadcast, positive_axis, same
from irgym.envs.graph.reference.convolution import convolution, convolution_type
from irgym.envs.graph.reference.generation import ELEMENTS
from irgym.envs.graph.reference.products import matmul_shape

INTEGERS = frozenset({"int8", "uint8", "int16", "uint16", "int32"})
"""Types of quantised numbers; int32 is that of sums, and of biases."""

WIDE = np.int64
"""Type of sums before they become int32: numpy has fast products of neither."""


def _along(call: Call, parameter: Array, rank: int, axis: int) -> Array:
    """Return a scale or a zero point, of one element or of one for each place along an axis, to broadcast.

    Raises:
        OperatorError: There are several axes, as with blocks.
    """
    if parameter.size == 1:
        return parameter.reshape(())
    if parameter.ndim != 1:
        raise call.refusal("scales in blocks")
    return parameter.reshape([-1 if place == axis else 1 for place in range(rank)])


def _axis(call: Call, rank: int) -> int:
    if call.integer("block_size", 0):
        raise call.refusal("scales in blocks")
    return positive_axis(call.integer("axis", 1), rank)


def saturated(numbers: Array, dtype: str) -> Array:
    """Return numbers rounded to even, as integers within the range of a type."""
    limits = np.iinfo(dtype)
    return np.clip(np.rint(numbers), limits.min, limits.max).astype(dtype)


def _kind(call: Call, dtype: str | None) -> str:
    """Return the type of quantised results."""
    number = call.integer("output_dtype", 0)
    found = dtype or (ELEMENTS.get(number, str(number)) if number else "uint8")
    if found not in INTEGERS or found == "int32":
        raise call.refusal(f"results of {found}")
    return found


def _quantize(call: Call, x: Array, scale: Array, zero: Array | None = None) -> Array:
    axis = _axis(call, x.ndim)
    kind = _kind(call, None if zero is None else zero.dtype.name)
    steps = np.rint(x / _along(call, scale, x.ndim, axis))
    offset = 0 if zero is None else _along(call, zero, x.ndim, axis).astype(steps.dtype)
    return saturated(steps + offset, kind)


def _quantize_type(
    call: Call, x: TensorType, scale: TensorType, zero: TensorType | None = None
) -> TensorType:
    _axis(call, len(x.shape))
    return TensorType(_kind(call, zero and zero.dtype), x.shape)


def _dequantize(call: Call, x: Array, scale: Array, zero: Array | None = None) -> Array:
    axis = _axis(call, x.ndim)
    _check_integers(call, x.dtype.name)
    steps = x.astype(WIDE) - (0 if zero is None else _along(call, zero, x.ndim, axis).astype(WIDE))
    return steps.astype(scale.dtype) * _along(call, scale, x.ndim, axis)


def _dequantize_type(
    call: Call, x: TensorType, scale: TensorType, zero: TensorType | None = None
) -> TensorType:
    _axis(call, len(x.shape))
    _check_integers(call, x.dtype)
    return TensorType(scale.dtype, x.shape)


def _check_integers(call: Call, dtype: str) -> None:
    if dtype not in INTEGERS:
        raise call.refusal(f"operands of {dtype}")


def _dynamic(call: Call, x: Array) -> list[Array]:
    """Return 8-bit integers, and the scale and the zero point that the range of the numbers asks for."""
    least, greatest = min(x.min(initial=0), 0), max(x.max(initial=0), 0)
    scale = np.asarray((greatest - least) / x.dtype.type(255)).astype(x.dtype)
    if not scale:
        scale = np.ones((), x.dtype)
    zero = saturated(np.asarray(-least / scale), "uint8")
    return [saturated(np.rint(x / scale) + zero.astype(x.dtype), "uint8"), scale, zero]


def _dynamic_type(call: Call, x: TensorType) -> list[TensorType]:
    return [TensorType("uint8", x.shape), TensorType(x.dtype, ()), TensorType("uint8", ())]


def _centred(call: Call, x: Array, zero: Array | None, axis: int) -> Array:
    """Return integers without their zero point."""
    wide = x.astype(WIDE)
    return wide if zero is None else wide - _along(call, zero, x.ndim, axis).astype(WIDE)


def _columns(call: Call, b: Array, zero: Array | None) -> Array:
    return _centred(call, b, zero, b.ndim - 1)


def _rows(call: Call, a: Array, zero: Array | None) -> Array:
    if zero is not None and zero.size != 1:
        raise call.refusal("zero points of rows")
    return _centred(call, a, zero, 0)


def _integer_product(
    call: Call, a: Array, b: Array, a_zero: Array | None = None, b_zero: Array | None = None
) -> Array:
    return (_rows(call, a, a_zero) @ _columns(call, b, b_zero)).astype(np.int32)


def _integer_product_type(call: Call, a: TensorType, b: TensorType, *zeros: TensorType | None) -> TensorType:
    return TensorType("int32", matmul_shape(call, a.shape, b.shape))


def _product_as_numbers(
    call: Call,
    a: Array,
    b: Array,
    a_scale: Array,
    b_scale: Array,
    a_zero: Array | None = None,
    b_zero: Array | None = None,
    bias: Array | None = None,
) -> Array:
    sums = _integer_product(call, a, b, a_zero, b_zero).astype(a_scale.dtype)
    numbers = sums * (a_scale.reshape(()) * _along(call, b_scale, sums.ndim, sums.ndim - 1))
    return numbers if bias is None else numbers + bias


def _product_as_numbers_type(
    call: Call, a: TensorType, b: TensorType, a_scale: TensorType, *others: TensorType | None
) -> TensorType:
    return TensorType(a_scale.dtype, matmul_shape(call, a.shape, b.shape))


def _dynamic_product(
    call: Call, x: Array, b: Array, b_scale: Array, b_zero: Array | None = None, bias: Array | None = None
) -> Array:
    a, scale, zero = _dynamic(call, x)
    return _product_as_numbers(call, a, b, scale, b_scale, zero, b_zero, bias)


def _dynamic_product_type(call: Call, x: TensorType, b: TensorType, *others: TensorType | None) -> TensorType:
    return TensorType(x.dtype, matmul_shape(call, x.shape, b.shape))


def _integer_convolution(
    call: Call, x: Array, weights: Array, x_zero: Array | None = None, weights_zero: Array | None = None
) -> Array:
    centred = _rows(call, x, x_zero), _centred(call, weights, weights_zero, 0)
    return convolution(call, *centred).astype(np.int32)


def _integer_convolution_type(
    call: Call, x: TensorType, weights: TensorType, *zeros: TensorType | None
) -> TensorType:
    return _with_elements(convolution_type(call, x, weights), "int32")


def _with_elements(kind: TensorType, dtype: str) -> TensorType:
    return TensorType(dtype, kind.shape)


def _requantized(sums: Array, factor: Array, zero: Array) -> Array:
    return saturated(np.rint(sums.astype(factor.dtype) * factor) + zero.astype(factor.dtype), zero.dtype.name)


def _linear_product(
    call: Call,
    a: Array,
    a_scale: Array,
    a_zero: Array,
    b: Array,
    b_scale: Array,
    b_zero: Array,
    scale: Array,
    zero: Array,
) -> Array:
    sums = _rows(call, a, a_zero) @ _columns(call, b, b_zero)
    factor = a_scale.reshape(()) * _along(call, b_scale, max(sums.ndim, 1), max(sums.ndim, 1) - 1)
    return _requantized(sums, factor / scale.reshape(()), zero.reshape(()))


def _linear_product_type(call: Call, *given: TensorType) -> TensorType:
    a, b, zero = given[0], given[3], given[7]
    return TensorType(zero.dtype, matmul_shape(call, a.shape, b.shape))


def _linear_convolution(
    call: Call,
    x: Array,
    x_scale: Array,
    x_zero: Array,
    weights: Array,
    weights_scale: Array,
    weights_zero: Array,
    scale: Array,
    zero: Array,
    bias: Array | None = None,
) -> Array:
    centred = _rows(call, x, x_zero), _centred(call, weights, weights_zero, 0)
    sums = convolution(call, *centred, None if bias is None else bias.astype(WIDE))
    factor = x_scale.reshape(()) * _along(call, weights_scale, sums.ndim, 1) / scale.reshape(())
    return _requantized(sums, factor, zero.reshape(()))


def _linear_convolution_type(call: Call, *given: TensorType) -> TensorType:
    return _with_elements(convolution_type(call, given[0], given[3]), given[7].dtype)


def _number(x: Array, scale: Array, zero: Array | None) -> Array:
    steps = x.astype(WIDE) - (0 if zero is None else zero.reshape(()).astype(WIDE))
    return steps.astype(scale.dtype) * scale.reshape(())


def _quantized(numbers: Array, scale: Array, zero: Array) -> Array:
    steps = np.rint(numbers / scale.reshape(()))
    return saturated(steps + zero.reshape(()).astype(steps.dtype), zero.dtype.name)


def _linear_binary(function: np.ufunc) -> Operator:
    """Return an operator on two quantised arrays, whose result is quantised again."""

    def meaning(call: Call, *given: Array) -> Array:
        numbers = function(_number(*given[:3]), _number(*given[3:6]))
        return _quantized(numbers, given[6], given[7])

    def types(call: Call, *given: TensorType) -> TensorType:
        return _with_elements(broadcast(call, given[0], given[3]), given[7].dtype)

    return Operator(meaning, types)


def _linear_concat(call: Call, scale: Array, zero: Array, *given: Array) -> Array:
    parts = [_number(*given[place : place + 3]) for place in range(0, len(given), 3)]
    return _quantized(np.concatenate(parts, call.integer("axis")), scale, zero)


def _linear_concat_type(call: Call, scale: TensorType, zero: TensorType, *given: TensorType) -> TensorType:
    first, axis = given[0].shape, call.integer("axis")
    axis = positive_axis(axis, len(first))
    size = sum(part.shape[axis] for part in given[::3])
    return TensorType(zero.dtype, (*first[:axis], size, *first[axis + 1 :]))


def _linear_gemm(call: Call, *given: Array | None) -> Array:
    """Return a quantised Gemm, with a bias of int32 whose scale is that of the sums."""
    a, a_scale, a_zero, b, b_scale, b_zero, bias, scale, zero = (*given, *(None,) * (9 - len(given)))
    assert a is not None and a_scale is not None and b is not None and b_scale is not None
    if call.number("alpha", 1.0) != 1.0:
        raise call.refusal("alpha other than 1")
    left, right = _rows(call, a, a_zero), _centred(call, b, b_zero, 0 if call.integer("transB", 0) else 1)
    sums = (left.T if call.integer("transA", 0) else left) @ (right.T if call.integer("transB", 0) else right)
    sums = sums if bias is None else sums + bias.astype(WIDE)
    factor = a_scale.reshape(()) * b_scale.reshape(-1 if b_scale.size > 1 else ())
    if scale is None or zero is None:
        return sums.astype(factor.dtype) * factor
    return _requantized(sums, factor / scale.reshape(()), zero.reshape(()))


def _linear_gemm_type(call: Call, *given: TensorType | None) -> TensorType:
    a, a_scale, b, zero = given[0], given[1], given[3], given[8] if len(given) > 8 else None
    assert a is not None and a_scale is not None and b is not None
    left = a.shape[::-1] if call.integer("transA", 0) else a.shape
    right = b.shape[::-1] if call.integer("transB", 0) else b.shape
    return TensorType(zero.dtype if zero else a_scale.dtype, matmul_shape(call, left, right))


def _linear_unary(function: Callable[[Call, Array], Array]) -> Operator:
    """Return an operator on one quantised array, whose result is quantised again."""

    def meaning(call: Call, *given: Array | None) -> Array:
        x, scale, zero, result_scale, result_zero = (*given, *(None,) * (5 - len(given)))
        assert x is not None and scale is not None and result_scale is not None
        result_zero = np.zeros((), x.dtype) if result_zero is None else result_zero
        return _quantized(function(call, _number(x, scale, zero)), result_scale, result_zero)

    return Operator(meaning, same)


def _channels_last(call: Call) -> bool:
    return bool(call.integer("channels_last", 0))


def _means(call: Call, x: Array) -> Array:
    axes = range(1, x.ndim - 1) if _channels_last(call) else range(2, x.ndim)
    return x.mean(axis=tuple(axes), keepdims=True)


def _means_type(call: Call, x: TensorType, *others: TensorType | None) -> TensorType:
    ones = (1,) * (len(x.shape) - 2)
    shape = (x.shape[0], *ones, x.shape[-1]) if _channels_last(call) else (*x.shape[:2], *ones)
    return TensorType(x.dtype, shape)


def _sigmoid(call: Call, x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _leaky_relu(call: Call, x: Array) -> Array:
    return np.where(x < 0, x * x.dtype.type(call.number("alpha", 0.01)), x)


OPERATORS: Mapping[str, Operator] = {
    "QuantizeLinear": Operator(_quantize, _quantize_type),
    "DequantizeLinear": Operator(_dequantize, _dequantize_type),
    "DynamicQuantizeLinear": Operator(_dynamic, _dynamic_type),
    "MatMulInteger": Operator(_integer_product, _integer_product_type),
    "ConvInteger": Operator(_integer_convolution, _integer_convolution_type),
    "QLinearMatMul": Operator(_linear_product, _linear_product_type),
    "QLinearConv": Operator(_linear_convolution, _linear_convolution_type),
    "com.microsoft.DynamicQuantizeMatMul": Operator(_dynamic_product, _dynamic_product_type),
    "com.microsoft.MatMulIntegerToFloat": Operator(_product_as_numbers, _product_as_numbers_type),
    "com.microsoft.QGemm": Operator(_linear_gemm, _linear_gemm_type),
    "com.microsoft.QLinearAdd": _linear_binary(np.add),
    "com.microsoft.QLinearMul": _linear_binary(np.multiply),
    "com.microsoft.QLinearConcat": Operator(_linear_concat, _linear_concat_type),
    "com.microsoft.QLinearGlobalAveragePool": Operator(_linear_unary(_means).meaning, _means_type),
    "com.microsoft.QLinearLeakyRelu": _linear_unary(_leaky_relu),
    "com.microsoft.QLinearSigmoid": _linear_unary(_sigmoid),
}
