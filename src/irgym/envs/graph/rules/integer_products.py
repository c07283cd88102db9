"""Rules for products and convolutions of integers: those with one operand in common are merged.

All are exact, except that ONNX Runtime may round the sum with a bias once where it rounded twice.
"""

from typing import Any

import numpy as np

from irgym.envs.graph.rewriting.rule import Rule, Sample
from irgym.envs.graph.rewriting.samples.convolutions import convolution
from irgym.envs.graph.rewriting.samples.operands import Rng, pick, random_sizes, sample
from irgym.envs.graph.rewriting.samples.quantised import integers, kind_of, scale_of

_SOURCE = "merge-matmul and merge-conv, for integers"
_FUSED = "ONNX Runtime's MatMulIntegerToFloatFusion"

ZEROS = """
few = not p or (p.type.size == 1 and alike(p, r))
zero = p if few else concat(0, spread(p, (w.shape[{0}],)), spread(r, (v.shape[{0}],)))
"""
"""Replacement: the zero point of two weights joined along an axis; one number if both are the same."""

WEIGHTS = (
    "w.constant and v.constant and w.type.dtype == v.type.dtype and short(w)"
    " and ((not p and not r) or (p and r and p.constant and r.constant"
    " and max(p.rank, r.rank) < 2))"
)
"""Condition that weights and their zero points are known, and of one type."""


def _weights(rng: Rng, left: tuple[int, ...], right: tuple[int, ...], axis: int) -> dict[str, Any]:
    """Return the weights w and v, and their zero points p and r, for all elements or along an axis."""
    kind = kind_of(rng)
    values: dict[str, Any] = {"w": integers(rng, kind, *left), "v": integers(rng, kind, *right)}
    form = int(rng.integers(4))
    for name, shape in (("p", left), ("r", right)):
        values[name] = None if not form else integers(rng, kind, *(() if form == 1 else (shape[axis],)))
    if form == 3:
        values["p"] = values["r"] = integers(rng, kind)
    return values


def _two_products(rng: Rng) -> Sample:
    m, k, n, o = random_sizes(rng, 4)
    weights = _weights(rng, (k, n), (k, o), 1)
    kind = pick(rng, "uint8", weights["w"].dtype.name)  # ONNX Runtime has no signed products of unsigned ones
    x = integers(rng, kind, *pick(rng, (m, k), (2, m, k)))
    return sample({"x": x, "a": integers(rng, kind), **weights}, "w v p r")


def _two_scaled(rng: Rng) -> Sample:
    found = _two_products(rng)
    values = dict(found.values)
    several = rng.integers(2)
    for name, weight in (("f", "w"), ("g", "v")):
        values[name] = scale_of(rng, *((values[weight].shape[1],) if several else ()))
    values["s"] = scale_of(rng)
    return sample(values, "w v p r f g", attributes={"t": 11})


def _one_scaled(rng: Rng) -> Sample:
    found = _two_scaled(rng)
    return sample({name: found.values[name] for name in "xwapsf"}, "w p f", attributes={"t": 11})


def _with_bias(rng: Rng) -> Sample:
    values = dict(_one_scaled(rng).values)
    return sample({**values, "b": rng.standard_normal(values["w"].shape[1])}, "w p f b")


def _dynamic(rng: Rng) -> Sample:
    found: dict[str, Any] = dict(_with_bias(rng).values)
    values: dict[str, Any] = {name: found[name] for name in "wpfb"}
    values["x"] = rng.standard_normal(found["x"].shape)
    if rng.integers(2):
        values["b"] = None
    return sample(values, "w p f b")


def _two_convolutions(rng: Rng) -> Sample:
    operands, attributes = convolution(rng, groups=(1,), bias=False)
    shape = operands["w"].shape
    other = (int(rng.integers(1, 4)), *shape[1:])
    values = _weights(rng, shape, other, 0)
    if values["p"] is not None:  # ONNX Runtime has one zero point for all filters
        values["p"] = values["r"] = integers(rng, values["w"].dtype.name)
    x = {"x": integers(rng, "uint8", *operands["x"].shape), "a": integers(rng, "uint8")}
    return sample({**x, **values}, "w v p r", nodes={"c": attributes, "d": attributes})


def _scales(rng: Rng, values: dict[str, Any], axis: int) -> dict[str, Any]:
    """Return scales and zero points for two QLinearMatMul, or two QLinearConv."""
    kind = values["w"].dtype.name
    several = bool(rng.integers(2))
    for scale, zero, weight in (("f", "p", "w"), ("g", "r", "v")):
        size = (values[weight].shape[axis],) if several else ()
        values[scale], values[zero] = scale_of(rng, *size), np.zeros(size, kind)
    result = {"h": scale_of(rng) * 40, "o": integers(rng, values["x"].dtype.name)}
    values |= {"s": scale_of(rng), **result, "i": result["h"], "u": result["o"]}
    return values


def _two_linear(rng: Rng) -> Sample:
    values = _scales(rng, dict(_two_products(rng).values), 1)
    return sample(values, "w v p r f g h o i u")


def _two_linear_convolutions(rng: Rng) -> Sample:
    found = _two_convolutions(rng)
    values = _scales(rng, dict(found.values), 0)
    for name, weight in (("b", "w"), ("e", "v")):
        values[name] = integers(rng, "int16", values[weight].shape[0]).astype(np.int32)
    if rng.integers(2):
        values["b"] = values["e"] = None
    return sample(values, "w v p r f g h o i u b e", nodes=found.nodes)


SCALES = "f.constant and g.constant and f.type.dtype == g.type.dtype and max(f.rank, g.rank) < 2"

RULES = (
    Rule(
        "merge-matmul-integer",
        before="y = MatMulInteger(x, w, a, [p]); z = MatMulInteger(x, v, a, [r])",
        where=f"{WEIGHTS} and w.rank == v.rank == 2 and x.rank > 1",
        after=f"""{ZEROS.format(1)}
y, z = Split(
    MatMulInteger(x, concat(1, w, v), a, zero), whole(w.shape[1], v.shape[1]), outputs=2, axis=y.rank - 1
)
""",
        sample=_two_products,
        source=_SOURCE,
    ),
    Rule(
        "merge-matmul-integer-scaled",
        before="""
y = Mul(Cast(MatMulInteger(x, w, a, [p]), to=t), Mul(s, f))
product = MatMulInteger(x, v, a, [r])
number = Cast(product, to=t)
unit = Mul(s, g)
z = Mul(number, unit)
""",
        where=f"{WEIGHTS} and {SCALES} and w.rank == v.rank == 2 and x.rank > 1 and s.rank < 2"
        " and s.type.size == 1",
        after=f"""{ZEROS.format(1)}
sizes = w.shape[1], v.shape[1]
factor = Mul(s, concat(0, spread(f, sizes[:1]), spread(g, sizes[1:])))
both = Cast(MatMulInteger(x, concat(1, w, v), a, zero), to=t)
y, z = Split(Mul(both, factor), whole(*sizes), outputs=2, axis=y.rank - 1)
""",
        sample=_two_scaled,
        source=_SOURCE,
    ),
    Rule(
        "matmul-integer-to-float",
        before="y = Mul(Cast(MatMulInteger(x, w, a, [p]), to=t), Mul(s, f))",
        where="w.rank == 2 and x.rank > 1 and short(x) and short(w) and s.type.size == 1 and s.rank < 2"
        " and f.constant and f.rank < 2 and f.type.size in (1, w.shape[1])",
        after="y = MatMulIntegerToFloat(x, w, s, f, a, p)",
        sample=_one_scaled,
        source=_FUSED,
    ),
    Rule(
        "matmul-integer-to-float-bias",
        before="y = Add(m := MatMulIntegerToFloat(x, w, s, f, [a], [p]), b)",
        where="b.constant and b.shape == w.shape[1:]",
        after="y = MatMulIntegerToFloat(x, w, s, f, a, p, b)",
        sample=_with_bias,
        source=_FUSED,
    ),
    Rule(
        "dynamic-quantize-matmul",
        before="y = MatMulIntegerToFloat(q, w, s, f, a, [p], [b]); q, s, a = DynamicQuantizeLinear(x)",
        where="w.constant and x.rank > 1",
        after="y = DynamicQuantizeMatMul(x, w, f, p, b)",
        sample=_dynamic,
        source="ONNX Runtime's DynamicQuantizeMatMulFusion",
    ),
    Rule(
        "merge-conv-integer",
        before="y = (c := ConvInteger(x, w, a, [p])); z = (d := ConvInteger(x, v, a, [r]))",
        where=f"{WEIGHTS} and c == d and c.get('group', 1) == 1 and w.shape[1:] == v.shape[1:]"
        " and (not p or (p.type.size == 1 and alike(p, r)))",
        after="""
both = ConvInteger(x, concat(0, w, v), a, p, **c)
y, z = Split(both, whole(w.shape[0], v.shape[0]), outputs=2, axis=1)
""",
        sample=_two_convolutions,
        source=_SOURCE,
    ),
    Rule(
        "merge-qlinear-matmul",
        before="y = QLinearMatMul(x, s, a, w, f, p, h, o); z = QLinearMatMul(x, s, a, v, g, r, i, u)",
        where=f"{WEIGHTS} and {SCALES} and w.rank == v.rank == 2 and x.rank > 1"
        " and alike(h, i) and alike(o, u)",
        after="""
sizes = w.shape[1], v.shape[1]
factor = concat(0, spread(f, sizes[:1]), spread(g, sizes[1:]))
zero = concat(0, spread(p, sizes[:1]), spread(r, sizes[1:]))
both = QLinearMatMul(x, s, a, concat(1, w, v), factor, zero, h, o)
y, z = Split(both, whole(*sizes), outputs=2, axis=y.rank - 1)
""",
        sample=_two_linear,
        source=_SOURCE,
    ),
    Rule(
        "merge-qlinear-conv",
        before="""
y = (c := QLinearConv(x, s, a, w, f, p, h, o, [b]))
z = (d := QLinearConv(x, s, a, v, g, r, i, u, [e]))
""",
        where=f"{WEIGHTS} and {SCALES} and c == d and c.get('group', 1) == 1 and w.shape[1:] == v.shape[1:]"
        " and alike(h, i) and alike(o, u) and ((not b and not e) or (b and e and b.constant and e.constant))",
        after="""
sizes = w.shape[0], v.shape[0]
factor = concat(0, spread(f, sizes[:1]), spread(g, sizes[1:]))
zero = concat(0, spread(p, sizes[:1]), spread(r, sizes[1:]))
bias = concat(0, b, e) if b else None
both = QLinearConv(x, s, a, concat(0, w, v), factor, zero, h, o, bias, **c)
y, z = Split(both, whole(*sizes), outputs=2, axis=1)
""",
        sample=_two_linear_convolutions,
        source=_SOURCE,
    ),
)
"""Rules that merge products and convolutions of integers."""
