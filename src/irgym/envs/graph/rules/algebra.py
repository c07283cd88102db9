"""Algebraic rules for element-wise operators, concatenations and products, with an overview of TASO's laws.

TASO (Jia et al., SOSP 2019) generates its substitutions by enumerating small graphs. Its file holds 157 of
them, and Tensat's (Yang et al., MLSys 2021) 124 + 15. Most follow from a few laws: they are instances with
equal operands, with operands in another order, or compositions. By law, with the groups and rules that
implement it:

| TASO, Tensat | rules |
|---|---|
| ewadd, ewmul are associative and commutative (of three, of four) | `associate-first`, `-second` |
| ewmul over ewadd, with operands shared or not | `scaling`: `factor-mul`, `distribute-mul` |
| matmul is associative (of three, of four) | `linear`: `associate-left`, `-right`, `merge-weights` |
| matmul is linear on both sides | `linear`: `factor-*`, `distribute-right`; `scaling`: `bias-through` |
| smul with ewmul, matmul, smul | `scaling`: `scale-*`, `fold-scale`, `merge-muls` |
| transpose of itself, ewadd, ewmul, relu, matmul, concat, split | `movement`; `scaling` |
| split of concat, concat of split | `cutting`: `cancel-split`, `cancel-concat`, `join-neighbours` |
| concat of concat, along one axis | `cutting`: `merge-concats` |
| concat along two axes, swapped | `exchange-concats` |
| relu, ewadd, ewmul, smul of concat, and of split | `concat-*`, `linear`: `split-*` |
| matmul(concat, concat) as a sum; matmul of a concat as a concat | `linear`: `merge-sum`; `matmul-concat-*` |
| two matmuls of one input, or with one matrix, joined and split | `linear`: `merge-matmul*` |
| relu of relu | `merge-relus` |
| relu and max-pooling | `convolution_algebra`: `pool-relu`, `relu-pool` |
| conv is linear in input and weights | `convolution_algebra`: `add-*`, `distribute-conv` |
| conv(concat, concat) as a sum of convolutions | `convolution_algebra`: `sum-of-convs` |
| conv of a concat over the batch, or with concatenated filters | `convolution_algebra`: `concat-conv-*` |
| conv with relu fused; two convolutions of one input; enlarge; groups; pooling | `convolutions` |

Left out: relu(a) and relu(b), or conv(a, w) and conv(b, w), of *unrelated* values as one operator on a
concat. The two nodes share no operand, so every pair of nodes would be a site, and TASO itself gains from
such rules only where a concat follows. There, `concat-unary` and `concat-conv-batch` apply.

Rules for sums and products hold for real numbers; results differ by rounding, as in `linear`.
"""

from irgym.envs.graph.rewriting.rule import Rule, Sample
from irgym.envs.graph.rewriting.samples.operands import (
    Rng,
    array,
    binary,
    either,
    parts_of,
    pick,
    plain_unary,
    resized,
    sample,
    shape_of,
)

_SOURCE = "TASO"


def _three(rng: Rng) -> Sample:
    shape = shape_of(rng)
    kind = pick(rng, "Add", "Mul", "Max", "Min")
    values = {"a": array(rng, *shape), "b": array(rng, *shape[1:]), "c": array(rng, *shape)}
    return sample(values, pick(rng, "", "b", "c"), operators={"u": kind, "v": kind})


def _relus(rng: Rng) -> Sample:
    return sample({"x": array(rng, *shape_of(rng))})


def _joined(rng: Rng) -> Sample:
    shape = shape_of(rng)
    axis = int(rng.integers(len(shape)))
    xs = [array(rng, *resized(shape, axis, size)) for size in parts_of(rng)]
    zs = [array(rng, *x.shape) for x in xs]
    attributes = {"k": either(rng, axis, len(shape)), "m": either(rng, axis, len(shape))}
    return sample({"xs": xs, "zs": zs}, attributes=attributes)


def _joined_unary(rng: Rng) -> Sample:
    joined = _joined(rng)
    return sample(
        {"xs": joined.values["xs"]}, attributes=dict(joined.attributes), operators={"u": plain_unary(rng)}
    )


def _joined_binary(rng: Rng) -> Sample:
    joined = _joined(rng)
    return sample(dict(joined.values), attributes=dict(joined.attributes), operators={"u": binary(rng)})


def _joined_uniform(rng: Rng) -> Sample:
    shape = shape_of(rng)
    axis = int(rng.integers(len(shape)))
    xs = [array(rng, *resized(shape, axis, size)) for size in parts_of(rng)]
    w = array(rng, *pick(rng, (), (1,), resized(shape, axis, 1), shape[axis + 1 :]))
    attributes = {"k": either(rng, axis, len(shape))}
    return sample({"xs": xs, "w": w}, pick(rng, "", "w"), attributes=attributes, operators={"u": binary(rng)})


def _grid(rng: Rng) -> Sample:
    rows, columns, rest = parts_of(rng, 2), parts_of(rng, 2), shape_of(rng, 0, 2)
    names = iter("abcd")
    values = {next(names): array(rng, row, column, *rest) for row in rows for column in columns}
    return sample(values, attributes={"k": 0, "m": pick(rng, 1, -1 - len(rest))})


def _rows(rng: Rng) -> Sample:
    k, n = (int(size) for size in rng.integers(1, 4, 2))
    batch = shape_of(rng, 0, 2)
    rank = len(batch) + 2
    xs = [array(rng, *batch, size, k) for size in parts_of(rng)]
    axis = either(rng, rank - 2, rank)
    return sample({"xs": xs, "w": array(rng, k, n)}, pick(rng, "", "w"), attributes={"k": axis})


def _columns(rng: Rng) -> Sample:
    k = int(rng.integers(1, 4))
    sizes = parts_of(rng)
    x = array(rng, *shape_of(rng, 0, 2), 2, k)
    ws = [array(rng, k, size) for size in sizes]
    return sample({"x": x, "ws": ws}, pick(rng, "", "ws"), attributes={"k": -1})


def _columns_joined(rng: Rng) -> Sample:
    columns = _columns(rng)
    return sample(dict(columns.values), attributes={"k": pick(rng, 1, -1)})


_ASSOCIATIVE = (
    "u.operator == v.operator"
    " and (u.operator != 'Mul' or all([value.ordinary or not value.finite for value in (a, b, c)]))"
)
"""Condition that two operators may be reordered: the numbers that masks add could overflow in a product."""

RULES = (
    Rule(
        "associate-first",
        before="y = (u := Associative(v := Associative(a, b), c))",
        where=_ASSOCIATIVE,
        after="y = Same(u, a, Same(u, b, c))",
        sample=_three,
        source=_SOURCE,
    ),
    Rule(
        "associate-second",
        before="y = (u := Associative(v := Associative(a, b), c))",
        where=_ASSOCIATIVE,
        after="y = Same(u, b, Same(u, a, c))",
        sample=_three,
        source=_SOURCE,
    ),
    Rule(
        "merge-relus",
        before="y = Relu(c := Relu(x))",
        after="y = Relu(x)",
        sample=_relus,
        shared=("c",),
        source=_SOURCE,
    ),
    Rule(
        "concat-unary",
        before="y = Concat(*ts, axis=k); *ts = [(u := Unary(x)) for x in xs]",
        where="len(set([x.type.dtype for x in xs])) == 1",
        after="y = Same(u, Concat(*xs, axis=k))",
        sample=_joined_unary,
        source=_SOURCE,
    ),
    Rule(
        "unary-concat",
        before="y = (u := Unary(Concat(*xs, axis=k)))",
        after="y = Concat(*[Same(u, x) for x in xs], axis=k)",
        sample=_joined_unary,
        source=_SOURCE,
    ),
    Rule(
        "concat-binary",
        before="y = Concat(*ts, axis=k); *ts = [(u := Binary(x, z)) for x, z in zip(xs, zs)]",
        where="all([x.shape == z.shape for x, z in zip(xs, zs)])"
        " and len(set([(x.type.dtype, z.type.dtype) for x, z in zip(xs, zs)])) == 1",
        after="y = Same(u, Concat(*xs, axis=k), Concat(*zs, axis=k))",
        sample=_joined_binary,
        source=_SOURCE,
    ),
    Rule(
        "binary-concat",
        before="y = (u := Binary(Concat(*xs, axis=k), Concat(*zs, axis=m)))",
        where="[x.shape for x in xs] == [z.shape for z in zs]"
        " and front(k, xs[0].rank) == front(m, xs[0].rank)",
        after="y = Concat(*[Same(u, x, z) for x, z in zip(xs, zs)], axis=k)",
        sample=_joined_binary,
        source=_SOURCE,
    ),
    Rule(
        "concat-scaled",
        before="y = Concat(*ts, axis=k); *ts = [(u := Binary(x, w)) for x in xs]",
        where="all([x.shape == t.shape and uniform(w.shape, k, x.rank) for x, t in zip(xs, ts)])",
        after="y = Same(u, Concat(*xs, axis=k), w)",
        sample=_joined_uniform,
        source=_SOURCE,
    ),
    Rule(
        "scaled-concat",
        before="y = (u := Binary(c, w)); c = Concat(*xs, axis=k)",
        where="y.shape == c.shape and uniform(w.shape, k, c.rank)",
        after="y = Concat(*[Same(u, x, w) for x in xs], axis=k)",
        sample=_joined_uniform,
        source=_SOURCE,
    ),
    Rule(
        "exchange-concats",
        before="y = Concat(Concat(a, b, axis=m), Concat(c, d, axis=m), axis=k)",
        where="front(k, y.rank) != front(m, y.rank)"
        " and a.shape[m] == c.shape[m] and b.shape[m] == d.shape[m]",
        after="y = Concat(Concat(a, c, axis=k), Concat(b, d, axis=k), axis=m)",
        sample=_grid,
        source=_SOURCE,
    ),
    Rule(
        "concat-matmul-rows",
        before="y = Concat(*ts, axis=k); *ts = [MatMul(x, w) for x in xs]",
        where="w.rank == 2 and xs[0].rank >= 2 and front(k, y.rank) < y.rank - 1",
        after="y = MatMul(Concat(*xs, axis=front(k, y.rank)), w)",
        sample=_rows,
        source=_SOURCE,
    ),
    Rule(
        "matmul-concat-rows",
        before="y = MatMul(c, w); c = Concat(*xs, axis=k)",
        where="w.rank == 2 and c.rank >= 2 and front(k, c.rank) < c.rank - 1",
        after="y = Concat(*[MatMul(x, w) for x in xs], axis=front(k, c.rank))",
        sample=_rows,
        source=_SOURCE,
    ),
    Rule(
        "concat-matmul-columns",
        before="y = Concat(*ts, axis=k); *ts = [MatMul(x, w) for w in ws]",
        where="front(k, y.rank) == y.rank - 1 and all([w.rank == 2 for w in ws])",
        after="""
wide = concat(1, *ws) if all([w.constant for w in ws]) else Concat(*ws, axis=1)
y = MatMul(x, wide)
""",
        sample=_columns,
        source=_SOURCE,
    ),
    Rule(
        "matmul-concat-columns",
        before="y = MatMul(x, Concat(*ws, axis=k))",
        where="ws[0].rank == 2 and front(k, 2) == 1",
        after="y = Concat(*[MatMul(x, w) for w in ws], axis=y.rank - 1)",
        sample=_columns_joined,
        source=_SOURCE,
    ),
)
"""Rules of algebra with element-wise operators, concatenations and products."""
