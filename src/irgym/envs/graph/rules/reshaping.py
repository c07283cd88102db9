"""Rules for Reshape: reshapes that merge, or move past other operators.

All are exact. Shapes are static, so a new Reshape names the sizes of its result; Squeeze, Unsqueeze and
Flatten are special cases. Rules that move a Reshape come in pairs: down, towards the results, and up.
"""

from irgym.envs.graph.rewriting.rule import Rule, Sample
from irgym.envs.graph.rewriting.samples.operands import (
    Rng,
    array,
    binary,
    pick,
    regrouped,
    sample,
    shape_of,
    unary,
)
from irgym.envs.graph.rewriting.templates import sided

_SOURCE = "ONNX Runtime's TransposeOptimizer"


def _ones_reshaped(rng: Rng) -> Sample:
    a, b = (int(size) for size in rng.integers(2, 4, 2))
    before, after = pick(rng, ((1, a, b), (a, 1, b)), ((a, 1, b), (a, b, 1)), ((1, a, 1, b), (a, 1, b, 1)))
    return sample({"x": array(rng, *before), "s": list(after)}, "s")


def _reshaped(rng: Rng) -> Sample:
    shape = shape_of(rng)
    middle = regrouped(rng, shape)
    return sample({"x": array(rng, *shape), "s": list(middle), "t": list(regrouped(rng, middle))}, "s t")


def _view(rng: Rng) -> Sample:
    kind = pick(rng, "Squeeze", "Unsqueeze", "Flatten")
    x = array(rng, int(rng.integers(1, 4)), 1, int(rng.integers(1, 4)), 1)
    if kind == "Flatten":
        values, attributes = {"x": x, "rest": ()}, {"axis": int(rng.integers(-3, 5))}
    else:
        values, attributes = {"x": x, "rest": [list(pick(rng, (1,), (3,), (1, 3), (-1,)))]}, {}
    return sample(values, "rest", nodes={"v": attributes}, operators={"v": kind})


def _unary(rng: Rng) -> Sample:
    kind, attributes, rest = unary(rng)
    x = array(rng, *shape_of(rng))
    return sample(
        {"x": x, "rest": rest, "s": list(regrouped(rng, x.shape))},
        "rest s",
        nodes={"u": attributes},
        operators={"u": kind},
    )


def _two_reshaped(rng: Rng) -> Sample:
    shape = shape_of(rng)
    other = regrouped(rng, shape)
    values = {"a": array(rng, *shape), "b": array(rng, *shape), "s": list(other), "t": list(other)}
    return sample(values, "s t", operators={"u": binary(rng)})


def _reshaped_and_trailing(rng: Rng) -> Sample:
    size = int(rng.integers(2, 5))
    shape = (*shape_of(rng, 1, 3), size)
    other = (*regrouped(rng, shape[:-1]), size)
    w = array(rng, *pick(rng, (size,), (), (1,)))
    return sample(
        {"a": array(rng, *shape), "w": w, "s": list(other)},
        pick(rng, "s", "s w"),
        operators={"u": binary(rng)},
    )


def _rows(rng: Rng) -> Sample:
    size = int(rng.integers(1, 5))
    shape = (*shape_of(rng, 1, 3), size)
    other = (*regrouped(rng, shape[:-1]), size)
    values = {"a": array(rng, *shape), "w": array(rng, size, int(rng.integers(1, 4))), "s": list(other)}
    return sample(values, pick(rng, "s", "s w"))


def _rows_after(rng: Rng) -> Sample:
    size, out = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    shape = (*shape_of(rng, 1, 3), size)
    values = {"a": array(rng, *shape), "w": array(rng, size, out)}
    return sample({**values, "s": [*regrouped(rng, shape[:-1]), out]}, "s")


def _batch_reshaped(rng: Rng) -> Sample:
    batch = shape_of(rng, 1, 3)
    m, k, n = (int(size) for size in rng.integers(1, 4, 3))
    other = regrouped(rng, batch)
    values = {"a": array(rng, *batch, m, k), "b": array(rng, *batch, k, n)}
    return sample({**values, "s": [*other, m, k], "t": [*other, k, n]}, "s t")


def _batch_reshaped_after(rng: Rng) -> Sample:
    batch = shape_of(rng, 1, 3)
    m, k, n = (int(size) for size in rng.integers(1, 4, 3))
    values = {"a": array(rng, *batch, m, k), "b": array(rng, *batch, k, n)}
    return sample({**values, "s": [*regrouped(rng, batch), m, n]}, "s")


def _heads(rng: Rng) -> Sample:
    a, b, c, d = (int(size) for size in rng.integers(1, 4, 4))
    before, after, orders = pick(
        rng,
        ((a, b, c), (1, a, b, c), ((0, 2, 1, 3), (2, 3, 1, 0))),
        ((a, b, c * d), (a, b, c, d), ((1, 0, 2, 3), (2, 3, 0, 1))),
        ((1, a, b, c), (a, b, c), ((0, 2, 1), (2, 1, 0))),
        ((a * b, c), (a, b, c), ((2, 0, 1),)),
    )
    return sample({"x": array(rng, *before), "s": list(after)}, "s", attributes={"p": pick(rng, *orders)})


def _heads_after(rng: Rng) -> Sample:
    a, b, c, d = (int(size) for size in rng.integers(1, 4, 4))
    before, order, after = pick(
        rng,
        ((a, b, c), (0, 2, 1), (1, a, c, b)),
        ((1, a, b, c), (0, 1, 3, 2), (a, c, b)),
        ((a, b * c, d), (1, 0, 2), (b, c, a, d)),
        ((a, b, c, d), (2, 3, 0, 1), (c * d, a, b)),
    )
    return sample({"x": array(rng, *before), "s": list(after)}, "s", attributes={"p": order})


RULES = (
    Rule(
        "reshape-as-transpose",
        before="y = Reshape(x, s)",
        where="y.solid and x.shape != y.shape and order_between(x.shape, y.shape)",
        after="y = Transpose(x, perm=order_between(x.shape, y.shape))",
        sample=_ones_reshaped,
        source="the reverse of transpose-as-reshape",
    ),
    Rule(
        "view-as-reshape",
        before="y = (v := View(x, *rest))",
        where="y.solid",
        after="y = Reshape(x, whole(*y.shape))",
        sample=_view,
        source="definition of Squeeze, Unsqueeze, Flatten",
    ),
    Rule(
        "merge-reshapes",
        before="y = Reshape(r := Reshape(x, s), t)",
        where="y.solid",
        after="y = Reshape(x, whole(*y.shape))",
        sample=_reshaped,
        shared=("r",),
        source="ONNX Runtime's ReshapeFusion",
    ),
    Rule(
        "reshape-down-unary",
        before="y = (u := Unary(Reshape(x, s), *rest))",
        where="y.solid",
        after="y = Reshape(Same(u, x, *rest), whole(*y.shape))",
        sample=_unary,
        source="elements stay in order",
    ),
    Rule(
        "reshape-up-unary",
        before="y = Reshape(u := Unary(x, *rest), s)",
        where="y.solid",
        after="y = Same(u, Reshape(x, whole(*y.shape)), *rest)",
        sample=_unary,
        source="elements stay in order",
    ),
    Rule(
        "reshape-down-binary",
        before="y = (u := Binary(c, d)); c = Reshape(a, s); d = Reshape(b, t)",
        where="a.shape == b.shape and c.shape == d.shape and y.solid",
        after="y = Reshape(Same(u, a, b), whole(*y.shape))",
        sample=_two_reshaped,
        source="elements stay in order",
    ),
    Rule(
        "reshape-up-binary",
        before="y = Reshape(u := Binary(a, b), s)",
        where="a.shape == b.shape and y.solid",
        after="y = Same(u, Reshape(a, whole(*y.shape)), Reshape(b, whole(*y.shape)))",
        sample=_two_reshaped,
        source="elements stay in order",
    ),
    *sided(
        "reshape-down-trailing",
        "c = Reshape(a, s); y = (u := Binary(c | w))",
        "trails(w.shape, a.shape, c.shape) and y.shape == c.shape and y.solid",
        "y = Reshape(Same(u, a | w), whole(*y.shape))",
        _reshaped_and_trailing,
        _SOURCE,
    ),
    *sided(
        "reshape-up-trailing",
        "c = (u := Binary(a | w)); y = Reshape(c, s)",
        "trails(w.shape, a.shape, y.shape) and a.shape == c.shape and y.solid",
        "y = Same(u, Reshape(a, whole(*y.shape)) | w)",
        _reshaped_and_trailing,
        _SOURCE,
    ),
    Rule(
        "reshape-down-matmul",
        before="c = Reshape(a, s); y = MatMul(c, w)",
        where="w.rank == 2 and a.rank and a.shape[-1] == c.shape[-1] and y.solid and c.solid",
        after="y = Reshape(MatMul(a, w), whole(*y.shape))",
        sample=_rows,
        source="rows of a product are independent",
    ),
    Rule(
        "reshape-up-matmul",
        before="y = Reshape(MatMul(a, w), s)",
        where="w.rank == 2 and y.rank and y.shape[-1] == w.shape[-1] and y.solid and a.solid",
        after="y = MatMul(Reshape(a, whole(*y.shape[:-1], a.shape[-1])), w)",
        sample=_rows_after,
        source="rows of a product are independent",
    ),
    Rule(
        "reshape-down-batch",
        before="y = MatMul(c, d); c = Reshape(a, s); d = Reshape(b, t)",
        where="min(a.rank, b.rank, c.rank, d.rank) >= 2 and a.shape[-2:] == c.shape[-2:]"
        " and b.shape[-2:] == d.shape[-2:] and a.shape[:-2] == b.shape[:-2] and c.shape[:-2] == d.shape[:-2]"
        " and y.solid and c.solid",
        after="y = Reshape(MatMul(a, b), whole(*y.shape))",
        sample=_batch_reshaped,
        source="products of a batch are independent",
    ),
    Rule(
        "reshape-up-batch",
        before="y = Reshape(MatMul(a, b), s)",
        where="min(a.rank, b.rank, y.rank) >= 2 and a.shape[:-2] == b.shape[:-2] and y.solid and a.solid"
        " and y.shape[-2:] == (a.shape[-2], b.shape[-1])",
        after="""
batch = y.shape[:-2]
y = MatMul(Reshape(a, whole(*batch, *a.shape[-2:])), Reshape(b, whole(*batch, *b.shape[-2:])))
""",
        sample=_batch_reshaped_after,
        source="products of a batch are independent",
    ),
    Rule(
        "reshape-down-transpose",
        before="c = Reshape(x, s); y = Transpose(c, perm=p)",
        where="y.solid and pulled(x.shape, c.shape, p)",
        after="y = Reshape(Transpose(x, perm=pulled(x.shape, c.shape, p)), whole(*y.shape))",
        sample=_heads,
        source=_SOURCE,
    ),
    Rule(
        "reshape-up-transpose",
        before="y = Reshape(Transpose(x, perm=p), s)",
        where="y.solid and pushed(x.shape, p, y.shape)[1]",
        after="""
sizes, order = pushed(x.shape, p, y.shape)
y = Transpose(Reshape(x, whole(*sizes)), perm=order)
""",
        sample=_heads_after,
        source=_SOURCE,
    ),
)
"""Rules for Reshape."""
