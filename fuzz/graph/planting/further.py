"""Faults in rarer operators, in branches, and in constants of comparisons."""

import numpy as np

from fuzz.graph.planting.kinds import Kind

X = "float[4,8] x"
IMAGE = "float[1,2,6,6] x"
GRID = {"g": np.random.default_rng(3).uniform(-1.3, 1.3, (1, 4, 4, 2)).astype(np.float32)}
K = {"k": 0.3, "one": 1.0, "zero": 0.0}


def branches(condition: str, first: str, second: str) -> str:
    """Return a choice between two graphs."""
    return (
        f"{condition} y = If(c) <then_branch = t () => (float[4,8] u) {{ u = {first} }}, "
        f"else_branch = e () => (float[4,8] v) {{ v = {second} }}>"
    )


KINDS = (
    Kind(
        "a comparison with 0.3 that is strict",
        X,
        "c = GreaterOrEqual(x, k) y = Where(c, one, zero)",
        "c = Greater(x, k) y = Where(c, one, zero)",
        K,
    ),
    Kind(
        "equality with 0.3 that is never true",
        X,
        "c = Equal(x, k) y = Where(c, one, x)",
        "y = Identity(x)",
        K,
    ),
    Kind(
        "a threshold of 0.3 that is included",
        X,
        "y = ThresholdedRelu<alpha=0.3>(x)",
        "c = GreaterOrEqual(x, k) y = Where(c, x, zero)",
        K,
    ),
    Kind(
        "shrinking at 0.3 that includes it",
        X,
        "y = Shrink<lambd=0.3>(x)",
        "m = Abs(x) c = GreaterOrEqual(m, k) y = Where(c, x, zero)",
        K,
    ),
    Kind(
        "a threshold of 37.5 that is strict",
        X,
        "c = GreaterOrEqual(x, k) y = Where(c, one, zero)",
        "c = Greater(x, k) y = Where(c, one, zero)",
        {**K, "k": 37.5},
    ),
    Kind(
        "a threshold of 1e6 that is strict",
        X,
        "c = GreaterOrEqual(x, k) y = Where(c, one, x)",
        "c = Greater(x, k) y = Where(c, one, x)",
        {**K, "k": 1e6},
    ),
    Kind(
        "a token of 41 that is not left out",
        "int64[2,6] i",
        "g = Gather(t, i) c = Equal(i, pad) u = Unsqueeze(c, last) y = Where(u, zero, g)",
        "y = Gather(t, i)",
        {"t": (900, 4), "pad": np.array(41, np.int64), "last": [-1], "zero": 0.0},
    ),
    Kind(
        "branches exchanged",
        f"{X}, bool c",
        branches("", "Relu(x)", "Neg(x)"),
        branches("", "Neg(x)", "Relu(x)"),
    ),
    Kind(
        "one branch for both",
        f"{X}, bool c",
        branches("", "Relu(x)", "Neg(x)"),
        branches("", "Relu(x)", "Relu(x)"),
    ),
    Kind(
        "the branch of a sum below zero",
        X,
        branches("s = ReduceSum<keepdims=0>(x) c = Less(s, zero)", "Relu(x)", "Neg(x)"),
        "y = Neg(x)",
        {"zero": 0.0},
    ),
    Kind(
        "the branch of a maximum above 50",
        X,
        branches("s = ReduceMax<keepdims=0>(x) c = Greater(s, k)", "Relu(x)", "Neg(x)"),
        "y = Neg(x)",
        {"k": 50.0},
    ),
    Kind(
        "GridSample with aligned corners",
        IMAGE,
        "y = GridSample<align_corners=0>(x, g)",
        "y = GridSample<align_corners=1>(x, g)",
        GRID,
    ),
    Kind(
        "GridSample with zeros for the border",
        IMAGE,
        'y = GridSample<padding_mode="border">(x, g)',
        "y = GridSample(x, g)",
        GRID,
    ),
    Kind(
        "GridSample of the nearest",
        IMAGE,
        "y = GridSample(x, g)",
        'y = GridSample<mode="nearest">(x, g)',
        GRID,
    ),
    Kind("Mish by tanh alone", X, "y = Mish(x)", "t = Tanh(x) y = Mul(x, t)"),
    Kind(
        "mean and variance over other axes",
        IMAGE,
        "y = MeanVarianceNormalization<axes=[0,2,3]>(x)",
        "y = MeanVarianceNormalization<axes=[0,1,2,3]>(x)",
    ),
    Kind("determinant without its sign", "float[3,3,3] x", "y = Det(x)", "d = Det(x) y = Abs(d)"),
    Kind(
        "EyeLike of another diagonal",
        "float[5,5] x",
        "e = EyeLike<k=1>(x) y = Mul(e, x)",
        "e = EyeLike<k=-1>(x) y = Mul(e, x)",
    ),
    Kind("a root of squares that underflow", X, "y = Abs(x)", "q = Mul(x, x) y = Sqrt(q)"),
    Kind(
        "a norm of squares that overflow",
        "float[4,8] x",
        "m = Mul(x, big) n = ReduceL1(m, last) y = Div(m, n)",
        "n = ReduceL2(x, last) y = Div(x, n)",
        {"big": 1e18, "last": [-1]},
    ),
    Kind(
        "division by a sum that may be zero",
        X,
        "s = ReduceSum(x, last) z = Equal(s, zero) d = Where(z, one, s) y = Div(x, d)",
        "s = ReduceSum(x, last) y = Div(x, s)",
        {"last": [-1], **K},
    ),
    Kind(
        "variance as the mean of squares less the square of the mean, unbounded",
        X,
        "m = ReduceMean(x, last) d = Sub(x, m) q = Mul(d, d) v = ReduceMean(q, last) y = Sqrt(v)",
        "q = Mul(x, x) a = ReduceMean(q, last) v = Sub(a, one) y = Sqrt(v)",
        {"last": [-1], **K},
    ),
    Kind(
        "cosine similarity without its bound",
        "float[4,8] a, float[4,8] b",
        "p = Mul(a, b) s = ReduceSum(p, last) n = ReduceL2(a, last) m = ReduceL2(b, last) q = "
        "Mul(n, m) r = Max(q, eps) y = Div(s, r)",
        "p = Mul(a, b) s = ReduceSum(p, last) n = ReduceL2(a, last) m = ReduceL2(b, last) q = "
        "Mul(n, m) y = Div(s, q)",
        {"last": [-1], "eps": 1e-8},
    ),
    Kind(
        "focal weight with another exponent",
        X,
        "p = Sigmoid(x) o = Sub(one, p) w = Pow(o, two) l = Log(p) y = Mul(w, l)",
        "p = Sigmoid(x) o = Sub(one, p) l = Log(p) y = Mul(o, l)",
        {**K, "two": 2.0},
    ),
    Kind(
        "hinge for its square",
        X,
        "h = Sub(one, x) r = Relu(h) y = Mul(r, r)",
        "h = Sub(one, x) y = Relu(h)",
        K,
    ),
    Kind(
        "rotation of positions the other way",
        "float[1,4,8] x",
        "a, b = Split<axis=-1, num_outputs=2>(x) n = Neg(b) r = Concat<axis=-1>(n, a) y = Add(x, r)",
        "a, b = Split<axis=-1, num_outputs=2>(x) n = Neg(a) r = Concat<axis=-1>(b, n) y = Add(x, r)",
    ),
    Kind(
        "queries and keys exchanged",
        "float[1,6,4] q, float[1,6,4] k",
        "t = Transpose<perm=[0,2,1]>(k) s = MatMul(q, t) y = Softmax(s)",
        "t = Transpose<perm=[0,2,1]>(q) s = MatMul(k, t) y = Softmax(s)",
    ),
    Kind(
        "heads split in another order",
        "float[1,6,8] x",
        "r = Reshape(x, s) y = Transpose<perm=[0,2,1,3]>(r)",
        "r = Reshape(x, s2) y = Identity(r)",
        {"s": [1, 6, 2, 4], "s2": [1, 2, 6, 4]},
    ),
    Kind(
        "Attention that is not causal",
        "float[1,2,6,4] q, float[1,2,6,4] k, float[1,2,6,4] v",
        "y = Attention<is_causal=1>(q, k, v)",
        "y = Attention(q, k, v)",
        opset=23,
    ),
    Kind(
        "Attention with soft-capped scores",
        "float[1,2,6,4] q, float[1,2,6,4] k, float[1,2,6,4] v",
        "y = Attention(q, k, v)",
        "y = Attention<softcap=50.0>(q, k, v)",
        opset=23,
    ),
    Kind(
        "whole numbers that wrap around in 8 bits",
        "uint8[4,8] a, uint8[4,8] b",
        "c = Cast<to=6>(a) d = Cast<to=6>(b) y = Add(c, d)",
        "s = Add(a, b) y = Cast<to=6>(s)",
        results="int32 y",
    ),
    Kind(
        "zero point left out of a product of bytes",
        "uint8[4,8] a, uint8[8,4] b",
        "y = MatMulInteger(a, b, z)",
        "y = MatMulInteger(a, b)",
        {"z": np.array(3, np.uint8)},
        results="int32 y",
    ),
    Kind(
        "dynamic quantisation by the greatest magnitude",
        X,
        "y, s, z = DynamicQuantizeLinear(x)",
        "m = Abs(x) y, s, z = DynamicQuantizeLinear(m)",
        results="uint8 y",
    ),
    Kind(
        "TopK that is not in order",
        "float[4,8] x",
        "y, i = TopK(x, k)",
        "v, i = TopK(x, k) y = Gather<axis=1>(v, o)",
        {"k": [3], "o": [0, 2, 1]},
    ),
    Kind(
        "the mask of an upper triangle with its diagonal",
        "float[6,6] x",
        "u = Trilu<upper=1>(x, k) y = Sub(x, u)",
        "u = Trilu<upper=1>(x, l) y = Sub(x, u)",
        {"k": np.array(1, np.int64), "l": np.array(0, np.int64)},
    ),
    Kind(
        "a loop that runs once less",
        X,
        "y = Loop(n, , x) <body = b (int64 i, bool go, float[4,8] h) => (bool on, float[4,8] "
        "r) { on = Identity(go) k1 = Constant<value_float=0.5>() r = Mul(h, k1) }>",
        "y = Loop(m, , x) <body = b (int64 i, bool go, float[4,8] h) => (bool on, float[4,8] "
        "r) { on = Identity(go) k1 = Constant<value_float=0.5>() r = Mul(h, k1) }>",
        {**K, "n": np.array(3, np.int64), "m": np.array(2, np.int64)},
    ),
    Kind(
        "sums of rows that are masked, by their number",
        "float[4,8] x, int64[4,8] keep",
        "f = Cast<to=1>(keep) p = Mul(x, f) s = ReduceSum(p, last) n = ReduceSum(f, last) c = "
        "Max(n, one) y = Div(s, c)",
        "f = Cast<to=1>(keep) p = Mul(x, f) s = ReduceSum(p, last) n = ReduceSum(f, last) y = Div(s, n)",
        {"last": [-1], **K},
    ),
)
"""Kinds of faults."""
