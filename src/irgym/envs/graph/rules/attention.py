"""Rules for attention: ONNX Runtime's multi-head attention from heads, and packed attention from that.

`heads` and `products` bring the forms that exporters write into a common one: scale and transposed keys move
into a FusedMatMul, and all masks become one added mask. Then `multi-head-attention` replaces heads and
softmax, `attention-bias` absorbs biases of queries, keys and values, and `packed-attention` absorbs the
projections.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from irgym.envs.graph.ir.node import Attribute
from irgym.envs.graph.rewriting.rule import Rule, Sample
from irgym.envs.graph.rewriting.samples.operands import Rng, random_sizes


def _heads(rng: Rng, cross: bool = True) -> tuple[dict[str, Any], tuple[int, ...]]:
    """Return queries, keys and values, shape (batch, length, hidden), and batch, heads, length and total."""
    batch, heads, length, total, size, other = random_sizes(rng, 6, 2)
    total = total if cross else length
    values = {
        "q": rng.standard_normal((batch, length, heads * size)),
        "k": rng.standard_normal((batch, total, heads * size)),
        "v": rng.standard_normal((batch, total, heads * other)),
    }
    return values, (batch, heads, length, total)


def _mask(rng: Rng, batch: int, heads: int, length: int, total: int) -> Any:
    """Return a mask to add to scores, of a random shape that broadcasts to theirs."""
    whole = [(batch, heads, length, total), (1, heads, length, total), (batch, 1, length, total)]
    shapes = [
        *whole,
        (1, 1, length, total),
        (batch, 1, 1, total),
        (length, total),
        (heads, length, 1),
        (total,),
    ]
    return rng.standard_normal(shapes[int(rng.integers(len(shapes)))])


# From heads.

_SPLIT = """
g = (a := Reshape(q, {0}))
h = (b := Reshape(k, {1}))
i = (c := Reshape(v, {2}))
"""
_FITS = (
    "q.floating and q.rank == k.rank == v.rank == 3 and g.rank == h.rank == i.rank == 4"
    " and g.shape[:2] == q.shape[:2] and h.shape[:2] == k.shape[:2] and i.shape[:2] == v.shape[:2]"
    " and g.shape[2] == h.shape[2] == i.shape[2] and g.shape[0] == h.shape[0] == i.shape[0]"
)
_BIAS = """
wide = (1,) * (4 - m.rank) + m.shape
seen = m if m.rank == 4 and wide[2:] == s.shape[2:] else Expand(m, whole(*wide[:2], *s.shape[2:]))
"""
_JOIN = """
z = MultiHeadAttention(q, k, v{0}, num_heads=g.shape[2]{1})
y = z if y.shape == z.shape else Reshape(z, whole(*y.shape))
"""
_SHARED = ("a", "b", "c", "d", "e", "f")


def _split_sample(
    masked: bool, attributes: Mapping[str, Attribute], cross: bool = True
) -> Callable[[Rng], Sample]:
    def sample(rng: Rng) -> Sample:
        values, (batch, heads, length, total) = _heads(rng, cross)
        for name, operand in (("t", "q"), ("u", "k"), ("w", "v")):
            values[name] = np.array([batch, values[operand].shape[1], heads, -1])
        joined = [batch, length, -1] if rng.integers(2) else [batch * length, -1]
        values["x"] = np.array(joined)
        if masked:
            values["m"] = _mask(rng, batch, heads, length, total)
        return Sample(values, frozenset("tuwx"), attributes)

    return sample


def _multi_head() -> Iterator[Rule]:
    scores = (
        "FusedMatMul(d := Transpose(g, perm=[0, 2, 1, 3]), e := Transpose(h, perm=[0, 2, 1, 3]),"
        " alpha=scale, transA=0, transB=1, transBatchA=0, transBatchB=0)"
    )
    for name, operand, bias, given in (
        ("", scores, "", ""),
        ("-masked", f"Add({scores}, m)", _BIAS, ", None, None, seen"),
    ):
        yield Rule(
            f"multi-head-attention{name}",
            before="y = Reshape(Transpose(MatMul(s, f := Transpose(i, perm=[0, 2, 1, 3])),"
            f" perm=[0, 2, 1, 3]), x)\ns = Softmax({operand}, axis=axis){_SPLIT.format('t', 'u', 'w')}",
            where=f"{_FITS} and axis in (-1, 3) and scale != 0 and y.type.size > 0"
            " and s.shape == (g.shape[0], g.shape[2], g.shape[1], h.shape[1])",
            after=bias + _JOIN.format(given, ", scale=scale"),
            shared=_SHARED,
            sample=_split_sample(bool(bias), {"scale": 0.3, "axis": -1}),
            source="ONNX Runtime's transformer optimiser: MultiHeadAttention",
        )


def _standard() -> Iterator[Rule]:
    """Return the rules for ONNX's Attention.

    For rows that are masked completely, ONNX Runtime returns 0 from ONNX's operator and NaN from
    MultiHeadAttention: masks must be known to have no such rows.
    """
    names = zip("def", "ghi", strict=True)
    heads = ", ".join(f"{name} := Transpose({operand}, perm=[0, 2, 1, 3])" for name, operand in names)
    fits = "m.open and m.rank > 1 and m.shape[-1] == h.shape[1]"
    whole = _BIAS.replace("s.shape[2:]", "(g.shape[1], h.shape[1])")
    truths = f"m = mask(like(q, 0.0), m){whole}"
    seen = ", None, None, seen"
    forms = {
        "": ("", "True", "", ""),
        "-masked": (", m", f"m.floating and {fits}", whole, seen),
        "-boolean-mask": (", m", f"m.type.dtype == 'bool' and {fits}", truths, seen),
        "-causal-mask": (", m", f"m.causal and {fits}", "", ""),
    }
    for name, (operand, condition, bias, given) in forms.items():
        causal = (
            ", unidirectional=1"
            if name == "-causal-mask"
            else ", unidirectional=n.get('is_causal', 0) or None"
        )
        yield Rule(
            f"standard-attention{name}",
            before=f"y = Reshape(Transpose(n := StandardAttention({heads}{operand}), perm=[0, 2, 1, 3]), x)"
            + _SPLIT.format("t", "u", "w"),
            where=f"{_FITS} and not n.get('softcap', 0) and y.type.size > 0 and n.get('scale', 1) != 0"
            " and not n.get('qk_matmul_output_mode', 0)"
            f" and (g.shape[1] == h.shape[1] or not n.get('is_causal', 0)) and {condition}",
            after=bias + _JOIN.format(given, f", scale=n.get('scale'){causal}"),
            shared=_SHARED,
            sample=_standard_sample(name),
            source="ONNX and ONNX Runtime: two names of the same operator (operator set 23)",
        )


def _standard_sample(kind: str) -> Callable[[Rng], Sample]:
    def sample(rng: Rng) -> Sample:
        square = kind == "-causal-mask" or bool(rng.integers(2))
        made = _split_sample(False, {}, cross=not square)(rng)
        values = dict(made.values)
        (batch, length, _), total = values["q"].shape, values["k"].shape[1]
        node: dict[str, Attribute] = {"scale": 0.3} if rng.integers(2) else {}
        if not kind and square and rng.integers(2):
            node["is_causal"] = 1
        shapes = [(length, total), (1, 1, length, total), (batch, 1, length, total)]
        shape = shapes[int(rng.integers(len(shapes)))]
        seen = rng.random(shape) < 0.6
        seen[..., 0] = True
        masks = {
            "-masked": np.where(seen, rng.standard_normal(shape), -np.inf),
            "-boolean-mask": seen,
            "-causal-mask": np.broadcast_to(np.tri(length, total, dtype=bool), shape).copy(),
        }
        values.update({"m": masks[kind]} if kind else {})
        return Sample(values, made.weights | {"m"}, nodes={"n": node})

    return sample


# From multi-head attention.

_ONE = "(n := MultiHeadAttention({0}, {1}, {2}, [c], [p], [m]))"
_WEIGHTS = "q.floating and q.rank == k.rank == v.rank == 3 and p is None and (c is None or c.constant)"


def _attention(
    rng: Rng, cross: bool = True, bias: bool | None = None
) -> tuple[dict[str, Any], dict[str, Attribute], tuple[int, ...]]:
    """Return the operands q, k, v, c, p and m of a random MultiHeadAttention, its attributes, and sizes."""
    values, sizes = _heads(rng, cross)
    total = sum(values[name].shape[-1] for name in "qkv")
    values["c"] = rng.standard_normal(total) if (rng.integers(2) if bias is None else bias) else None
    values["p"] = None
    batch, heads, length, keys = sizes
    lead = (int(rng.choice([1, batch])), int(rng.choice([1, heads])))
    values["m"] = rng.standard_normal((*lead, length, keys)) if rng.integers(2) else None
    attributes: dict[str, Attribute] = {"num_heads": heads}
    if rng.integers(2):
        attributes["scale"] = float(rng.uniform(0.1, 1))
    if not cross and rng.integers(2):
        attributes["unidirectional"] = 1
    return values, attributes, sizes


def _biases() -> Iterator[Rule]:
    """Return rules that move biases of queries, keys and values into the bias of the attention."""
    for added in ("qkv", "qv", "qk", "kv", "q", "k", "v"):
        operands = [f"Add({operand}, {operand}b)" if operand in added else operand for operand in "qkv"]
        parts = [
            f"{operand}b" if operand in added else f"zeros(qb, {operand}.shape[-1:])" for operand in "qkv"
        ]
        first = added[0]

        def sample(rng: Rng, added: str = added) -> Sample:
            values, attributes, _ = _attention(rng)
            values.update(
                {f"{operand}b": rng.standard_normal(values[operand].shape[-1]) for operand in added}
            )
            weights = frozenset({"c", *(f"{operand}b" for operand in added)})
            return Sample(values, weights, nodes={"n": attributes})

        yield Rule(
            f"attention-bias-{added}",
            before=f"y = {_ONE.format(*operands)}",
            where=" and ".join(
                [
                    _WEIGHTS,
                    *(
                        f"{operand}b.constant and {operand}b.shape == {operand}.shape[-1:]"
                        for operand in added
                    ),
                ]
            ),
            after=f"""
given = concat(0, {", ".join(parts).replace("qb,", f"{first}b,")})
y = MultiHeadAttention(q, k, v, add(c, given) if c else given, p, m, **n)
""",
            sample=sample,
            source="ONNX Runtime's transformer optimiser: MultiHeadAttention",
        )


def _scaled(rng: Rng) -> Sample:
    values, attributes, _ = _attention(rng, bias=False)
    return Sample({**values, "s": np.array(rng.uniform(0.2, 2))}, frozenset("s"), nodes={"n": attributes})


def _scales() -> Iterator[Rule]:
    for name, operands in (("queries", ("Mul(q, s)", "k", "v")), ("keys", ("q", "Mul(k, s)", "v"))):
        yield Rule(
            f"attention-scale-{name}",
            before=f"y = {_ONE.format(*operands)}",
            where="q.floating and c is None and s.rank <= 3 and s.number == s.number and s.number != 0",
            after="""
given = n.get('scale', 0) or (q.shape[-1] // n['num_heads']) ** -0.5
y = MultiHeadAttention(q, k, v, c, p, m, **{**n, 'scale': given * s.number})
""",
            sample=_scaled,
            source="distributivity",
        )


def _causal(rng: Rng) -> Sample:
    values, attributes, (batch, _, length, _) = _attention(rng, cross=False)
    attributes.pop("unidirectional", None)
    seen = np.broadcast_to(np.tri(length, dtype=bool), (int(rng.choice([1, batch])), 1, length, length))
    values["m"] = np.where(seen, 0.0, rng.choice([-3.4e38, -np.inf]))
    return Sample(values, frozenset("cm"), nodes={"n": attributes})


_PACK = (
    "u.constant and v.constant and w.constant and u.rank == v.rank == w.rank == 2 and x.rank == 3"
    " and x.floating and p is None and (c is None or c.constant)"
)


def _packed(rng: Rng) -> Sample:
    values, attributes, sizes = _attention(rng, cross=False)
    x = rng.standard_normal((sizes[0], sizes[2], 3))
    weights = {
        name: rng.standard_normal((3, values[operand].shape[-1]))
        for name, operand in zip("uvw", "qkv", strict=True)
    }
    return Sample(
        {"x": x, **weights, **{name: values[name] for name in "cpm"}},
        frozenset("uvwc"),
        nodes={"n": attributes},
    )


def _split_packed(rng: Rng, sequence_first: bool) -> Sample:
    values, attributes, (batch, _, length, _) = _attention(rng, cross=False)
    sizes = [values[operand].shape[-1] for operand in "qkv"]
    x = rng.standard_normal((batch, length, 3))
    given: dict[str, Any] = {
        "x": x,
        "w": rng.standard_normal((3, sum(sizes))),
        "b": rng.standard_normal(sum(sizes)),
    }
    given.update({name: values[name] for name in "cpm"})
    given["sizes"] = [np.array(sizes)]
    return Sample(given, frozenset({"w", "b", "c", "sizes"}), {"axis": 2}, {"n": attributes})


_SPLIT_PACK = (
    "w.constant and w.rank == 2 and b.constant and b.shape == w.shape[-1:] and x.rank == 3 and x.floating"
    " and p is None and (c is None or c.constant) and axis in (-1, 2)"
)
_PACKED = """
y = Attention(x, w, add(b, c) if c else b, None, None, m,
    qkv_hidden_sizes=(q.shape[-1], k.shape[-1], v.shape[-1]), **n)
"""


def _splits() -> Iterator[Rule]:
    for name, wrapped in (("split", "{0}"), ("sequence-first", "Transpose({0}, perm=[1, 0, 2])")):
        projection = f"MatMul({wrapped.format('x')}, w)"
        operands = [wrapped.format(operand) for operand in "qkv"]
        yield Rule(
            f"packed-attention-{name}",
            before=f"y = {_ONE.format(*operands)}\nq, k, v = Split(Add({projection}, b), *sizes, axis=axis)",
            where=_SPLIT_PACK,
            after=_PACKED,
            sample=lambda rng, first=name != "split": _split_packed(rng, first),
            source="ONNX Runtime's AttentionFusion",
        )


def _causal_packed(rng: Rng) -> Sample:
    values, attributes, (batch, _, length, _) = _attention(rng, cross=False)
    sizes = tuple(values[operand].shape[-1] for operand in "qkv")
    given: dict[str, Any] = {
        "x": rng.standard_normal((batch, length, 3)),
        "w": rng.standard_normal((3, sum(sizes))),
    }
    given["b"] = rng.standard_normal(sum(sizes))
    given["m"] = np.where(np.tri(length, dtype=bool), 0.0, -3.4e38)[None, None]
    attributes.pop("unidirectional", None)
    attributes["qkv_hidden_sizes"] = sizes
    return Sample(given, frozenset("wbm"), nodes={"n": attributes})


_SQUARE = "m.causal and not n.get('unidirectional', 0)"

RULES = (
    *_multi_head(),
    *_standard(),
    *_biases(),
    *_scales(),
    Rule(
        "causal-attention",
        before="y = (n := MultiHeadAttention(q, k, v, [c], [p], m))",
        where=f"{_SQUARE} and q.rank == k.rank == 3 and q.shape[1] == k.shape[1]",
        after="y = MultiHeadAttention(q, k, v, c, p, **{**n, 'unidirectional': 1})",
        sample=_causal,
        source="ONNX Runtime's transformer optimiser for GPT-2",
    ),
    Rule(
        "causal-packed-attention",
        before="y = (n := Attention(x, w, [b], [i], [p], m))",
        where=f"{_SQUARE} and p is None",
        after="y = Attention(x, w, b, i, **{**n, 'unidirectional': 1})",
        sample=_causal_packed,
        source="ONNX Runtime's transformer optimiser for GPT-2",
    ),
    Rule(
        "packed-attention",
        before=f"y = {_ONE.format('MatMul(x, u)', 'MatMul(x, v)', 'MatMul(x, w)')}",
        where=_PACK,
        after="""
sizes = (u.shape[1], v.shape[1], w.shape[1])
given = c if c else zeros(u, (sum(sizes),))
y = Attention(x, concat(1, u, v, w), given, None, None, m, qkv_hidden_sizes=sizes, **n)
""",
        sample=_packed,
        source="ONNX Runtime's AttentionFusion",
    ),
    *_splits(),
)
"""Rules for attention."""
