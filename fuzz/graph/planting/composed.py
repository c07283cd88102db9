"""Faults in softmax, attention, normalisation and activations, composed or as operators."""

import numpy as np

from fuzz.graph.planting.kinds import Kind

X = "float[4,8] x"
AXIS = {"last": [-1]}
QKV = "float[1,2,6,6] q, float[1,2,6,6] k, float[1,2,6,6] v"
SCORES = "t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) z = Mul(s, scale)"
ATTEND = "p = Softmax<axis=-1>(m) y = MatMul(p, v)"
CAUSAL = np.where(np.tri(6, dtype=bool), 0.0, -1e9).astype(np.float32)
LATE = np.where(np.tri(6, k=1, dtype=bool), 0.0, -1e9).astype(np.float32)
SCALE = {"scale": 6**-0.5, "other": 6**-1.0, "near": 0.41}
VARIANCE = "m = ReduceMean(x, last) d = Sub(x, m) q = Mul(d, d) "
LAYER = {"last": [-1], "g": (8,), "b": (8,), "e": 1e-5, "f": 1e-6, "n": 7.0, "low": np.array([-1], np.int64)}

KINDS = (
    Kind(
        "softmax without subtracting the maximum",
        X,
        "y = Softmax(x)",
        "e = Exp(x) s = ReduceSum(e, last) y = Div(e, s)",
        AXIS,
    ),
    Kind(
        "softmax without subtracting the maximum, after a product",
        X,
        "h = MatMul(x, w) y = Softmax(h)",
        "h = MatMul(x, w) e = Exp(h) s = ReduceSum(e, last) y = Div(e, s)",
        {**AXIS, "w": (8, 8)},
    ),
    Kind(
        "softmax over another axis of the same size",
        "float[8,8] x",
        "y = Softmax<axis=1>(x)",
        "y = Softmax<axis=0>(x)",
    ),
    Kind("logarithm of softmax in place of LogSoftmax", X, "y = LogSoftmax(x)", "p = Softmax(x) y = Log(p)"),
    Kind(
        "LogSumExp without subtracting the maximum",
        X,
        "y = ReduceLogSumExp(x, last)",
        "e = Exp(x) s = ReduceSum(e, last) y = Log(s)",
        AXIS,
    ),
    Kind(
        "Hardmax that marks all maxima",
        X,
        "y = Hardmax(x)",
        "m = ReduceMax(x, last) t = Equal(x, m) y = Cast<to=1>(t)",
        AXIS,
    ),
    Kind(
        "attention with the scale of the whole width",
        QKV,
        f"{SCORES} m = Identity(z) {ATTEND}",
        f"{SCORES} m = Mul(z, near) {ATTEND}",
        SCALE,
    ),
    Kind(
        "causal mask one later",
        QKV,
        f"{SCORES} m = Add(z, mask) {ATTEND}",
        f"{SCORES} m = Add(z, late) {ATTEND}",
        {**SCALE, "mask": CAUSAL, "late": LATE},
    ),
    Kind(
        "mask of -1e4 in place of -infinity, on a row that is masked whole or scores of thousands",
        f"{QKV}, bool[1,1,6,6] keep",
        f"{SCORES} m = Where(keep, z, low) {ATTEND}",
        f"{SCORES} m = Where(keep, z, lower) {ATTEND}",
        {**SCALE, "low": -1e9, "lower": -1e4},
    ),
    Kind(
        "mask added where it was put in place",
        f"{QKV}, bool[1,1,6,6] keep",
        f"{SCORES} m = Where(keep, z, low) {ATTEND}",
        f"{SCORES} a = Where(keep, zero, low) m = Add(z, a) {ATTEND}",
        {**SCALE, "low": -1e9, "zero": 0.0},
    ),
    Kind(
        "mask of -infinity in place of -1e9 (rows that are masked whole)",
        f"{QKV}, bool[1,1,6,6] keep",
        f"{SCORES} m = Where(keep, z, low) {ATTEND}",
        f"{SCORES} m = Where(keep, z, lower) {ATTEND}",
        {**SCALE, "low": -1e9, "lower": -np.inf},
    ),
    Kind(
        "mask ignored in its first column",
        f"{QKV}, bool[1,1,6,6] keep",
        f"{SCORES} m = Where(keep, z, low) {ATTEND}",
        f"{SCORES} k2 = Or(keep, first) m = Where(k2, z, low) {ATTEND}",
        {**SCALE, "low": -1e9, "first": np.arange(6) == 0},
    ),
    Kind(
        "key mask of whole numbers taken for one per query",
        "int64[6,6] keep, float[6,6] s",
        "c = Cast<to=9>(keep) z = Where(c, s, low) y = Softmax(z)",
        "t = Transpose(keep) c = Cast<to=9>(t) z = Where(c, s, low) y = Softmax(z)",
        {"low": -1e9},
    ),
    Kind(
        "LayerNormalization with a smaller epsilon",
        X,
        "y = LayerNormalization<epsilon=1e-5>(x, g, b)",
        "y = LayerNormalization<epsilon=1e-6>(x, g, b)",
        LAYER,
    ),
    Kind(
        "epsilon outside of the root",
        X,
        VARIANCE + "a = ReduceMean(q, last) e1 = Add(a, e) r = Sqrt(e1) y = Div(d, r)",
        VARIANCE + "a = ReduceMean(q, last) r = Sqrt(a) e1 = Add(r, e) y = Div(d, e1)",
        LAYER,
    ),
    Kind(
        "variance divided by n - 1",
        X,
        VARIANCE + "a = ReduceMean(q, last) y = Sqrt(a)",
        VARIANCE + "a = ReduceSum(q, last) c = Div(a, n) y = Sqrt(c)",
        LAYER,
    ),
    Kind(
        "normalisation without subtracting the mean",
        X,
        "y = LayerNormalization(x, g, b)",
        "q = Mul(x, x) a = ReduceMean(q, last) c = Add(a, e) r = Sqrt(c) "
        "n0 = Div(x, r) n1 = Mul(n0, g) y = Add(n1, b)",
        LAYER,
    ),
    Kind(
        "LayerNormalization over another axis",
        "float[8,8] x",
        "y = LayerNormalization<axis=1>(x, g, b)",
        "t = Transpose(x) u = LayerNormalization<axis=1>(t, g, b) y = Transpose(u)",
        LAYER,
    ),
    Kind(
        "LayerNormalization over two axes for one",
        "float[4,8] x",
        "y = LayerNormalization<axis=1>(x, s)",
        "y = LayerNormalization<axis=0>(x, s)",
        {"s": np.ones((8,), np.float32)},
    ),
    Kind(
        "RMS without epsilon",
        X,
        "q = Mul(x, x) a = ReduceMean(q, last) c = Add(a, e) r = Sqrt(c) y = Div(x, r)",
        "q = Mul(x, x) a = ReduceMean(q, last) r = Sqrt(a) y = Div(x, r)",
        LAYER,
    ),
    Kind(
        "L2 normalisation without the lower bound",
        X,
        "l = ReduceL2(x, last) c = Max(l, e) y = Div(x, c)",
        "l = ReduceL2(x, last) y = Div(x, l)",
        LAYER,
    ),
    Kind("Gelu by tanh", X, "y = Gelu(x)", 'y = Gelu<approximate="tanh">(x)', opset=20),
    Kind(
        "Gelu by a sigmoid",
        X,
        "y = Gelu(x)",
        "s = Mul(x, k) g = Sigmoid(s) y = Mul(x, g)",
        {"k": 1.702},
        opset=20,
    ),
    Kind(
        "sigmoid that overflows",
        X,
        "y = Sigmoid(x)",
        "e = Exp(x) o = Add(e, one) y = Div(e, o)",
        {"one": 1.0},
    ),
    Kind(
        "softplus that overflows", X, "y = Softplus(x)", "e = Exp(x) o = Add(e, one) y = Log(o)", {"one": 1.0}
    ),
    Kind(
        "tanh of exponentials that overflow",
        X,
        "y = Tanh(x)",
        "e = Exp(x) n = Neg(x) f = Exp(n) u = Sub(e, f) l = Add(e, f) y = Div(u, l)",
    ),
    Kind("Relu6 without its upper bound", X, "y = Clip(x, lo, hi)", "y = Relu(x)", {"lo": 0.0, "hi": 6.0}),
    Kind("clipping at 20 left out", X, "y = Clip(x, lo, hi)", "y = Identity(x)", {"lo": -20.0, "hi": 20.0}),
    Kind(
        "Clip for Relu with a bound of 100", X, "y = Relu(x)", "y = Clip(x, lo, hi)", {"lo": 0.0, "hi": 100.0}
    ),
    Kind(
        "bounds of Clip negated and swapped",
        X,
        "y = Clip(x, lo, hi)",
        "y = Clip(x, lo2, hi2)",
        {"lo": -1.0, "hi": 2.0, "lo2": -2.0, "hi2": 1.0},
    ),
    Kind("LeakyRelu with another slope", X, "y = LeakyRelu<alpha=0.01>(x)", "y = LeakyRelu<alpha=0.02>(x)"),
    Kind("Elu with another alpha", X, "y = Elu<alpha=1.0>(x)", "y = Elu<alpha=1.01>(x)"),
    Kind("Selu for Elu", X, "y = Elu(x)", "y = Selu(x)"),
    Kind("HardSigmoid with 1/6 for 0.2", X, "y = HardSigmoid(x)", "y = HardSigmoid<alpha=0.1666667>(x)"),
    Kind(
        "HardSwish without its bounds",
        X,
        "y = HardSwish(x)",
        "a = Mul(x, six) c = Add(a, half) y = Mul(x, c)",
        {"six": 1 / 6, "half": 0.5},
    ),
    Kind(
        "PRelu with its slopes reversed",
        X,
        "y = PRelu(x, a)",
        "y = PRelu(x, r)",
        {"a": np.linspace(0.1, 0.2, 8, dtype=np.float32), "r": np.linspace(0.2, 0.1, 8, dtype=np.float32)},
    ),
    Kind(
        "ThresholdedRelu with >= for >",
        X,
        "y = ThresholdedRelu<alpha=1.0>(x)",
        "c = GreaterOrEqual(x, one) y = Where(c, x, zero)",
        {"one": 1.0, "zero": 0.0},
    ),
    Kind(
        "Shrink with its bias left out", X, "y = Shrink<lambd=1.0, bias=0.5>(x)", "y = Shrink<lambd=1.0>(x)"
    ),
    Kind(
        "softsign written with the square",
        X,
        "y = Softsign(x)",
        "q = Mul(x, x) o = Add(q, one) r = Sqrt(o) y = Div(x, r)",
        {"one": 1.0},
    ),
    Kind("Celu with alpha 1", X, "y = Celu<alpha=2.0>(x)", "y = Celu<alpha=1.0>(x)"),
)
"""Kinds of faults."""
