"""Quantised operators against ONNX Runtime: integers are equal, bit for bit."""

import numpy as np
import pytest

from irgym.base.errors import IrgymError
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.reference.operators import evaluate, types_of

KINDS = ("uint8", "int8", "uint16", "int16")


def numbers(rng, *shape):
    return rng.uniform(-3, 3, shape).astype(np.float32)


def scales(rng, count=None):
    return np.asarray(rng.uniform(0.001, 0.1, () if count is None else count), np.float32)


def whole(rng, kind, *shape):
    limits = np.iinfo(kind)
    return np.asarray(rng.integers(limits.min, limits.max + 1, shape), kind)


@pytest.mark.parametrize("kind", KINDS)
def test_quantize_and_dequantize(oracle, rng, kind):
    for index in range(10):
        axis = int(rng.integers(-3, 3))
        count = None if index % 2 else 3
        zero = whole(rng, kind) if count is None else whole(rng, kind, count)
        attributes = {} if count is None else {"axis": axis}
        scale = scales(rng, count)
        oracle.equals("QuantizeLinear", [numbers(rng, 3, 3, 3), scale, zero], attributes)
        oracle.equals("DequantizeLinear", [whole(rng, kind, 3, 3, 3), scale, zero], attributes)


def test_the_zero_point_may_be_missing(oracle, rng):
    oracle.equals("QuantizeLinear", [numbers(rng, 4), scales(rng)])
    oracle.equals("DequantizeLinear", [whole(rng, "int8", 4), scales(rng)])
    oracle.equals("DequantizeLinear", [whole(rng, "int32", 4), scales(rng)])
    oracle.equals("QuantizeLinear", [numbers(rng, 4), scales(rng)], {"output_dtype": 3})


def test_ties_are_rounded_to_even_and_results_saturate(oracle):
    x = np.array([-1e9, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 1e9], np.float32)
    for zero in (np.array(0, np.int8), np.array(1, np.int8), np.array(3, np.uint8)):
        oracle.equals("QuantizeLinear", [x, np.array(1, np.float32), zero])


def test_dynamic_quantisation(oracle, rng):
    for index in range(20):
        x = numbers(rng, 3, 4) + np.float32(index - 10)
        oracle.equals("DynamicQuantizeLinear", [x], outputs=3)
    oracle.equals("DynamicQuantizeLinear", [np.zeros((2, 2), np.float32)], outputs=3)


@pytest.mark.parametrize("kinds", [("uint8", "int8"), ("uint8", "uint8"), ("int8", "int8")])
def test_products_of_integers(oracle, rng, kinds):
    left, right = kinds
    for index in range(12):
        m, k, n = (int(size) for size in rng.integers(1, 6, 3))
        a, b = whole(rng, left, *(2,) * (index % 2), m, k), whole(rng, right, k, n)
        zeros = [whole(rng, left), whole(rng, right) if index % 3 else whole(rng, right, n)]
        oracle.equals("MatMulInteger", [a, b, *zeros[: index % 3]])
        scale = scales(rng) if index % 3 else scales(rng, n)
        linear = [a, scales(rng), zeros[0], b, scale, zeros[1], np.float32(k), whole(rng, left)]
        oracle.equals("QLinearMatMul", [np.asarray(array) for array in linear], off=0.02)


def test_products_of_integers_that_become_numbers(oracle, rng):
    for index in range(24):
        m, k, n = (int(size) for size in rng.integers(1, 6, 3))
        a, b = whole(rng, "uint8", *(2,) * (index % 2), m, k), whole(rng, "int8", k, n)
        several = index % 3 == 0
        zeros = [whole(rng, "uint8"), whole(rng, "int8", n) if several else whole(rng, "int8")]
        scale, bias = scales(rng, n) if several else scales(rng), numbers(rng, n)
        operands = [a, b, scales(rng), scale, *zeros, bias]
        oracle.agrees("com.microsoft.MatMulIntegerToFloat", operands[: 6 + index % 2], doubles=False)
        dynamic = [numbers(rng, *a.shape), b, scale, zeros[1], bias]
        oracle.agrees("com.microsoft.DynamicQuantizeMatMul", dynamic[: 4 + index % 2], doubles=False)


@pytest.mark.parametrize("kinds", [("uint8", "int8"), ("uint8", "uint8"), ("int8", "int8")])
def test_convolutions_of_integers(oracle, rng, kinds):
    left, right = kinds
    for index in range(12):
        group = 1 + index % 2
        x, w = whole(rng, left, 1, 2 * group, 5, 5), whole(rng, right, 3 * group, 2, 3, 3)
        attributes = {"pads": (1, 0, 1, 0), "strides": (1, 2), "group": group}
        zeros = [whole(rng, left), np.array(0, right) if index % 3 else np.zeros(3 * group, right)]
        if left == "uint8":
            oracle.equals("ConvInteger", [x, w, zeros[0], np.array(0, right)], attributes)
        scale = scales(rng) if index % 3 else scales(rng, 3 * group)
        linear = [x, scales(rng), zeros[0], w, scale, zeros[1], np.float32(2), whole(rng, left)]
        bias = [whole(rng, "int16", 3 * group).astype(np.int32)] * (index % 2)
        oracle.equals("QLinearConv", [np.asarray(array) for array in [*linear, *bias]], attributes, off=0.02)


@pytest.mark.parametrize("kind", ["uint8", "int8"])
def test_sums_products_and_concatenations_of_quantised_numbers(oracle, rng, kind):
    for index in range(10):
        b = (3, 4) if index % 2 else (4,)
        operands = [whole(rng, kind, 3, 4), scales(rng), whole(rng, kind), whole(rng, kind, *b), scales(rng)]
        operands += [whole(rng, kind), scales(rng), whole(rng, kind)]
        for operator in ("com.microsoft.QLinearAdd", "com.microsoft.QLinearMul"):
            oracle.equals(operator, operands, off=0.1)
        parts = [whole(rng, kind, 2, 4), scales(rng), whole(rng, kind), *operands[:3]]
        oracle.equals(
            "com.microsoft.QLinearConcat", [scales(rng), whole(rng, kind), *parts], {"axis": -2}, off=0.1
        )


@pytest.mark.parametrize("kind", ["uint8", "int8"])
def test_layers_of_quantised_numbers(oracle, rng, kind):
    for index in range(10):
        m, k, n = (int(size) for size in rng.integers(1, 6, 3))
        turned, several = index % 2, index % 3 == 0
        b = np.clip(whole(rng, "int8", *((n, k) if turned else (k, n))), -100, 100)
        bias = whole(rng, "int16", n).astype(np.int32)
        operands = [whole(rng, kind, m, k), scales(rng), whole(rng, kind), b]
        operands += [
            scales(rng, n) if several else scales(rng),
            np.zeros(n if several else (), np.int8),
            bias,
        ]
        ends = [np.asarray(2, np.float32), whole(rng, kind)]
        oracle.equals("com.microsoft.QGemm", [*operands, *ends], {"transB": turned}, off=0.05)
        x = [whole(rng, kind, 1, 3, 4, 2), scales(rng), whole(rng, kind), scales(rng), whole(rng, kind)]
        last = {"channels_last": turned}
        oracle.equals("com.microsoft.QLinearGlobalAveragePool", x, last, off=0.2)
        oracle.equals("com.microsoft.QLinearSigmoid", x, off=0.1)
        oracle.equals("com.microsoft.QLinearLeakyRelu", x, {"alpha": 0.25}, off=0.1)


def test_blocks_and_short_integers_are_refused(rng):
    x, scale = whole(rng, "int8", 4, 4), scales(rng)
    with pytest.raises(IrgymError, match="blocks"):
        evaluate("DequantizeLinear", [x, scale], {"block_size": 2})
    with pytest.raises(IrgymError, match="int4"):
        types_of("DequantizeLinear", [TensorType("int4", (2,)), TensorType("float32", ())], {})
    with pytest.raises(IrgymError, match="rows"):
        evaluate("MatMulInteger", [x, x, whole(rng, "int8", 4)], {})
