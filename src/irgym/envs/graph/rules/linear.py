"""Rules that merge, factor and reorder matrix products, and rules for splits of products.

They hold for real numbers; results differ by rounding. Rules that replace two products by one with a sum, or
the reverse, are for floating-point numbers only. If an operand is infinite, the order of a product of three
may decide whether a result is infinite or NaN, as in every compiler that reorders products.
"""

from irgym.envs.graph.ir.node import Attribute
from irgym.envs.graph.rewriting.rule import Rule, Sample
from irgym.envs.graph.rewriting.samples.operands import (
    Rng,
    array,
    binary,
    parts_of,
    pick,
    plain_unary,
    random_sizes,
    sample,
    shape_of,
)

_TASO = "TASO"


def _two(rng: Rng) -> Sample:
    k, n, m = random_sizes(rng, 3)
    batch = pick(rng, (), (), (2,))
    x = array(rng, *pick(rng, (k,), (3, k), (2, 3, k), (1, 3, k)))
    values = {"x": x, "w": array(rng, *batch, k, n), "v": array(rng, *batch, k, m)}
    return sample(values, "w v")


def _two_activations(rng: Rng) -> Sample:
    products = _two(rng)
    return sample(dict(products.values), pick(rng, "", "w", "v"))


def _two_left(rng: Rng) -> Sample:
    k, n, a, b = random_sizes(rng, 4)
    batch = shape_of(rng, 0, 2)
    values = {"a": array(rng, *batch, a, k), "b": array(rng, *batch, b, k), "w": array(rng, k, n)}
    return sample(values, pick(rng, "", "w"))


def _two_gemms(rng: Rng) -> Sample:
    m, k, n, o = random_sizes(rng, 4)
    turned, first = int(rng.integers(2)), int(rng.integers(2))
    attributes: dict[str, Attribute] = {"transA": first, "transB": turned, "alpha": 0.5, "beta": 2.0}
    values = {
        "x": array(rng, *((k, m) if first else (m, k))),
        "v": array(rng, *((n, k) if turned else (k, n))),
        "w": array(rng, *((o, k) if turned else (k, o))),
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
    values = {
        "x": array(rng, sum(sizes), *shape),
        "z": array(rng, sum(sizes), *shape),
        "s": sizes,
        "t": sizes,
    }
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
    k, o, n = random_sizes(rng, 3)
    rows = shape_of(rng, 0, 2)
    values = {
        "a": array(rng, *rows, k),
        "w": array(rng, k, n),
        "b": array(rng, *rows, o),
        "v": array(rng, o, n),
    }
    return sample(values, pick(rng, "w v", "w", ""))


def _sum_of_one(rng: Rng) -> Sample:
    k, n = random_sizes(rng, 2)
    batch = pick(rng, (), (2,))
    x = array(rng, *pick(rng, (k,), (3, k), (2, 3, k)))
    values = {"x": x, "w": array(rng, *batch, k, n), "v": array(rng, *batch, k, n)}
    return sample(values, pick(rng, "w v", ""), operators={"s": pick(rng, "Add", "Sub")})


def _sum_by_one(rng: Rng) -> Sample:
    k, n = random_sizes(rng, 2)
    rows = shape_of(rng, 0, 2)
    values = {"a": array(rng, *rows, k), "b": array(rng, *rows, k), "w": array(rng, k, n)}
    return sample(values, pick(rng, "w", "w b"), operators={"s": pick(rng, "Add", "Sub")})


def _three(rng: Rng) -> Sample:
    m, k, n, o = random_sizes(rng, 4)
    batch = pick(rng, (), (2,), (2, 3))
    values = {"a": array(rng, *batch, m, k), "b": array(rng, *batch, k, n), "c": array(rng, *batch[1:], n, o)}
    return sample(values, pick(rng, "", "b", "b c", "a"))


def _two_weights(rng: Rng) -> Sample:
    k, n, o = random_sizes(rng, 3)
    x = array(rng, *pick(rng, (k,), (3, k), (2, 3, k)))
    return sample({"x": x, "w": array(rng, k, n), "v": array(rng, n, o)}, "w v")


def _merged(name: str, constant: bool) -> Rule:
    """Return the rule that merges two products of one input, with weights or with computed matrices."""
    where = "v.constant and w.constant" if constant else "not (v.constant and w.constant)"
    joined = "concat(v.rank - 1, v, w)" if constant else "Concat(v, w, axis=v.rank - 1)"
    return Rule(
        name,
        before="y = MatMul(x, v); z = MatMul(x, w)",
        # Ordered by the weights, so that equal steps of a recurrence get equal weights.
        where=f"v.name < w.name and {where} and v.rank >= 2 and v.shape[:-1] == w.shape[:-1]",
        after=f"""
both = MatMul(x, {joined})
y, z = Split(both, whole(v.shape[-1], w.shape[-1]), outputs=2, axis=y.rank - 1)
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
        where="y.name < z.name and a.name != b.name and w.rank == 2 and a.rank == b.rank >= 2"
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
        before="y = (g := Gemm(x, v, b, transB=t)); z = (h := Gemm(x, w, e, transB=t))",
        where="v.name < w.name and g.alike(h) and w.constant and v.constant and b.constant and e.constant"
        " and b.shape == (y.shape[1],) and e.shape == (z.shape[1],)",
        after="""
both = Same(g, x, concat(0 if t else 1, v, w), concat(0, b, e))
y, z = Split(both, whole(y.shape[1], z.shape[1]), outputs=2, axis=1)
""",
        sample=_two_gemms,
        source="TASO: two products of one input",
    ),
    Rule(
        "split-binary",
        before="*parts = Split(x, s, axis=k); *ys = [(u := Binary(a, b)) for a, b in zip(parts, bs)]",
        where="front(k, x.rank) == x.rank - 1 and len(set([b.type.dtype for b in bs])) == 1"
        " and all([b.constant and b.shape == (a.shape[-1],) for a, b in zip(parts, bs)])",
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
            dict((base := _sum_by_one(rng)).values), "w", operators=dict(base.operators)
        ),
        source="TASO, the reverse of factor-right",
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
)
"""Rules for sums and chains of matrix products."""
