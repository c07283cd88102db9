"""Rules of element-wise operators, joins and convolutions that TASO found, as far as no other file has them.

TASO (Jia et al., SOSP 2019) generates its substitutions by enumerating small graphs of these operators; its
file holds 157 of them and Tensat's (Yang et al., MLSys 2021) 124 + 15, most of which follow from few laws:
they are instances with operands that are equal, with another order of operands, or compositions. By law:

| TASO, Tensat | here |
|---|---|
| ewadd, ewmul are associative and commutative (of three, of four) | `associate-first`, `-second` |
| ewmul over ewadd, with operands shared or not | `scaling`: `factor-mul`, `distribute-mul` |
| matmul is associative (of three, of four) | `linear`: `associate-left`, `-right`, `merge-weights` |
| matmul is linear on both sides | `linear`: `factor-*`, `distribute-right`; `scaling`: `bias-through` |
| smul with ewmul, matmul, smul | `scaling`: `scale-*`, `fold-scale`, `merge-muls` |
| transpose of itself, ewadd, ewmul, relu, matmul, concat, split | `movement`; `scaling` |
| split of concat, concat of split | `cutting`: `cancel-split`, `cancel-concat`, `join-neighbours` |
| concat of concat, along one axis | `cutting`: `merge-concats` |
| concat along two axes, exchanged | `exchange-concats` |
| relu, ewadd, ewmul, smul of concat, and of split | `concat-*`, `linear`: `split-*` |
| matmul(concat, concat) as a sum; matmul of a concat as a concat | `linear`: `merge-sum`; `matmul-concat-*` |
| two matmuls of one input, or with one matrix, joined and split | `linear`: `merge-matmul*` |
| relu of relu | `merge-relus` |
| relu and max-pooling | `pool-relu`, `relu-pool` |
| conv is linear in its input and in its weights | `add-weights`, `add-inputs`, `distribute-conv` |
| conv(concat, concat) as a sum of convolutions | `sum-of-convs` |
| conv of a concat over the batch, or with concatenated filters | `concat-conv-*` |
| conv with relu fused; two convolutions of one input; enlarge; groups; pooling | `convolutions` |

Not here: relu(a) and relu(b), or conv(a, w) and conv(b, w), of *unrelated* values as halves of one operator
on a concat. The two share no operand, so that a graph has a place for every pair of nodes, and TASO itself
needs a join to gain by them. Where there is a join, `concat-unary` and `concat-conv-batch` do it.

Rules of sums and products hold for real numbers and differ by rounding, as in `linear`.
"""

from typing import Any

import numpy as np

from irgym.envs.graph.ir.node import Attribute
from irgym.envs.graph.rewriting.operands import (
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
from irgym.envs.graph.rewriting.rule import Rule, Sample

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
    one = _joined(rng)
    return sample(
        {"xs": one.values["xs"]}, attributes=dict(one.attributes), operators={"u": plain_unary(rng)}
    )


def _joined_binary(rng: Rng) -> Sample:
    one = _joined(rng)
    return sample(dict(one.values), attributes=dict(one.attributes), operators={"u": binary(rng)})


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
    one = _columns(rng)
    return sample(dict(one.values), attributes={"k": pick(rng, 1, -1)})


def _pooled(rng: Rng) -> Sample:
    attributes: dict[str, Attribute] = {
        "kernel_shape": (2, 3),
        "strides": tuple(rng.integers(1, 3, 2).tolist()),
        "pads": tuple(rng.integers(0, 2, 4).tolist()),
        "ceil_mode": int(rng.integers(2)),
    }
    return sample({"x": array(rng, 1, 2, 6, 7)}, nodes={"p": attributes})


def _filters(rng: Rng, into: int, out: int, window: tuple[int, int] = (2, 3)) -> Any:
    return array(rng, out, into, *window)


def _attributes(rng: Rng, group: int = 1) -> dict[str, Attribute]:
    return {
        "group": group,
        "pads": tuple(rng.integers(0, 2, 4).tolist()),
        "strides": tuple(rng.integers(1, 3, 2).tolist()),
        "dilations": tuple(rng.integers(1, 3, 2).tolist()),
    }


def _convs(rng: Rng, *, inputs: int, equal: bool) -> Sample:
    """Return operands of two convolutions whose results have one shape.

    Args:
        rng: Random numbers.
        inputs: How many inputs there are: x and z, or x alone.
        equal: Whether both have as many channels.
    """
    group = pick(rng, 1, 2) if equal else 1
    into, out = group * int(rng.integers(1, 3)), group * int(rng.integers(1, 3))
    other = into if equal else int(rng.integers(1, 4))
    values: dict[str, Any] = {
        "x": array(rng, 2, into, 6, 7),
        "w": _filters(rng, into // group, out),
        "v": _filters(rng, other // group, out),
        "b": pick(rng, None, array(rng, out)),
        "e": pick(rng, None, array(rng, out)),
    }
    if inputs == 2:
        values["z"] = array(rng, 2, other, 6, 7)
    nodes = _attributes(rng, group)
    return sample(values, "w v b e", nodes={"c": nodes, "d": nodes})


def _joined_batches(rng: Rng) -> Sample:
    into, out = (int(size) for size in rng.integers(1, 3, 2))
    values = {
        "xs": [array(rng, size, into, 5, 6) for size in parts_of(rng)],
        "rest": pick(rng, [_filters(rng, into, out)], [_filters(rng, into, out), array(rng, out)]),
    }
    return sample(values, "rest", nodes={"c": _attributes(rng)})


def _joined_filters(rng: Rng) -> Sample:
    into = int(rng.integers(1, 3))
    values = {
        "x": array(rng, 2, into, 5, 6),
        "w": _filters(rng, into, int(rng.integers(1, 3))),
        "v": _filters(rng, into, int(rng.integers(1, 3))),
    }
    values["b"], values["e"] = array(rng, len(values["w"])), array(rng, len(values["v"]))
    nodes = _attributes(rng)
    heads = [array(rng, *_out(values["x"], nodes)) for _ in range(int(rng.integers(2)))]
    return sample({**values, "head": heads, "tail": []}, "w v b e", nodes={"c": nodes, "d": nodes})


def _out(x: Any, attributes: dict[str, Attribute]) -> tuple[int, ...]:
    """Return a shape that can be joined to a convolution's with a window of 2 by 3, along axis 1."""
    pads, strides, dilations = (np.array(attributes[name]) for name in ("pads", "strides", "dilations"))
    reach = dilations * [1, 2] + 1
    sizes = (np.array(x.shape[2:]) + pads[:2] + pads[2:] - reach) // strides + 1
    return (x.shape[0], 2, *(int(size) for size in sizes))


_ADDED = "bias = add(b, e) if b and e else b or e"

_ASSOCIATIVE = (
    "u.operator == v.operator"
    " and (u.operator != 'Mul' or all([one.ordinary or not one.finite for one in (a, b, c)]))"
)
"""Condition that two operators may change places; what masks add, times a number, may be infinite."""

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
    Rule(
        "pool-relu",
        before="y = (p := MaxPool(Relu(x)))",
        where="set(p.get('dilations', (1,))) == {1}",
        after="y = Relu(Same(p, x))",
        sample=_pooled,
        source=_SOURCE,
    ),
    Rule(
        "relu-pool",
        before="y = Relu(p := MaxPool(x))",
        where="set(p.get('dilations', (1,))) == {1}",
        after="y = Same(p, Relu(x))",
        sample=_pooled,
        source=_SOURCE,
    ),
    Rule(
        "add-weights",
        before="y = Add(c := Conv(x, w, [b]), d := Conv(x, v, [e]))",
        where="y.floating and c.alike(d) and w.shape == v.shape"
        " and all([one.constant for one in (w, v, b, e) if one])",
        after=f"{_ADDED}\ny = Same(c, x, add(w, v), *([bias] if bias else []))",
        sample=lambda rng: _convs(rng, inputs=1, equal=True),
        source=_SOURCE,
    ),
    Rule(
        "add-inputs",
        before="y = Add(c := Conv(x, w, [b]), d := Conv(z, w, [e]))",
        where="y.floating and c.alike(d) and x.shape == z.shape"
        " and all([one.constant for one in (b, e) if one])",
        after=f"{_ADDED}\ny = Same(c, Add(x, z), w, *([bias] if bias else []))",
        sample=lambda rng: _convs(rng, inputs=2, equal=True),
        source=_SOURCE,
    ),
    Rule(
        "distribute-conv",
        before="y = (c := Conv(Add(x, z), w, *rest))",
        where="y.floating and x.shape == z.shape and w.constant",
        after="y = Add(Same(c, x, w, *rest), Same(c, z, w))",
        sample=lambda rng: Sample(
            {**(one := _convs(rng, inputs=2, equal=True)).values, "rest": []}, frozenset("w"), nodes=one.nodes
        ),
        source="TASO, the reverse of add-inputs",
    ),
    Rule(
        "sum-of-convs",
        before="y = Add(c := Conv(x, w, [b]), d := Conv(z, v, [e]))",
        where="y.floating and c.alike(d) and c.get('group', 1) == 1"
        " and x.shape[:1] + x.shape[2:] == z.shape[:1] + z.shape[2:]"
        " and w.shape[:1] + w.shape[2:] == v.shape[:1] + v.shape[2:]"
        " and all([one.constant for one in (w, v, b, e) if one])",
        after=f"{_ADDED}\ny = Same(c, Concat(x, z, axis=1), concat(1, w, v), *([bias] if bias else []))",
        sample=lambda rng: _convs(rng, inputs=2, equal=False),
        source=_SOURCE,
    ),
    Rule(
        "concat-conv-batch",
        before="y = Concat(*ts, axis=0); *ts = [(c := Conv(x, *rest)) for x in xs]",
        where="len(set([x.shape[1:] for x in xs])) == 1",
        after="y = Same(c, Concat(*xs, axis=0), *rest)",
        sample=_joined_batches,
        source=_SOURCE,
    ),
    Rule(
        "concat-conv-filters",
        before="y = Concat(*head, s, t, *tail, axis=1); s = (c := Conv(x, w, b)); t = (d := Conv(x, v, e))",
        where="c.alike(d) and c.get('group', 1) == 1 and w.shape[1:] == v.shape[1:]"
        " and w.constant and v.constant and b.constant and e.constant",
        after="""
both = Same(c, x, concat(0, w, v), concat(0, b, e))
y = Concat(*head, both, *tail, axis=1) if head or tail else both
""",
        sample=_joined_filters,
        source=_SOURCE,
    ),
)
"""Rules that TASO found."""
