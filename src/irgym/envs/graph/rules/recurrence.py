"""Rules that hoist products of inputs out of an unrolled recurrence, and share common subexpressions.

An unrolled recurrence multiplies each time step of its input by the same weights. Each of these products is a
slice of a single product of all steps (`hoist-gather` and similar rules). A single such rewrite computes all
steps to use one; it pays off when `share` merges the products of all steps. `merge-matmul` merges products
with different weights before or after. In prototypes, NASRNN on one thread gained 15 to 41 %.
"""

from typing import Any

from irgym.envs.graph.rewriting.rule import Rule, Sample
from irgym.envs.graph.rewriting.samples.operands import (
    Rng,
    array,
    either,
    index_array,
    parts_of,
    pick,
    plain_unary,
    resized,
    sample,
    shape_of,
)

_SOURCE = "products of inputs, once for all steps: cuDNN's and others' recurrent layers"


def _steps(rng: Rng, **values: Any) -> Sample:
    """Return operands x, i, w and b: indices i of one or several steps of x along any axis but the last."""
    shape = shape_of(rng, 2)
    axis = int(rng.integers(len(shape) - 1))
    size = shape[axis]
    places = index_array(rng, -size, size, pick(rng, (), (), (2,), (2, 1)))
    out = int(rng.integers(1, 4))
    given: dict[str, Any] = {
        "x": array(rng, *shape),
        "i": places,
        "w": array(rng, shape[-1], out),
        "b": array(rng, *pick(rng, (shape[-1],), (1,), ())),
        **values,
    }
    weights = pick(rng, "i w b", "w b", "b")
    return sample(given, weights, attributes={"k": either(rng, axis, len(shape))})


def _unary_step(rng: Rng) -> Sample:
    steps = _steps(rng)
    return Sample(
        {**steps.values, "rest": []}, steps.weights, steps.attributes, operators={"u": plain_unary(rng)}
    )


def _binary_step(rng: Rng) -> Sample:
    steps = _steps(rng)
    kind = pick(rng, "Add", "Mul", "Sub")
    return Sample(steps.values, steps.weights, steps.attributes, operators={"u": kind})


def _window(rng: Rng) -> Sample:
    shape = shape_of(rng, 2)
    axis = int(rng.integers(len(shape) - 1))
    cut = [[0], [int(rng.integers(1, shape[axis] + 1))], [either(rng, axis, len(shape))]]
    return sample({"x": array(rng, *shape), "cut": cut, "w": array(rng, shape[-1], 3)}, "cut w")


def _binary_window(rng: Rng) -> Sample:
    window = _window(rng)
    x = window.values["x"]
    b = array(rng, *pick(rng, (x.shape[-1],), (1,), ()))
    values = {"x": x, "cut": window.values["cut"], "b": b}
    return sample(values, "cut b", operators={"u": pick(rng, "Add", "Mul", "Sub")})


def _parts(rng: Rng) -> Sample:
    shape, sizes = shape_of(rng, 2), parts_of(rng)
    axis = int(rng.integers(len(shape) - 1))
    place = int(rng.integers(len(sizes)))
    x = array(rng, *resized(shape, axis, sum(sizes)))
    return sample(
        {"x": x, "s": sizes, "w": array(rng, shape[-1], 2)},
        "s w",
        attributes={"k": either(rng, axis, len(shape))},
        counts={"parts": len(sizes), "head": place, "tail": len(sizes) - place - 1},
    )


def _twice(rng: Rng) -> Sample:
    shape = shape_of(rng, 2)
    kind, xs, count, attributes = pick(
        rng,
        ("Add", [array(rng, *shape), array(rng, *shape)], 1, {}),
        ("Softmax", [array(rng, *shape)], 1, {"axis": 0}),
        ("Concat", [array(rng, *shape), array(rng, *shape)], 1, {"axis": 1}),
        ("Split", [array(rng, 4, 2), [1, 3]], 2, {"axis": 0}),
    )
    return sample(
        {"xs": xs},
        "xs" if kind == "Split" else "",
        nodes={"c": attributes, "d": attributes},
        counts={"ys": count, "zs": count},
        operators={"c": kind, "d": kind},
    )


RULES = (
    Rule(
        "hoist-gather",
        before="y = MatMul(g := Gather(x, i, axis=k), w)",
        where="w.rank == 2 and x.rank >= 2 and front(k, x.rank) < x.rank - 1",
        after="y = Gather(MatMul(x, w), i, axis=front(k, x.rank))",
        sample=_steps,
        shared=("g",),
        source=_SOURCE,
    ),
    Rule(
        "sink-gather",
        before="y = Gather(m := MatMul(x, w), i, axis=k)",
        where="w.rank == 2 and x.rank >= 2 and front(k, x.rank) < x.rank - 1",
        after="y = MatMul(Gather(x, i, axis=front(k, x.rank)), w)",
        sample=_steps,
        shared=("m",),
        source="the reverse of hoist-gather",
    ),
    Rule(
        "hoist-gather-binary",
        before="y = (u := Binary(g := Gather(x, i, axis=k), b))",
        where="b.constant and front(k, x.rank) < x.rank - b.rank and trails(b.shape, x.shape)"
        " and broadcast(x.shape, b.shape) == x.shape",
        after="y = Gather(Same(u, x, b), i, axis=front(k, x.rank))",
        sample=_binary_step,
        shared=("g",),
        source=_SOURCE,
    ),
    Rule(
        "hoist-gather-unary",
        before="y = (u := Unary(g := Gather(x, i, axis=k), *rest))",
        after="y = Gather(Same(u, x, *rest), i, axis=k)",
        sample=_unary_step,
        shared=("g",),
        source=_SOURCE,
    ),
    Rule(
        "hoist-slice",
        before="y = MatMul(c := Slice(x, *cut), w)",
        where="w.rank == 2 and x.rank >= 2 and window(x.shape, cut) is not None"
        " and x.rank - 1 not in window(x.shape, cut)",
        after="y = Slice(MatMul(x, w), *[whole(*column) for column in columns(window(x.shape, cut))])",
        sample=_window,
        shared=("c",),
        source=_SOURCE,
    ),
    Rule(
        "hoist-slice-binary",
        before="y = (u := Binary(c := Slice(x, *cut), b))",
        where="b.constant and window(x.shape, cut) and max(window(x.shape, cut)) < x.rank - b.rank"
        " and trails(b.shape, x.shape) and broadcast(x.shape, b.shape) == x.shape",
        after="y = Slice(Same(u, x, b), *cut)",
        sample=_binary_window,
        shared=("c",),
        source=_SOURCE,
    ),
    Rule(
        "hoist-part",
        before="y = MatMul(a, w); *head, a, *tail = (s_ := Split(x, [s], axis=k))",
        where="w.rank == 2 and front(k, x.rank) < x.rank - 1 and all(head)",
        after="""
start = sum([part.shape[k] for part in head])
y = Slice(MatMul(x, w), whole(start), whole(start + a.shape[k]), whole(front(k, x.rank)), whole(1))
""",
        sample=_parts,
        shared=("s_",),
        source=_SOURCE,
    ),
    Rule(
        "hoist-split",
        before="*parts = Split(x, s, axis=k); *ys = [MatMul(a, w) for a in parts]",
        where="w.rank == 2 and front(k, x.rank) < x.rank - 1",
        after="ys = Split(MatMul(x, w), s, outputs=len(ys), axis=front(k, x.rank))",
        sample=_parts,
        source=_SOURCE,
    ),
    Rule(
        "share",
        before="*zs = (d := Anything(*xs)); *ys = (c := Anything(*xs))",
        where="c.alike(d) and c.operator != 'Identity' and len(ys) == len(zs) and all((*ys, *zs))",
        after="zs = ys",
        sample=_twice,
        shared=("c",),
        source="common subexpression elimination",
    ),
)
"""Rules for unrolled recurrences."""
