"""Faults in single operators on numbers: signs, ties, rounding, types, numbers that are none."""

import numpy as np

from graph_planting.kinds import Kind

X = "float[4,8] x"
XY = "float[4,8] a, float[4,8] b"
I8 = "int32[4,8] a, int32[4,8] b"
SIGNED = {"a": (-20, 20), "b": (1, 7)}
INF, NAN = float("inf"), float("nan")
ONE = {"one": 1.0, "zero": 0.0}

KINDS = (
    Kind("floor for truncation in a division of whole numbers", I8, "y = Div(a, b)", "c = Cast<to=11>(a) d = Cast<to=11>(b) e = Div(c, d) f = Floor(e) y = Cast<to=6>(f)", results="int32 y", ranges=SIGNED),
    Kind("Mod with the dividend's sign", I8, "y = Mod(a, b)", "y = Mod<fmod=1>(a, b)", results="int32 y", ranges=SIGNED),
    Kind("fmod with the divisor's sign", XY, "y = Mod<fmod=1>(a, b)", "d = Div(a, b) f = Floor(d) p = Mul(f, b) y = Sub(a, p)"),
    Kind("Round away from zero at ties", X, "y = Round(x)", "s = Sign(x) m = Abs(x) h = Add(m, half) f = Floor(h) y = Mul(s, f)", {"half": 0.5}),
    Kind("Round as floor of x + 1/2", X, "y = Round(x)", "h = Add(x, half) y = Floor(h)", {"half": 0.5}),
    Kind("Floor for Cast's truncation", X, "y = Cast<to=7>(x)", "f = Floor(x) y = Cast<to=7>(f)", results="int64 y"),
    Kind("Round for Cast's truncation", X, "y = Cast<to=6>(x)", "f = Round(x) y = Cast<to=6>(f)", results="int32 y"),
    Kind("Cast to 32 bits by way of 8", X, "y = Cast<to=6>(x)", "t = Clip(x, lo, hi) y = Cast<to=6>(t)", {"lo": -128.0, "hi": 127.0}, results="int32 y"),
    Kind("half precision on the way", X, "y = Mul(x, k)", "h = Cast<to=10>(x) r = Cast<to=1>(h) y = Mul(r, k)", {"k": 3.0}),
    Kind("sign of zero as 1", X, "y = Sign(x)", "c = Less(x, zero) y = Where(c, minus, one)", {**ONE, "minus": -1.0}),
    Kind("Abs of the power's base", X, "y = Pow(x, three)", "m = Abs(x) y = Pow(m, three)", {"three": 3.0}),
    Kind("power by exponential and logarithm", X, "y = Pow(x, two)", "l = Log(x) m = Mul(l, two) y = Exp(m)", {"two": 2.0}),
    Kind("square root of squares for the number", X, "y = Identity(x)", "q = Mul(x, x) y = Sqrt(q)"),
    Kind("square root of numbers below zero as 0", X, "y = Sqrt(x)", "r = Relu(x) y = Sqrt(r)"),
    Kind("logarithm without its epsilon", X, "m = Abs(x) p = Add(m, eps) y = Log(p)", "m = Abs(x) y = Log(m)", {"eps": 1e-7}),
    Kind("logarithm with another epsilon", X, "m = Abs(x) p = Add(m, eps) y = Log(p)", "m = Abs(x) p = Add(m, more) y = Log(p)", {"eps": 1e-7, "more": 1e-6}),
    Kind("logarithm of one plus x at small x", X, "m = Abs(x) p = Add(m, one) y = Log(p)", "y = Abs(x)", ONE),
    Kind("Less for LessOrEqual", XY, "y = LessOrEqual(a, b)", "y = Less(a, b)", results="bool y"),
    Kind("Greater for GreaterOrEqual against a constant", X, "c = GreaterOrEqual(x, one) y = Where(c, x, zero)", "c = Greater(x, one) y = Where(c, x, zero)", ONE),
    Kind("Equal that is never true", XY, "y = Equal(a, b)", "c = Less(a, b) d = Greater(a, b) e = Or(c, d) f = Xor(c, d) n = And(e, f) o = Not(n) p = Not(o) q = Not(p) y = And(q, no)", {"no": np.array(False)}, results="bool y"),
    Kind("branches of Where exchanged at ties", XY, "c = Less(a, b) y = Where(c, neg, one)", "c = LessOrEqual(a, b) y = Where(c, neg, one)", {**ONE, "neg": -1.0}),
    Kind("Max as a choice (no number on the left)", XY, "y = Max(a, b)", "c = Greater(a, b) y = Where(c, a, b)"),
    Kind("Min that drops what is no number", XY, "y = Min(a, b)", "n = IsNaN(a) m = Min(a, b) y = Where(n, b, m)"),
    Kind("product over an axis without what is no number", X, "y = ReduceProd(x, last)", "n = IsNaN(x) c = Where(n, one, x) y = ReduceProd(c, last)", {"last": [-1], **ONE}),
    Kind("IsNaN for what is infinite too", X, "n = IsNaN(x) y = Where(n, zero, x)", "n = IsNaN(x) i = IsInf(x) o = Or(n, i) y = Where(o, zero, x)", ONE),
    Kind("IsInf for the negative one alone", X, "n = IsInf(x) y = Where(n, zero, x)", "n = IsInf<detect_positive=0>(x) y = Where(n, zero, x)", ONE),
    Kind("x / x as 1", X, "y = Div(x, x)", "z = Sub(x, x) o = Mul(z, zero) y = Add(one, o)", {**ONE}),
    Kind("x - x as 0", X, "y = Sub(x, x)", "m = Abs(x) l = Less(m, zero) y = Cast<to=1>(l)", ONE),
    Kind("0 * x as 0", X, "z = Mul(x, zero) y = Add(z, one)", "m = Abs(x) l = Less(m, zero) z = Cast<to=1>(l) y = Add(z, one)", ONE),
    Kind("two factors merged into infinity", X, "s = Mul(x, big) y = Mul(s, big)", "y = Mul(x, inf)", {"big": 1e25, "inf": INF}),
    Kind("two factors merged into zero", X, "s = Mul(x, small) y = Mul(s, large)", "y = Mul(x, zero)", {"small": 1e-25, "large": 1e-15, **ONE}),
    Kind("division by a subnormal as a product", X, "y = Div(x, tiny)", "y = Mul(x, inf)", {"tiny": 1e-40, "inf": INF}),
    Kind("reciprocal with a bound", X, "y = Reciprocal(x)", "r = Reciprocal(x) y = Clip(r, lo, hi)", {"lo": -1e5, "hi": 1e5}),
    Kind("shift to the other side", "uint8[4,8] a, uint8[4,8] b", 'c = Mod(b, seven) y = BitShift<direction="LEFT">(a, c)', 'c = Mod(b, seven) y = BitShift<direction="RIGHT">(a, c)', {"seven": np.array(7, np.uint8)}, results="uint8 y"),
    Kind("signed bytes taken for unsigned ones", "int8[4,8] a", "y = Cast<to=6>(a)", "u = Cast<to=2>(a) y = Cast<to=6>(u)", results="int32 y"),
    Kind("BitwiseOr for BitwiseXor", "uint8[4,8] a, uint8[4,8] b", "y = BitwiseXor(a, b)", "y = BitwiseOr(a, b)", results="uint8 y"),
    Kind("Or for Xor", "bool[4,8] a, bool[4,8] b", "y = Xor(a, b)", "y = Or(a, b)", results="bool y"),
    Kind("Mean of three as a sum of halves", "float[4,8] a, float[4,8] b, float[4,8] c", "y = Mean(a, b, c)", "s = Add(a, b) h = Mul(s, half) t = Add(h, c) y = Mul(t, half)", {"half": 0.5}),
    Kind("zero point of a quantisation", X, "y = QuantizeLinear(x, s, z)", "y = QuantizeLinear(x, s, w)", {"s": 0.05, "z": np.array(3, np.uint8), "w": np.array(4, np.uint8)}, results="uint8 y"),
    Kind("quantisation that rounds ties up", X, "y = QuantizeLinear(x, s, z)", "d = Div(x, s) h = Add(d, half) f = Floor(h) p = Add(f, zp) c = Clip(p, lo, hi) y = Cast<to=3>(c)", {"s": 0.25, "z": np.array(0, np.int8), "zp": 0.0, "half": 0.5, "lo": -128.0, "hi": 127.0}, results="int8 y"),
    Kind("quantisation that does not saturate", X, "y = QuantizeLinear(x, s, z)", "d = Div(x, s) r = Round(d) i = Cast<to=6>(r) y = Cast<to=3>(i)", {"s": 0.5, "z": np.array(0, np.int8)}, results="int8 y"),
    Kind("DequantizeLinear along another axis", "int8[8,8] a", "y = DequantizeLinear<axis=0>(a, s)", "y = DequantizeLinear<axis=1>(a, s)", {"s": np.linspace(0.1, 0.2, 8, dtype=np.float32)}),
    Kind("bias of 1e-4 left out", X, "h = MatMul(x, w) y = Add(h, b)", "y = MatMul(x, w)", {"w": (8, 8), "b": 1e-4}),
    Kind("bias of 1e-7 left out", X, "h = MatMul(x, w) y = Add(h, b)", "y = MatMul(x, w)", {"w": (8, 8), "b": 1e-7}),
    Kind("residual of a thousandth left out", X, "h = MatMul(x, w) r = Mul(x, k) y = Add(h, r)", "y = MatMul(x, w)", {"w": (8, 8), "k": 1e-3}),
    Kind("residual of a millionth left out after a bounded function", X, "t = Tanh(x) r = Mul(x, k) y = Add(t, r)", "y = Tanh(x)", {"k": 1e-6}),
    Kind("the last row of a table as the one before", "float[4,8] x, int64[4] i", "g = Gather(t, i) y = Add(x, g)", "j = Min(i, seven) g = Gather(t, j) y = Add(x, g)", {"t": np.arange(72, dtype=np.float32).reshape(9, 8), "seven": np.array(7, np.int64)}),
)
"""Kinds of faults."""
