"""Rules of products of matrices: merged, factored, taken apart, put in another order, and scaled.

They hold for real numbers; results differ by rounding. Those that put one sum in the place of two products (or the
other way round) are for floating-point numbers only. Where an operand is infinite, the order of a product of three
may decide whether a result is infinite or no number, as in every compiler that reorders them.
"""

from typing import Any

import numpy as np

from irgym.envs.graph.ir.graph import Attribute
from irgym.envs.graph.rules.rule import Rule, Sample
from irgym.envs.graph.rules.samples import Rng, array, binary, parts_of, pick, plain_unary, sample, shape_of

_TASO = "TASO"


def _dims(rng: Rng, count: int) -> list[int]:
    return [int(size) for size in rng.integers(1, 5, count)]


def _two(rng: Rng) -> Sample:
    k, n, m = _dims(rng, 3)
    batch = pick(rng, (), (), (2,))
    x = array(rng, *pick(rng, (k,), (3, k), (2, 3, k), (1, 3, k)))
    values = {"x": x, "w": array(rng, *batch, k, n), "v": array(rng, *batch, k, m)}
    return sample(values, "w v")


def _two_activations(rng: Rng) -> Sample:
    one = _two(rng)
    return sample(dict(one.values), pick(rng, "", "w", "v"))


def _two_left(rng: Rng) -> Sample:
    k, n, a, b = _dims(rng, 4)
    batch = shape_of(rng, 0, 2)
    values = {"a": array(rng, *batch, a, k), "b": array(rng, *batch, b, k), "w": array(rng, k, n)}
    return sample(values, pick(rng, "", "w"))


def _two_gemms(rng: Rng) -> Sample:
    m, k, n, o = _dims(rng, 4)
    turned, first = int(rng.integers(2)), int(rng.integers(2))
    attributes: dict[str, Attribute] = {"transA": first, "transB": turned, "alpha": 0.5, "beta": 2.0}
    values = {
        "x": array(rng, *((k, m) if first else (m, k))),
        "w": array(rng, *((n, k) if turned else (k, n))),
        "v": array(rng, *((o, k) if turned else (k, o))),
        "b": array(rng, n),
        "e": array(rng, o),
    }
    return sample(values, "w v b e", attributes={"t": turned}, nodes={"g": attributes, "h": attributes})


def _split_bias(rng: Rng) -> Sample:
    sizes = parts_of(rng)
    x = array(rng, *shape_of(rng, 0, 2), sum(sizes))
    axis = pick(rng, -1, x.ndim - 1)
    bs = [array(rng, size) for size in sizes]
    return sample(
        {"x": x, "s": sizes, "bs": bs},
        "s bs",
        attributes={"k": axis},
        counts={"parts": len(sizes)},
        operators={"u": binary(rng)},
    )


def _two_splits(rng: Rng) -> Sample:
    sizes = parts_of(rng)
    shape = shape_of(rng, 1, 2)
    values = {"x": array(rng, sum(sizes), *shape), "z": array(rng, sum(sizes), *shape), "s": sizes, "t": sizes}
    return sample(
        values,
        "s t",
        attributes={"k": pick(rng, 0, -1 - len(shape)), "m": pick(rng, 0, -1 - len(shape))},
        counts={"parts": len(sizes), "others": len(sizes)},
        operators={"u": binary(rng)},
    )


def _split_unary(rng: Rng) -> Sample:
    sizes = parts_of(rng)
    shape = shape_of(rng, 0, 2)
    return sample(
        {"x": array(rng, sum(sizes), *shape), "s": sizes},
        "s",
        attributes={"k": pick(rng, 0, -1 - len(shape))},
        counts={"parts": len(sizes), "ys": len(sizes)},
        operators={"u": plain_unary(rng)},
    )


def _sum(rng: Rng) -> Sample:
    k, o, n = _dims(rng, 3)
    rows = shape_of(rng, 0, 2)
    values = {"a": array(rng, *rows, k), "w": array(rng, k, n), "b": array(rng, *rows, o), "v": array(rng, o, n)}
    return sample(values, pick(rng, "w v", "w", ""))


def _sum_of_one(rng: Rng) -> Sample:
    k, n = _dims(rng, 2)
    batch = pick(rng, (), (2,))
    x = array(rng, *pick(rng, (k,), (3, k), (2, 3, k)))
    values = {"x": x, "w": array(rng, *batch, k, n), "v": array(rng, *batch, k, n)}
    return sample(values, pick(rng, "w v", ""), operators={"s": pick(rng, "Add", "Sub")})


def _sum_by_one(rng: Rng) -> Sample:
    k, n = _dims(rng, 2)
    rows = shape_of(rng, 0, 2)
    values = {"a": array(rng, *rows, k), "b": array(rng, *rows, k), "w": array(rng, k, n)}
    return sample(values, pick(rng, "w", "w b"), operators={"s": pick(rng, "Add", "Sub")})


def _factors(rng: Rng) -> Sample:
    shape = shape_of(rng)
    small = tuple(1 if rng.integers(3) == 0 else size for size in shape)
    values = {"a": array(rng, *shape), "b": array(rng, *shape[1:]), "c": array(rng, *small)}
    return sample(values, "c", operators={"s": pick(rng, "Add", "Sub")})


def _three(rng: Rng) -> Sample:
    m, k, n, o = _dims(rng, 4)
    batch = pick(rng, (), (2,), (2, 3))
    values = {"a": array(rng, *batch, m, k), "b": array(rng, *batch, k, n), "c": array(rng, *batch[1:], n, o)}
    return sample(values, pick(rng, "", "b", "b c", "a"))


def _two_weights(rng: Rng) -> Sample:
    k, n, o = _dims(rng, 3)
    x = array(rng, *pick(rng, (k,), (3, k), (2, 3, k)))
    return sample({"x": x, "w": array(rng, k, n), "v": array(rng, n, o)}, "w v")


def _scaled(rng: Rng) -> Sample:
    m, k, n = _dims(rng, 3)
    batch = shape_of(rng, 0, 2)
    values = {"x": array(rng, *batch, m, k), "w": array(rng, *batch, k, n)}
    values["c"] = array(rng, *pick(rng, (), (1,), (1, 1)))
    return sample(values, pick(rng, "c", "c w"))


def _scaled_weight(rng: Rng) -> Sample:
    k, n = _dims(rng, 2)
    values = {"x": array(rng, *shape_of(rng, 0, 2), k), "w": array(rng, k, n)}
    values["c"] = array(rng, *pick(rng, (), (1,), (n,)))
    return sample(values, "w c")


def _scaled_rows(rng: Rng) -> Sample:
    k, n = _dims(rng, 2)
    values = {"x": array(rng, *shape_of(rng, 0, 2), k), "w": array(rng, k, n)}
    values["c"] = array(rng, *pick(rng, (), (1,), (k,)))
    return sample(values, "w c")


def _two_constants(rng: Rng) -> Sample:
    shape = shape_of(rng)
    values = {"x": array(rng, *shape), "b": array(rng, *shape[1:]), "c": array(rng, *shape[-1:])}
    return sample(values, "b c")


def _divided(rng: Rng) -> Sample:
    values = {"x": array(rng, *shape_of(rng)), "c": np.full(pick(rng, (), (1,)), rng.uniform(0.5, 2.0))}
    return sample(values, "c")


def _matrices(rng: Rng) -> Sample:
    m, k, n = _dims(rng, 3)
    batch = shape_of(rng, 0, 2)
    rank = len(batch) + 2
    order = (*range(rank - 2), rank - 1, rank - 2)
    values = {"a": array(rng, *batch, m, k), "b": array(rng, *batch, k, n)}
    return sample(values, pick(rng, "", "b"), attributes={"p": order})


def _gemm(rng: Rng) -> Sample:
    m, k, n = _dims(rng, 3)
    first, second = int(rng.integers(2)), int(rng.integers(2))
    values = {
        "a": array(rng, *((k, m) if first else (m, k))),
        "w": array(rng, *((n, k) if second else (k, n))),
        "b": pick(rng, None, array(rng, n), array(rng, 1), array(rng, m, 1), array(rng)),
    }
    return sample(values, pick(rng, "w b", "b", ""), attributes={"t": first, "u": second})


def _biased(rng: Rng) -> Sample:
    m, k, n = _dims(rng, 3)
    b = array(rng, *pick(rng, (), (n,), (1, n), (m, 1), (m, n)))
    return sample({"a": array(rng, m, k), "w": array(rng, k, n), "b": b}, pick(rng, "", "w b"))


def _gemm_of_transposed(rng: Rng) -> Sample:
    one = _gemm(rng)
    values = {"a": one.values["a"].T, "rest": [one.values["w"]]}
    nodes = {"g": {"transB": one.attributes["u"]}}
    return sample(values, attributes={"t": one.attributes["t"]}, nodes=nodes)


def _gemm_turned(rng: Rng) -> Sample:
    m, k, n = _dims(rng, 3)
    return sample({"a": array(rng, m, k), "w": array(rng, n, k), "rest": [array(rng, n)]}, "w rest")


def _merged(name: str, constant: bool) -> Rule:
    """Return the rule that merges two products of one input, with weights or with values that are computed."""
    where = "w.constant and v.constant" if constant else "not (w.constant and v.constant)"
    joined = "concat(w.rank - 1, w, v)" if constant else "Concat(w, v, axis=w.rank - 1)"
    return Rule(
        name,
        before="y = MatMul(x, w); z = MatMul(x, v)",
        where=f"y.name < z.name and {where} and w.rank >= 2 and w.shape[:-1] == v.shape[:-1]",
        after=f"""
both = MatMul(x, {joined})
y, z = Split(both, whole(w.shape[-1], v.shape[-1]), outputs=2, axis=y.rank - 1)
""",
        sample=_two if constant else _two_activations,
        source="TASO: two products of one input",
    )


RULES = (
    _merged("merge-matmul", constant=True),
    _merged("merge-matmul-computed", constant=False),
    Rule(
        "merge-matmul-rows",
        before="y = MatMul(a, w); z = MatMul(b, w)",
        where="y.name < z.name and w.rank == 2 and a.rank == b.rank >= 2"
        " and a.shape[:-2] == b.shape[:-2] and a.shape[-1] == b.shape[-1]",
        after="""
both = MatMul(Concat(a, b, axis=a.rank - 2), w)
y, z = Split(both, whole(a.shape[-2], b.shape[-2]), outputs=2, axis=a.rank - 2)
""",
        sample=_two_left,
        source="TASO: two products with one matrix",
    ),
    Rule(
        "merge-gemm",
        before="y = (g := Gemm(x, w, b, transB=t)); z = (h := Gemm(x, v, e, transB=t))",
        where="y.name < z.name and g.alike(h) and w.constant and v.constant and b.constant and e.constant"
        " and b.shape == (y.shape[1],) and e.shape == (z.shape[1],)",
        after="""
both = Same(g, x, concat(0 if t else 1, w, v), concat(0, b, e))
y, z = Split(both, whole(y.shape[1], z.shape[1]), outputs=2, axis=1)
""",
        sample=_two_gemms,
        source="TASO: two products of one input",
    ),
    Rule(
        "split-binary",
        before="*parts = Split(x, s, axis=k); *ys = [(u := Binary(a, b)) for a, b in zip(parts, bs)]",
        where="front(k, x.rank) == x.rank - 1 and all([b.constant and b.shape == (a.shape[-1],)"
        " for a, b in zip(parts, bs)])",
        after="ys = Split(Same(u, x, concat(0, *bs)), s, outputs=len(ys), axis=k)",
        sample=_split_bias,
        source="biases of merged products",
    ),
    Rule(
        "split-two",
        before="*parts = Split(x, s, axis=k); *ys = [(u := Binary(a, b)) for a, b in zip(parts, others)];"
        " *others = Split(z, t, axis=m)",
        where="x.shape == z.shape and front(k, x.rank) == front(m, z.rank)"
        " and [a.shape for a in parts] == [b.shape for b in others]",
        after="ys = Split(Same(u, x, z), s, outputs=len(ys), axis=k)",
        sample=_two_splits,
        source="TASO: element-wise operators of splits",
    ),
    Rule(
        "split-up-unary",
        before="*parts = Split(x, s, axis=k); *ys = [(u := Unary(a)) for a in parts]",
        after="ys = Split(Same(u, x), s, outputs=len(ys), axis=k)",
        sample=_split_unary,
        source="TASO: Relu of splits",
    ),
    Rule(
        "split-down-unary",
        before="*ys = Split(u := Unary(x), s, axis=k)",
        where="all(ys)",
        after="ys = [Same(u, part) for part in Split(x, s, outputs=len(ys), axis=k)]",
        sample=_split_unary,
        source="TASO: split of Relu",
    ),
    Rule(
        "merge-sum",
        before="y = Add(MatMul(a, w), MatMul(b, v))",
        where="y.floating and w.rank == v.rank == 2 and a.rank and a.shape[:-1] == b.shape[:-1]"
        " and w.shape[1] == v.shape[1]",
        after="""
tall = concat(0, w, v) if w.constant and v.constant else Concat(w, v, axis=0)
y = MatMul(Concat(a, b, axis=a.rank - 1), tall)
""",
        sample=_sum,
        source="TASO: matmul of concats",
    ),
    Rule(
        "factor-left",
        before="y = (s := Additive(MatMul(x, w), MatMul(x, v)))",
        where="y.floating and w.shape == v.shape and w.rank >= 2",
        after="""
named = {'Add': add, 'Sub': subtract}
both = named[s.operator](w, v) if w.constant and v.constant else Same(s, w, v)
y = MatMul(x, both)
""",
        sample=_sum_of_one,
        source=_TASO,
    ),
    Rule(
        "factor-right",
        before="y = (s := Additive(MatMul(a, w), MatMul(b, w)))",
        where="y.floating and a.shape == b.shape",
        after="y = MatMul(Same(s, a, b), w)",
        sample=_sum_by_one,
        source=_TASO,
    ),
    Rule(
        "distribute-right",
        before="y = MatMul(s := Additive(a, b), w)",
        where="y.floating and a.shape == b.shape and w.constant and not a.constant and not b.constant",
        after="y = Same(s, MatMul(a, w), MatMul(b, w))",
        sample=lambda rng: sample(
            dict((one := _sum_by_one(rng)).values), "w", operators=dict(one.operators)
        ),
        source="TASO, the reverse of factor-right",
    ),
    Rule(
        "bias-through",
        before="y = MatMul(Add(a, b), w)",
        where="y.floating and b.constant and w.constant and w.rank == 2 and a.rank and b.shape == a.shape[-1:]",
        after="y = Add(MatMul(a, w), matmul(b, w))",
        sample=lambda rng: sample(
            {**(one := _sum_by_one(rng)).values, "b": array(rng, one.values["a"].shape[-1])}, "w b"
        ),
        source="a bias before a product is one after it",
    ),
    Rule(
        "factor-mul",
        before="y = (s := Additive(Mul(a, c), Mul(b, c)))",
        where="y.floating",
        after="y = Mul(Same(s, a, b), c)",
        sample=_factors,
        source=_TASO,
    ),
    Rule(
        "distribute-mul",
        before="y = Mul(s := Additive(a, b), c)",
        where="y.floating and c.constant and not a.constant and not b.constant",
        after="y = Same(s, Mul(a, c), Mul(b, c))",
        sample=_factors,
        source=_TASO,
    ),
    Rule(
        "scale-bias",
        before="y = Mul(Add(x, b), c)",
        where="y.floating and b.constant and c.constant and not x.constant",
        after="y = Add(Mul(x, c), multiply(b, c))",
        sample=_two_constants,
        source="ONNX Runtime's constant folding, past an activation",
    ),
    Rule(
        "merge-muls",
        before="y = Mul(Mul(x, b), c)",
        where="y.floating and b.constant and c.constant and not x.constant",
        after="y = Mul(x, multiply(b, c))",
        sample=_two_constants,
        source=_TASO,
    ),
    Rule(
        "merge-adds",
        before="y = Add(Add(x, b), c)",
        where="y.floating and b.constant and c.constant and not x.constant",
        after="y = Add(x, add(b, c))",
        sample=_two_constants,
        source=_TASO,
    ),
    Rule(
        "div-as-mul",
        before="y = Div(x, c)",
        where="y.floating and 1e-30 < abs(c.number) < 1e30",
        after="y = Mul(x, divide(like(c, 1), c))",
        sample=_divided,
        source="division by a constant",
    ),
    Rule(
        "merge-weights",
        before="y = MatMul(MatMul(x, w), v)",
        where="y.floating and w.constant and v.constant and w.rank == v.rank == 2",
        after="y = MatMul(x, matmul(w, v))",
        sample=_two_weights,
        source="TASO: products are associative",
    ),
    Rule(
        "associate-right",
        before="y = MatMul(MatMul(a, b), c)",
        where="y.floating and min(a.rank, b.rank, c.rank) >= 2",
        after="y = MatMul(a, MatMul(b, c))",
        sample=_three,
        source="TASO: products are associative",
    ),
    Rule(
        "associate-left",
        before="y = MatMul(a, MatMul(b, c))",
        where="y.floating and min(a.rank, b.rank, c.rank) >= 2",
        after="y = MatMul(MatMul(a, b), c)",
        sample=_three,
        source="TASO: products are associative",
    ),
    *(
        Rule(
            f"scale-{name}",
            before=before,
            where=f"y.floating and {finite} c.type.size == 1 and c.rank <= (min(x.rank, w.rank) if min(x.rank, w.rank) > 1 else 0)",
            after=after,
            sample=_scaled,
            source="TASO: smul and matmul",
        )
        for name, before, after, finite in (
            ("out-of-left", "y = MatMul(Mul(x, c), w)", "y = Mul(MatMul(x, w), c)", ""),
            ("out-of-right", "y = MatMul(x, Mul(w, c))", "y = Mul(MatMul(x, w), c)", ""),
            ("into-left", "y = Mul(MatMul(x, w), c)", "y = MatMul(Mul(x, c), w)", "c.constant and"),
            ("into-right", "y = Mul(MatMul(x, w), c)", "y = MatMul(x, Mul(w, c))", "c.constant and"),
        )
    ),
    Rule(
        "fold-scale",
        before="y = Mul(MatMul(x, w), c)",
        where="y.floating and w.constant and c.constant and w.rank == 2 and c.rank <= 1",
        after="y = MatMul(x, multiply(w, c))",
        sample=_scaled_weight,
        source="ONNX Runtime's MatMulScaleFusion, into the weights",
    ),
    Rule(
        "fold-scale-of-input",
        before="y = MatMul(Mul(x, c), w)",
        where="y.floating and w.constant and c.constant and w.rank == 2 and c.rank <= 1 <= x.rank"
        " and broadcast(x.shape, c.shape) == x.shape",
        after="y = MatMul(x, multiply(w, reshape(c, c.shape + (1,))))",
        sample=_scaled_rows,
        source="ONNX Runtime's MatMulScaleFusion, into the weights",
    ),
    Rule(
        "transpose-of-matmul",
        before="y = Transpose(MatMul(a, b), perm=p)",
        where="a.rank == b.rank == y.rank and swaps_last(p)",
        after="""
turned = transpose(b, p) if b.constant else Transpose(b, perm=p)
y = MatMul(turned, Transpose(a, perm=p))
""",
        sample=_matrices,
        source="(a b)^T = b^T a^T",
    ),
    Rule(
        "matmul-of-transposes",
        before="y = MatMul(Transpose(b, perm=p), Transpose(a, perm=p))",
        where="a.rank == b.rank == y.rank and swaps_last(p)",
        after="y = Transpose(MatMul(a, b), perm=p)",
        sample=lambda rng: sample(
            {"a": (one := _matrices(rng)).values["a"], "b": one.values["b"]}, attributes=dict(one.attributes)
        ),
        source="(a b)^T = b^T a^T",
    ),
    Rule(
        "gemm-as-matmul",
        before="y = Gemm(a, w, [b], alpha=1.0, beta=1.0, transA=t, transB=u)",
        after="""
left = Transpose(a, perm=(1, 0)) if t else a
right = w if not u else transpose(w, (1, 0)) if w.constant else Transpose(w, perm=(1, 0))
product = MatMul(left, right)
y = Add(product, b) if b else product
""",
        sample=_gemm,
        source="definition of Gemm",
    ),
    Rule(
        "matmul-as-gemm",
        before="y = Add(MatMul(a, w), b)",
        where="y.floating and a.rank == w.rank == 2 and b.rank <= 2 and y.shape == (a.shape[0], w.shape[1])",
        after="y = Gemm(a, w, b)",
        sample=_biased,
        source="ONNX Runtime's MatMulAddFusion",
    ),
    Rule(
        "gemm-of-transpose",
        before="y = (g := Gemm(Transpose(a, perm=(1, 0)), *rest, transA=t))",
        after="y = Same(g, a, *rest, transA=1 - t)",
        sample=_gemm_of_transposed,
        source="ONNX Runtime's GemmTransposeFusion",
    ),
    Rule(
        "turn-weights",
        before="y = (g := Gemm(a, w, *rest, transB=1))",
        where="w.constant",
        after="y = Same(g, a, transpose(w, (1, 0)), *rest, transB=0)",
        sample=_gemm_turned,
        source="weights in the order that they are read",
    ),
)
"""Rules of products."""
