"""Rules for Transpose: transpositions that cancel, merge, or move past other operators.

All are exact. Rules that move a Transpose come in pairs: down, towards the results, and up.
"""

from irgym.envs.graph.rewriting.rule import Rule, Sample
from irgym.envs.graph.rewriting.samples.operands import (
    Rng,
    array,
    binary,
    broadcastable,
    either,
    order_of,
    parts_of,
    pick,
    resized,
    sample,
    shape_of,
    unary,
)
from irgym.envs.graph.rewriting.templates import sided

_SOURCE = "ONNX Runtime's TransposeOptimizer"
_BOTH = f"TASO; {_SOURCE}"


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


def _unary(rng: Rng) -> Sample:
    kind, attributes, rest = unary(rng)
    x = array(rng, *shape_of(rng))
    return sample(
        {"x": x, "rest": rest},
        "rest",
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
        {"x": array(rng, *resized(shape, axis, sum(sizes))), "s": list(sizes)},
        "s",
        attributes={"p": order, "k": either(rng, axis, len(shape))},
        counts={"xs": len(sizes)},
    )


def _cut_moved(rng: Rng) -> Sample:
    shape, sizes = shape_of(rng), parts_of(rng)
    axis, order = int(rng.integers(len(shape))), order_of(rng, len(shape))
    return sample(
        {"x": array(rng, *resized(shape, order[axis], sum(sizes))), "s": list(sizes)},
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


RULES = (
    Rule(
        "cancel-transposes",
        before="y = Transpose(t := Transpose(x, perm=p), perm=q)",
        where="composed(p, q) == tuple(range(x.rank))",
        after="y = x",
        sample=_undone,
        shared=("t",),
        source=_BOTH,
    ),
    Rule(
        "merge-transposes",
        before="y = Transpose(t := Transpose(x, perm=p), perm=q)",
        after="y = Transpose(x, perm=composed(p, q))",
        sample=_transposes,
        shared=("t",),
        source=_BOTH,
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
        "transpose-down-unary",
        before="y = (u := Unary(Transpose(x, perm=p), *rest))",
        after="y = Transpose(Same(u, x, *rest), perm=p)",
        sample=_unary,
        source=_BOTH,
    ),
    Rule(
        "transpose-up-unary",
        before="y = Transpose(u := Unary(x, *rest), perm=p)",
        after="y = Same(u, Transpose(x, perm=p), *rest)",
        sample=_unary,
        source=_BOTH,
    ),
    Rule(
        "transpose-down-binary",
        before="y = (u := Binary(Transpose(a, perm=p), Transpose(b, perm=p)))",
        where="a.rank == b.rank",
        after="y = Transpose(Same(u, a, b), perm=p)",
        sample=_two_transposed,
        source=_BOTH,
    ),
    *sided(
        "transpose-down-weight",
        "y = (u := Binary(Transpose(a, perm=p) | w))",
        "w.constant and w.rank <= a.rank",
        "y = Transpose(Same(u, a | transpose(reshape(w, aligned(w.shape, a.rank)), inverse(p))), perm=p)",
        _transposed_and_weight,
        _SOURCE,
    ),
    *sided(
        "transpose-up-weight",
        "y = Transpose(u := Binary(a | w), perm=p)",
        "w.constant and a.rank == y.rank",
        "y = Same(u, Transpose(a, perm=p) | transpose(reshape(w, aligned(w.shape, a.rank)), p))",
        _sum_transposed,
        _SOURCE,
    ),
    Rule(
        "transpose-up-binary",
        before="y = Transpose(u := Binary(a, b), perm=p)",
        where="a.rank == b.rank",
        after="y = Same(u, Transpose(a, perm=p), Transpose(b, perm=p))",
        sample=_two_transposed,
        source=_BOTH,
    ),
    Rule(
        "transpose-down-concat",
        before="y = Concat(*ts, axis=k); *ts = [Transpose(x, perm=p) for x in xs]",
        after="y = Transpose(Concat(*xs, axis=p[k]), perm=p)",
        sample=_joined,
        source=_BOTH,
    ),
    Rule(
        "transpose-up-concat",
        before="y = Transpose(Concat(*xs, axis=k), perm=p)",
        after="y = Concat(*[Transpose(x, perm=p) for x in xs], axis=inverse(p)[k])",
        sample=_join_moved,
        source=_BOTH,
    ),
    Rule(
        "transpose-up-split",
        before="*xs = Split(x, s, axis=k); *ys = [Transpose(x_, perm=p) for x_ in xs]",
        after="ys = Split(Transpose(x, perm=p), s, outputs=len(ys), axis=inverse(p)[k])",
        sample=_cut,
        source=_BOTH,
    ),
    Rule(
        "transpose-down-split",
        before="*ys = Split(Transpose(x, perm=p), s, axis=k)",
        after="ys = [Transpose(part, perm=p) for part in Split(x, s, outputs=len(ys), axis=p[k])]",
        sample=_cut_moved,
        source=_BOTH,
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
)
"""Rules for Transpose."""
