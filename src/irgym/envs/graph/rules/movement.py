"""Rules of operators that only put elements elsewhere: Transpose and Reshape, what they cancel, where they move.

All are exact. Shapes are static, so each Reshape is to the sizes that its result has; Squeeze, Unsqueeze and
Flatten are Reshapes in other words. Rules that move Transpose or Reshape past other operators come in pairs, down
(towards the results) and up.
"""

from collections.abc import Callable

from irgym.envs.graph.rules.rule import Rule, Sample
from irgym.envs.graph.rules.samples import (
    Rng,
    array,
    binary,
    broadcastable,
    either,
    order_of,
    parts_of,
    pick,
    regrouped,
    resized,
    sample,
    shape_of,
    unary,
)

_SOURCE = "ONNX Runtime's TransposeOptimizer"


def _sizes(*sizes: int) -> list[int]:
    return list(sizes)


def _transposes(rng: Rng) -> Sample:
    shape = shape_of(rng)
    rank = len(shape)
    return sample({"x": array(rng, *shape)}, attributes={"p": order_of(rng, rank), "q": order_of(rng, rank)})


def _undone(rng: Rng) -> Sample:
    order = order_of(rng, len(shape := shape_of(rng)))
    back = tuple(order.index(axis) for axis in range(len(order)))
    return sample({"x": array(rng, *shape)}, attributes={"p": order, "q": back})


def _ones(rng: Rng) -> Sample:
    sizes = [int(size) for size in rng.integers(2, 4, 2)]
    order = pick(rng, (0, 2, 1, 3), (1, 0, 2, 3), (0, 1, 3, 2), (0, 2, 3, 1))
    shape = [1] * 4
    moved = [axis for axis in order if axis in (0, 3)]
    for axis, size in zip(moved, sizes, strict=True):
        shape[axis] = size
    return sample({"x": array(rng, *shape)}, attributes={"p": order})


def _ones_reshaped(rng: Rng) -> Sample:
    a, b = (int(size) for size in rng.integers(2, 4, 2))
    before, after = pick(rng, ((1, a, b), (a, 1, b)), ((a, 1, b), (a, b, 1)), ((1, a, 1, b), (a, 1, b, 1)))
    return sample({"x": array(rng, *before), "s": _sizes(*after)}, "s")


def _reshaped(rng: Rng) -> Sample:
    shape = shape_of(rng)
    middle = regrouped(rng, shape)
    return sample(
        {"x": array(rng, *shape), "s": _sizes(*middle), "t": _sizes(*regrouped(rng, middle))}, "s t"
    )


def _view(rng: Rng) -> Sample:
    kind = pick(rng, "Squeeze", "Unsqueeze", "Flatten")
    x = array(rng, int(rng.integers(1, 4)), 1, int(rng.integers(1, 4)), 1)
    if kind == "Flatten":
        values, attributes = {"x": x, "rest": ()}, {"axis": int(rng.integers(-3, 5))}
    else:
        values, attributes = {"x": x, "rest": [_sizes(*pick(rng, (1,), (3,), (1, 3), (-1,)))]}, {}
    return sample(values, "rest", nodes={"v": attributes}, operators={"v": kind})


def _unary(rng: Rng) -> Sample:
    kind, attributes, rest = unary(rng)
    x = array(rng, *shape_of(rng))
    return sample(
        {"x": x, "rest": rest, "s": _sizes(*regrouped(rng, x.shape))},
        "rest s",
        attributes={"p": order_of(rng, x.ndim)},
        nodes={"u": attributes},
        operators={"u": kind},
    )


def _two_transposed(rng: Rng) -> Sample:
    shape = shape_of(rng)
    other = tuple(1 if rng.integers(3) == 0 else size for size in shape)
    return sample(
        {"a": array(rng, *shape), "b": array(rng, *other)},
        attributes={"p": order_of(rng, len(shape))},
        operators={"u": binary(rng)},
    )


def _transposed_and_weight(rng: Rng) -> Sample:
    shape = shape_of(rng)
    order = order_of(rng, len(shape))
    weight = array(rng, *broadcastable(rng, tuple(shape[axis] for axis in order)))
    return sample(
        {"a": array(rng, *shape), "w": weight}, "w", attributes={"p": order}, operators={"u": binary(rng)}
    )


def _sum_transposed(rng: Rng) -> Sample:
    shape = shape_of(rng)
    values = {"a": array(rng, *shape), "w": array(rng, *broadcastable(rng, shape))}
    return sample(values, "w", attributes={"p": order_of(rng, len(shape))}, operators={"u": binary(rng)})


def _joined(rng: Rng) -> Sample:
    shape = shape_of(rng)
    order = order_of(rng, len(shape))
    axis = int(rng.integers(len(shape)))
    xs = [array(rng, *resized(shape, order[axis], size)) for size in parts_of(rng)]
    return sample({"xs": xs}, attributes={"p": order, "k": either(rng, axis, len(shape))})


def _join_moved(rng: Rng) -> Sample:
    shape = shape_of(rng)
    axis = int(rng.integers(len(shape)))
    xs = [array(rng, *resized(shape, axis, size)) for size in parts_of(rng)]
    attributes = {"p": order_of(rng, len(shape)), "k": either(rng, axis, len(shape))}
    return sample({"xs": xs}, attributes=attributes)


def _cut(rng: Rng) -> Sample:
    shape, sizes = shape_of(rng), parts_of(rng)
    axis, order = int(rng.integers(len(shape))), order_of(rng, len(shape))
    return sample(
        {"x": array(rng, *resized(shape, axis, sum(sizes))), "s": _sizes(*sizes)},
        "s",
        attributes={"p": order, "k": either(rng, axis, len(shape))},
        counts={"xs": len(sizes)},
    )


def _cut_moved(rng: Rng) -> Sample:
    shape, sizes = shape_of(rng), parts_of(rng)
    axis, order = int(rng.integers(len(shape))), order_of(rng, len(shape))
    return sample(
        {"x": array(rng, *resized(shape, order[axis], sum(sizes))), "s": _sizes(*sizes)},
        "s",
        attributes={"p": order, "k": either(rng, axis, len(shape))},
        counts={"ys": len(sizes)},
    )


def _batched(rng: Rng) -> Sample:
    batch = shape_of(rng, 1, 3)
    m, k, n = (int(size) for size in rng.integers(1, 4, 3))
    order = (*order_of(rng, len(batch)), len(batch), len(batch) + 1)
    return sample({"a": array(rng, *batch, m, k), "b": array(rng, *batch, k, n)}, attributes={"p": order})


def _reduced(rng: Rng) -> Sample:
    shape = shape_of(rng, 2)
    order = order_of(rng, len(shape))
    axes = [int(axis) for axis in rng.permutation(len(shape))[: int(rng.integers(1, len(shape)))]]
    return sample(
        {"x": array(rng, *shape), "axes": [either(rng, axis, len(shape)) for axis in axes]},
        "axes",
        attributes={"p": order},
        nodes={"r": {"keepdims": int(rng.integers(2))}},
        operators={"r": pick(rng, "ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2")},
    )


def _normalised(rng: Rng) -> Sample:
    shape = shape_of(rng)
    return sample(
        {"x": array(rng, *shape)},
        attributes={"p": order_of(rng, len(shape)), "k": int(rng.integers(-len(shape), len(shape)))},
        operators={"u": pick(rng, "Softmax", "LogSoftmax")},
    )


def _two_reshaped(rng: Rng) -> Sample:
    shape = shape_of(rng)
    other = regrouped(rng, shape)
    values = {"a": array(rng, *shape), "b": array(rng, *shape), "s": _sizes(*other), "t": _sizes(*other)}
    return sample(values, "s t", operators={"u": binary(rng)})


def _reshaped_and_trailing(rng: Rng) -> Sample:
    size = int(rng.integers(2, 5))
    shape = (*shape_of(rng, 1, 3), size)
    other = (*regrouped(rng, shape[:-1]), size)
    w = array(rng, *pick(rng, (size,), (), (1,)))
    return sample(
        {"a": array(rng, *shape), "w": w, "s": _sizes(*other)},
        pick(rng, "s", "s w"),
        operators={"u": binary(rng)},
    )


def _rows(rng: Rng) -> Sample:
    size = int(rng.integers(1, 5))
    shape = (*shape_of(rng, 1, 3), size)
    other = (*regrouped(rng, shape[:-1]), size)
    values = {"a": array(rng, *shape), "w": array(rng, size, int(rng.integers(1, 4))), "s": _sizes(*other)}
    return sample(values, pick(rng, "s", "s w"))


def _rows_after(rng: Rng) -> Sample:
    size, out = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    shape = (*shape_of(rng, 1, 3), size)
    values = {"a": array(rng, *shape), "w": array(rng, size, out)}
    return sample({**values, "s": _sizes(*regrouped(rng, shape[:-1]), out)}, "s")


def _batch_reshaped(rng: Rng) -> Sample:
    batch = shape_of(rng, 1, 3)
    m, k, n = (int(size) for size in rng.integers(1, 4, 3))
    other = regrouped(rng, batch)
    values = {"a": array(rng, *batch, m, k), "b": array(rng, *batch, k, n)}
    return sample({**values, "s": _sizes(*other, m, k), "t": _sizes(*other, k, n)}, "s t")


def _batch_reshaped_after(rng: Rng) -> Sample:
    batch = shape_of(rng, 1, 3)
    m, k, n = (int(size) for size in rng.integers(1, 4, 3))
    values = {"a": array(rng, *batch, m, k), "b": array(rng, *batch, k, n)}
    return sample({**values, "s": _sizes(*regrouped(rng, batch), m, n)}, "s")


def _heads(rng: Rng) -> Sample:
    a, b, c, d = (int(size) for size in rng.integers(1, 4, 4))
    before, after, orders = pick(
        rng,
        ((a, b, c), (1, a, b, c), ((0, 2, 1, 3), (2, 3, 1, 0))),
        ((a, b, c * d), (a, b, c, d), ((1, 0, 2, 3), (2, 3, 0, 1))),
        ((1, a, b, c), (a, b, c), ((0, 2, 1), (2, 1, 0))),
        ((a * b, c), (a, b, c), ((2, 0, 1),)),
    )
    return sample({"x": array(rng, *before), "s": _sizes(*after)}, "s", attributes={"p": pick(rng, *orders)})


def _heads_after(rng: Rng) -> Sample:
    a, b, c, d = (int(size) for size in rng.integers(1, 4, 4))
    before, order, after = pick(
        rng,
        ((a, b, c), (0, 2, 1), (1, a, c, b)),
        ((1, a, b, c), (0, 1, 3, 2), (a, c, b)),
        ((a, b * c, d), (1, 0, 2), (b, c, a, d)),
        ((a, b, c, d), (2, 3, 0, 1), (c * d, a, b)),
    )
    return sample({"x": array(rng, *before), "s": _sizes(*after)}, "s", attributes={"p": order})


def _sided(
    name: str, before: str, where: str, after: str, sampled: Callable[[Rng], Sample]
) -> tuple[Rule, Rule]:
    """Return two rules of an element-wise operator: `L | R` are its operands as they stand, and exchanged."""
    return (
        Rule(name, before.replace(" | ", ", "), after.replace(" | ", ", "), sampled, where, source=_SOURCE),
        Rule(f"{name}-left", _turned(before), _turned(after), sampled, where, source=_SOURCE),
    )


def _turned(text: str) -> str:
    """Return a text with the operands on both sides of ` | ` exchanged."""
    left, right = text.split(" | ")
    start = len(left) - _length(left[::-1], ")(")
    end = _length(right, "()")
    return f"{left[:start]}{right[:end]}, {left[start:]}{right[end:]}"


def _length(text: str, brackets: str) -> int:
    """Return the length of the operand that a text begins with."""
    depth = 0
    for place, letter in enumerate(text):
        if depth == 0 and (letter == brackets[1] or text[place : place + 2] in (", ", " ,")):
            return place
        depth += (letter == brackets[0]) - (letter == brackets[1])
    return len(text)


RULES = (
    Rule(
        "cancel-transposes",
        before="y = Transpose(t := Transpose(x, perm=p), perm=q)",
        where="composed(p, q) == tuple(range(x.rank))",
        after="y = x",
        sample=_undone,
        shared=("t",),
        source=_SOURCE,
    ),
    Rule(
        "merge-transposes",
        before="y = Transpose(t := Transpose(x, perm=p), perm=q)",
        after="y = Transpose(x, perm=composed(p, q))",
        sample=_transposes,
        shared=("t",),
        source=_SOURCE,
    ),
    Rule(
        "transpose-as-reshape",
        before="y = Transpose(x, perm=p)",
        where="ones_moved(x.shape, p) and y.solid",
        after="y = Reshape(x, whole(*y.shape))",
        sample=_ones,
        source=_SOURCE,
    ),
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
        "transpose-down-unary",
        before="y = (u := Unary(Transpose(x, perm=p), *rest))",
        after="y = Transpose(Same(u, x, *rest), perm=p)",
        sample=_unary,
        source=_SOURCE,
    ),
    Rule(
        "transpose-up-unary",
        before="y = Transpose(u := Unary(x, *rest), perm=p)",
        after="y = Same(u, Transpose(x, perm=p), *rest)",
        sample=_unary,
        source=_SOURCE,
    ),
    Rule(
        "transpose-down-binary",
        before="y = (u := Binary(Transpose(a, perm=p), Transpose(b, perm=p)))",
        where="a.rank == b.rank",
        after="y = Transpose(Same(u, a, b), perm=p)",
        sample=_two_transposed,
        source=_SOURCE,
    ),
    *_sided(
        "transpose-down-weight",
        "y = (u := Binary(Transpose(a, perm=p) | w))",
        "w.constant and w.rank <= a.rank",
        "y = Transpose(Same(u, a | transpose(reshape(w, aligned(w.shape, a.rank)), inverse(p))), perm=p)",
        _transposed_and_weight,
    ),
    *_sided(
        "transpose-up-weight",
        "y = Transpose(u := Binary(a | w), perm=p)",
        "w.constant and a.rank == y.rank",
        "y = Same(u, Transpose(a, perm=p) | transpose(reshape(w, aligned(w.shape, a.rank)), p))",
        _sum_transposed,
    ),
    Rule(
        "transpose-up-binary",
        before="y = Transpose(u := Binary(a, b), perm=p)",
        where="a.rank == b.rank",
        after="y = Same(u, Transpose(a, perm=p), Transpose(b, perm=p))",
        sample=_two_transposed,
        source=_SOURCE,
    ),
    Rule(
        "transpose-down-concat",
        before="y = Concat(*ts, axis=k); *ts = [Transpose(x, perm=p) for x in xs]",
        after="y = Transpose(Concat(*xs, axis=p[k]), perm=p)",
        sample=_joined,
        source=_SOURCE,
    ),
    Rule(
        "transpose-up-concat",
        before="y = Transpose(Concat(*xs, axis=k), perm=p)",
        after="y = Concat(*[Transpose(x, perm=p) for x in xs], axis=inverse(p)[k])",
        sample=_join_moved,
        source=_SOURCE,
    ),
    Rule(
        "transpose-up-split",
        before="*xs = Split(x, s, axis=k); *ys = [Transpose(x_, perm=p) for x_ in xs]",
        after="ys = Split(Transpose(x, perm=p), s, outputs=len(ys), axis=inverse(p)[k])",
        sample=_cut,
        source=_SOURCE,
    ),
    Rule(
        "transpose-down-split",
        before="*ys = Split(Transpose(x, perm=p), s, axis=k)",
        after="ys = [Transpose(part, perm=p) for part in Split(x, s, outputs=len(ys), axis=p[k])]",
        sample=_cut_moved,
        source=_SOURCE,
    ),
    Rule(
        "transpose-down-matmul",
        before="y = MatMul(Transpose(a, perm=p), Transpose(b, perm=p))",
        where="a.rank == b.rank > 2 and p[-2:] == (a.rank - 2, a.rank - 1)",
        after="y = Transpose(MatMul(a, b), perm=p)",
        sample=_batched,
        source=_SOURCE,
    ),
    Rule(
        "transpose-up-matmul",
        before="y = Transpose(MatMul(a, b), perm=p)",
        where="a.rank == b.rank > 2 and p[-2:] == (a.rank - 2, a.rank - 1)",
        after="y = MatMul(Transpose(a, perm=p), Transpose(b, perm=p))",
        sample=_batched,
        source=_SOURCE,
    ),
    Rule(
        "transpose-down-reduce",
        before="y = (r := Reduce(Transpose(x, perm=p), axes))",
        where="axes.elements",
        after="""
axes_before = [p[axis] for axis in axes.elements]
kept = r.get('keepdims', 1)
y = Transpose(Same(r, x, whole(*axes_before)), perm=p if kept else without(p, axes_before))
""",
        sample=_reduced,
        source=_SOURCE,
    ),
    Rule(
        "transpose-down-softmax",
        before="y = (u := Normalised(Transpose(x, perm=p), axis=k))",
        after="y = Transpose(Same(u, x, axis=p[k]), perm=p)",
        sample=_normalised,
        source=_SOURCE,
    ),
    Rule(
        "transpose-up-softmax",
        before="y = Transpose(u := Normalised(x, axis=k), perm=p)",
        after="y = Same(u, Transpose(x, perm=p), axis=inverse(p)[k])",
        sample=_normalised,
        source=_SOURCE,
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
    *_sided(
        "reshape-down-trailing",
        "c = Reshape(a, s); y = (u := Binary(c | w))",
        "trails(w.shape, a.shape, c.shape) and y.shape == c.shape and y.solid",
        "y = Reshape(Same(u, a | w), whole(*y.shape))",
        _reshaped_and_trailing,
    ),
    *_sided(
        "reshape-up-trailing",
        "c = (u := Binary(a | w)); y = Reshape(c, s)",
        "trails(w.shape, a.shape, y.shape) and a.shape == c.shape and y.solid",
        "y = Same(u, Reshape(a, whole(*y.shape)) | w)",
        _reshaped_and_trailing,
    ),
    Rule(
        "reshape-down-matmul",
        before="c = Reshape(a, s); y = MatMul(c, w)",
        where="w.rank == 2 and a.rank and a.shape[-1] == c.shape[-1] and y.solid and c.solid",
        after="y = Reshape(MatMul(a, w), whole(*y.shape))",
        sample=_rows,
        source="rows of a product are apart",
    ),
    Rule(
        "reshape-up-matmul",
        before="y = Reshape(MatMul(a, w), s)",
        where="w.rank == 2 and y.rank and y.shape[-1] == w.shape[-1] and y.solid and a.solid",
        after="y = MatMul(Reshape(a, whole(*y.shape[:-1], a.shape[-1])), w)",
        sample=_rows_after,
        source="rows of a product are apart",
    ),
    Rule(
        "reshape-down-batch",
        before="y = MatMul(c, d); c = Reshape(a, s); d = Reshape(b, t)",
        where="min(a.rank, b.rank, c.rank, d.rank) >= 2 and a.shape[-2:] == c.shape[-2:]"
        " and b.shape[-2:] == d.shape[-2:] and a.shape[:-2] == b.shape[:-2] and c.shape[:-2] == d.shape[:-2]"
        " and y.solid and c.solid",
        after="y = Reshape(MatMul(a, b), whole(*y.shape))",
        sample=_batch_reshaped,
        source="products of a batch are apart",
    ),
    Rule(
        "reshape-up-batch",
        before="y = Reshape(MatMul(a, b), s)",
        where="a.rank >= 2 and y.rank >= 2 and a.shape[:-2] == b.shape[:-2] and y.solid and a.solid"
        " and y.shape[-2:] == (a.shape[-2], b.shape[-1])",
        after="""
batch = y.shape[:-2]
y = MatMul(Reshape(a, whole(*batch, *a.shape[-2:])), Reshape(b, whole(*batch, *b.shape[-2:])))
""",
        sample=_batch_reshaped_after,
        source="products of a batch are apart",
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
"""Rules of Transpose and Reshape."""
