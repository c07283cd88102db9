"""Rules that bring attention, as different exporters write it, into the common form that `attention` matches.

In that form, scores are a FusedMatMul (transB) of heads, each a Transpose of a Reshape; a single mask is
added to the scores; a Softmax follows directly; and a Transpose and a Reshape join the heads.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from irgym.envs.graph.rewriting.rule import Rule, Sample
from irgym.envs.graph.rewriting.samples.operands import Rng, random_sizes


def _scores(rng: Rng) -> tuple[Any, Any]:
    """Return scores, and a boolean mask that broadcasts to them."""
    batch, heads, rows, columns = random_sizes(rng, 4, 2)
    shapes = [(batch, 1, 1, columns), (batch, 1, rows, columns), (rows, columns), (1, heads, rows, columns)]
    seen = rng.random(shapes[int(rng.integers(len(shapes)))]) < 0.7
    return rng.standard_normal((batch, heads, rows, columns)), seen


_LEAST = -3.4028234663852886e38


def _clean(rng: Rng) -> Sample:
    scores, _ = _scores(rng)
    return Sample({"x": scores, "z": np.array(0.0)}, frozenset("z"), nodes={"n": {"axis": -1}})


def _masked(rng: Rng) -> Sample:
    scores, seen = _scores(rng)
    values = {"c": seen, "s": scores, "f": np.array(_LEAST)}
    return Sample(values, frozenset("f"), nodes={"n": {"axis": -1}})


def _zeros(rng: Rng) -> Sample:
    scores, seen = _scores(rng)
    return Sample({"x": scores, "m": np.zeros(seen.shape)}, frozenset("m"), nodes={"n": {"axis": -1}})


def _two_masks(rng: Rng) -> Sample:
    scores, seen = _scores(rng)
    batch, heads, rows, columns = scores.shape
    values = {
        "a": rng.standard_normal((batch, heads, rows, 3)),
        "b": rng.standard_normal((batch, heads, columns, 3)),
        "r": rng.standard_normal((heads, rows, columns)),
        "m": np.where(seen, 0, _LEAST),
    }
    return Sample(values, nodes={"n": {"axis": -1}, "k": {"transB": 1, "alpha": 0.5}})


_ROWS = "(*range({0} - 2), {0} - 1, {0} - 2)"
"""The order of axes that swaps the last two."""


def _keys(rng: Rng) -> Sample:
    batch, heads, rows, size = random_sizes(rng, 4, 2)
    values = {
        "x": rng.standard_normal((batch, heads, rows, size)),
        "a": np.array([-1, rows, size]),
        "b": np.array([batch, heads, size, rows]),
    }
    return Sample(values, frozenset("ab"), {"p": (0, 2, 1)})


def _keys_apart(rng: Rng) -> Sample:
    batch, heads, rows, size = rng.integers(1, 6, 4).tolist()
    x = rng.standard_normal((batch * heads, rows, size))
    return Sample({"x": x, "b": np.array([batch, heads, size, rows])}, frozenset("b"), {"p": (0, 2, 1)})


def _merged_keys(kind: str) -> Callable[[Rng], Sample]:
    def sample(rng: Rng) -> Sample:
        batch, heads, rows, columns, size = random_sizes(rng, 5, 2)
        values = {
            "x": rng.standard_normal((batch, heads, rows, size)),
            "w": rng.standard_normal((batch, columns, heads, size)),
        }
        return Sample(values, attributes={"u": 0.5} if kind == "FusedMatMul" else {})

    return sample


def _merged() -> Iterator[Rule]:
    forms = {
        "MatMul": ("", "alpha=1.0"),
        "FusedMatMul": (", alpha=u, transA=0, transB=0, transBatchA=0, transBatchB=0", "alpha=u"),
    }
    for kind, (attributes, scale) in forms.items():
        yield Rule(
            f"{'fused-' if kind != 'MatMul' else ''}key-transpose-right",
            before=f"y = {kind}(x, Transpose(w, perm=[0, 2, 3, 1]){attributes})",
            where="x.floating and x.rank > 1",
            after=f"y = FusedMatMul(x, Transpose(w, perm=(0, 2, 1, 3)), {scale}, transB=1)",
            sample=_merged_keys(kind),
            source="ONNX Runtime's MatmulTransposeFusion",
        )


def _sequence_first(rng: Rng) -> Sample:
    rows, batch, heads, size = random_sizes(rng, 4, 2)
    values = {
        "x": rng.standard_normal((rows, batch, heads * size)),
        "a": np.array([rows, batch * heads, size]),
        "b": np.array([batch, heads, rows, size]),
    }
    return Sample(values, frozenset("ab"))


def _heads_first(rng: Rng) -> Sample:
    rows, batch, heads, size = rng.integers(1, 6, 4).tolist()
    x = rng.standard_normal((rows, batch * heads, size))
    return Sample({"x": x, "b": np.array([batch, heads, rows, -1])}, frozenset("b"))


def _joined(rng: Rng) -> Sample:
    batch, heads, rows, size = random_sizes(rng, 4, 2)
    target = [rows * batch, heads * size] if rng.integers(2) else [rows, batch, heads * size]
    return Sample(
        {"o": rng.standard_normal((batch, heads, rows, size)), "s": np.array(target)}, frozenset("s")
    )


def _around(rng: Rng) -> Sample:
    inner, out, *lead = random_sizes(rng, 4, 2)
    values = {"w": rng.standard_normal((inner, out)), "b": rng.standard_normal(out)}
    return Sample({"x": rng.standard_normal((*lead, inner)), **values}, frozenset("wb"), {"p": (1, 0, 2)})


def _transposed() -> Iterator[Rule]:
    for name, form, condition in (
        ("", "Add(MatMul({0}, w), b)", " and b.rank <= 1"),
        ("-unbiased", "MatMul({0}, w)", ""),
    ):
        yield Rule(
            f"transposed-linear{name}",
            before=f"y = Transpose({form.format('Transpose(x, perm=p)')}, perm=p)",
            where=f"w.rank == 2{condition} and x.rank > 1 and p[-1] == x.rank - 1"
            " and all(p[p[axis]] == axis for axis in range(len(p)))",
            after=f"y = {form.format('x')}",
            sample=_around,
            source="a linear layer treats all places alike",
        )


def _stacked(rng: Rng) -> Sample:
    rows, batch, size = random_sizes(rng, 3, 2)
    values = {
        "l": rng.standard_normal((rows, batch, 3 * size)),
        "r": np.array([rows, batch, 3, size]),
        "u": np.array([0]),
        "z": np.array([-2]),
    }
    return Sample(values, frozenset("ruz"))


def _thirds(rng: Rng) -> Sample:
    shape, axis = random_sizes(rng, 4, 2), int(rng.integers(-4, 4))
    shape[axis] = 3
    return Sample({"s": rng.standard_normal(shape)}, attributes={"a": axis})


def _negated(rng: Rng) -> Sample:
    scores, seen = _scores(rng)
    return Sample({"c": seen, "a": scores, "b": np.array(rng.standard_normal())})


def _batched_sum(rng: Rng) -> Sample:
    batch, heads, rows, columns = random_sizes(rng, 4, 2)
    values = {name: rng.standard_normal((batch * heads, rows, columns)) for name in "ab"}
    return Sample({**values, "s": np.array([-1, heads, rows, columns])}, frozenset("s"))


def _batched_product(kind: str) -> Callable[[Rng], Sample]:
    def sample(rng: Rng) -> Sample:
        batch, heads, rows, inner, columns = random_sizes(rng, 5, 2)
        flip = kind == "FusedMatMul" and bool(rng.integers(2))
        right = rng.standard_normal((batch, heads, inner, columns))
        right = right.swapaxes(-1, -2) if flip else right
        values = {
            "a": rng.standard_normal((batch, heads, rows, inner)),
            "b": right,
            "i": np.array([-1, rows, inner]),
            "j": np.array([batch * heads, *right.shape[2:]]),
            "s": np.array([batch, heads, rows, columns]),
        }
        return Sample(values, frozenset("ijs"), nodes={"m": {"transB": 1, "alpha": 0.5} if flip else {}})

    return sample


def _batched() -> Iterator[Rule]:
    for kind in ("MatMul", "FusedMatMul"):
        yield Rule(
            f"{'fused-' if kind != 'MatMul' else ''}split-batch-product",
            before=f"y = Reshape(p, s); p = (m := {kind}(g, h)); g = (c := Reshape(a, i));"
            " h = (d := Reshape(b, j))",
            where="a.floating and g.rank == h.rank == 3 and a.rank == b.rank == y.rank == 4"
            " and a.shape[:2] == b.shape[:2] == y.shape[:2]"
            " and g.shape[1:] == a.shape[2:] and h.shape[1:] == b.shape[2:] and g.shape[0] == h.shape[0]"
            " and y.shape[2:] == p.shape[1:]"
            " and not m.get('transBatchA', 0) and not m.get('transBatchB', 0)",
            after=f"y = {kind}(a, b, **m)",
            shared=("c", "d"),
            sample=_batched_product(kind),
            source="heads in the batch, as DeBERTa writes them",
        )


RULES = (
    Rule(
        "softmax-no-nan",
        before="y = Where(IsNaN(s), z, s); s = (n := Softmax(x))",
        where="x.finite and y.shape == x.shape",
        after="y = Softmax(x, **n)",
        sample=_clean,
        source="PyTorch's exporter, which guards softmax against NaN; with finite scores there is none",
    ),
    Rule(
        "softmax-no-mask",
        before="y = (n := Softmax(Add(x, m)))",
        where="m.zero and y.shape == x.shape",
        after="y = Softmax(x, **n)",
        sample=_zeros,
        source="constant folding",
    ),
    Rule(
        "softmax-where-mask",
        before="y = (n := Softmax(Where(c, s, f)))",
        where="s.ordinary and f.number <= -1e30 and y.shape == s.shape",
        after="y = Softmax(Add(s, Where(c, like(s, 0.0), f)), **n)",
        sample=_masked,
        source="masked_fill: what is added swallows the score",
    ),
    Rule(
        "softmax-where-mask-else",
        before="y = (n := Softmax(Where(c, f, s)))",
        where="s.ordinary and f.number <= -1e30 and y.shape == s.shape",
        after="y = Softmax(Add(s, Where(c, f, like(s, 0.0))), **n)",
        sample=_masked,
        source="masked_fill: what is added swallows the score",
    ),
    Rule(
        "softmax-sum-masks",
        before="y = (n := Softmax(Add(Add(f, r), m))); f = (k := FusedMatMul(a, b))",
        where="f.ordinary and r.finite and m.finite and (r.ordinary or m.ordinary)",
        after="y = Softmax(Add(f, Add(r, m)), **n)",
        shared=("k",),
        sample=_two_masks,
        source="associativity: all masks become a single one",
    ),
    Rule(
        "key-transpose",
        before="y = Reshape(Transpose(r, perm=p), b); r = Reshape(x, a)",
        where=f"x.rank > 1 and r.shape[-2:] == x.shape[-2:] and p == {_ROWS.format('r.rank')}"
        " and y.shape == (*x.shape[:-2], x.shape[-1], x.shape[-2])",
        after=f"y = Transpose(x, perm={_ROWS.format('x.rank')})",
        sample=_keys,
        source="PyTorch's exporter, for transposed keys; ONNX Runtime's ReshapeFusion",
    ),
    Rule(
        "reshape-before-transpose",
        before="y = Reshape(Transpose(x, perm=p), b)",
        where=f"x.rank > 1 and y.rank > x.rank and p == {_ROWS.format('x.rank')} and y.type.size > 0"
        " and y.shape[-2:] == (x.shape[-1], x.shape[-2])",
        after="y = Transpose(Reshape(x, whole(*y.shape[:-2], *x.shape[-2:])),"
        f" perm={_ROWS.format('y.rank')})",
        sample=_keys_apart,
        source="a reshape of leading axes, of size 1 too, commutes with a transpose of the last two",
    ),
    *_merged(),
    Rule(
        "split-heads-sequence-first",
        before="y = Reshape(Transpose(r, perm=[1, 0, 2]), b); r = Reshape(x, a)",
        where="x.rank == r.rank == 3 and y.rank == 4 and r.shape[0] == x.shape[0] == y.shape[2]"
        " and r.shape[2] == y.shape[3] and y.shape[0] == x.shape[1]"
        " and y.shape[1] * y.shape[3] == x.shape[2] and y.type.size > 0",
        after="""
batch, heads, length, size = y.shape
first = Reshape(Transpose(x, perm=(1, 0, 2)), whole(batch, length, heads, size))
y = Transpose(first, perm=(0, 2, 1, 3))
""",
        sample=_sequence_first,
        source="torch.nn.MultiheadAttention, whose sequence comes before its batch",
    ),
    Rule(
        "split-heads-batch-transposed",
        before="y = Reshape(Transpose(x, perm=[1, 0, 2]), b)",
        where="y.rank == 4 and y.shape[2:] == (x.shape[0], x.shape[2]) and y.type.size > 0",
        after="""
batch, heads, length, size = y.shape
y = Transpose(Reshape(x, whole(length, batch, heads, size)), perm=(1, 2, 0, 3))
""",
        sample=_heads_first,
        source="ONNX Runtime's transpose optimiser; also where some sizes are 1",
    ),
    Rule(
        "join-heads-sequence-first",
        before="y = Reshape(Transpose(o, perm=[2, 0, 1, 3]), s)",
        where="y.type.size > 0",
        after="""
batch, heads, length, size = o.shape
joined = Reshape(Transpose(o, perm=(0, 2, 1, 3)), whole(batch, length, heads * size))
y = Reshape(Transpose(joined, perm=(1, 0, 2)), whole(*y.shape))
""",
        sample=_joined,
        source="torch.nn.MultiheadAttention, whose sequence comes before its batch",
    ),
    *_transposed(),
    Rule(
        "unstack-projections",
        before="""
s = Squeeze(Transpose(Unsqueeze(Reshape(l, r), u), perm=[3, 1, 2, 0, 4]), z)
q = Gather(s, 0, axis=0)
k = Gather(s, 1, axis=0)
v = Gather(s, 2, axis=0)
""",
        where="l.rank == 3 and u.elements == (0,) and z.elements in ((-2,), (3,)) and s.rank == 4"
        " and s.shape[0] == 3 and s.shape[1:3] == l.shape[:2] and q.rank == k.rank == v.rank == 3"
        " and s.shape[3] * 3 == l.shape[2]",
        after="""
size = s.shape[3]
q, k, v = Split(l, whole(size, size, size), outputs=3, axis=2)
""",
        sample=_stacked,
        source="torch.nn.MultiheadAttention, which packs its projections; ONNX Runtime's GatherToSplitFusion",
    ),
    Rule(
        "gather-split",
        before="q = Gather(s, 0, axis=a); k = Gather(s, 1, axis=a); v = Gather(s, 2, axis=a)",
        where="s.shape[a] == 3 and q.rank == k.rank == v.rank == s.rank - 1",
        after="""
first, second, third = Split(s, whole(1, 1, 1), outputs=3, axis=a)
q = Squeeze(first, whole(a))
k = Squeeze(second, whole(a))
v = Squeeze(third, whole(a))
""",
        sample=_thirds,
        source="ONNX Runtime's GatherToSplitFusion",
    ),
    Rule(
        "where-not",
        before="y = Where(n := Not(c), a, b)",
        after="y = Where(c, b, a)",
        shared=("n",),
        sample=_negated,
        source="ONNX Runtime's NotWhereFusion",
    ),
    Rule(
        "split-batch-sum",
        before="y = Reshape(Add(a, b), s)",
        where="a.floating and a.shape == b.shape and a.rank == 3 and y.rank == 4"
        " and y.shape[2:] == a.shape[1:]",
        after="y = Add(Reshape(a, s), Reshape(b, s))",
        sample=_batched_sum,
        source="heads in the batch, as DeBERTa writes them",
    ),
    *_batched(),
)
"""Rules for heads, scores and masks of attention."""
