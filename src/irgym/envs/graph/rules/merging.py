"""Rules that merge convolutions, or split them: of one input, of several inputs, and groups."""

import numpy as np

from irgym.envs.graph.rewriting.rule import Rule, Sample
from irgym.envs.graph.rewriting.samples.convolutions import Attributes, Operands, convolution, integers
from irgym.envs.graph.rewriting.samples.operands import Rng
from irgym.envs.graph.rewriting.templates import words

TASO = "TASO, X-RLflow"
ALIKE = (
    "c == d and c.get('group', 1) == 1 and w.constant and v.constant"
    " and (not b or b.constant) and (not e or e.constant)"
)
"""Condition that two convolutions without groups, c and d, differ only in weights."""


def _two(rng: Rng) -> tuple[Operands, Attributes]:
    """Return operands of two convolutions that differ only in filters w and v and biases b and e."""
    operands, attributes = convolution(rng, groups=(1,))
    w = operands["w"]
    operands["v"] = rng.standard_normal((int(rng.integers(1, 4)), *w.shape[1:]))
    operands["e"] = rng.standard_normal(operands["v"].shape[0]) if rng.integers(2) else None
    return operands, attributes


def _same_input(rng: Rng, fused: bool) -> Sample:
    operands, attributes = _two(rng)
    if fused:
        attributes["activation"] = "Relu"
    return Sample(operands, frozenset("wvbe"), nodes={"c": attributes, "d": attributes})


def _two_inputs(rng: Rng) -> Sample:
    """Return two convolutions of x and z, which have the same shape."""
    operands, attributes = _two(rng)
    operands["z"] = rng.standard_normal(operands["x"].shape)
    operands["v"] = rng.standard_normal(operands["w"].shape)
    operands["e"] = rng.standard_normal(operands["w"].shape[0]) if rng.integers(2) else None
    return Sample(operands, frozenset("wvbe"), nodes={"c": attributes, "d": attributes})


def _joined(rng: Rng) -> Sample:
    operands, attributes = convolution(rng, groups=(1,), channels=(2, 5))
    channels: int = operands["x"].shape[1]
    first = int(rng.integers(1, channels))
    operands["x"], operands["z"] = operands["x"][:, :first], operands["x"][:, first:]
    return Sample(operands, frozenset("wb"), nodes={"c": attributes})


def _small_beside_large(rng: Rng, fused: bool) -> Sample:
    x = convolution(rng, groups=(1,))[0]["x"]
    rank = x.ndim - 2
    size = [3, *integers(rng, 1, 4, rank - 1)]
    window = (1, *(int(rng.choice(range(length % 2 or 2, length + 1, 2))) for length in size[1:]))
    v = rng.standard_normal((int(rng.integers(1, 4)), x.shape[1], *size))
    dilations = integers(rng, 1, 3, rank)
    reach = [
        (size - small) // 2 * step for size, small, step in zip(v.shape[2:], window, dilations, strict=True)
    ]
    pads = integers(rng, 0, 2, 2 * rank)
    common: Attributes = {"dilations": dilations, "strides": integers(rng, 1, 3, rank)}
    if fused:
        common["activation"] = "Relu"
    group = x.shape[1] if rng.integers(2) else 1
    filters = group * int(rng.integers(1, 3))
    small: Attributes = {**common, "pads": pads, "group": group}
    large = {**common, "pads": tuple(pad + reach[place % rank] for place, pad in enumerate(pads))}
    operands: Operands = {
        "x": x,
        "w": rng.standard_normal((filters, x.shape[1] // group, *window)),
        "b": rng.standard_normal(filters) if rng.integers(2) else None,
        "v": v,
        "e": rng.standard_normal(v.shape[0]) if rng.integers(2) else None,
    }
    if rng.integers(2):
        small["kernel_shape"], large["kernel_shape"] = window, v.shape[2:]
    return Sample(operands, frozenset("wbve"), nodes={"c": small, "d": large})


def _even(rng: Rng) -> Sample:
    operands, attributes = convolution(rng, groups=(2, 4, 6))
    rest = [] if operands["b"] is None else [operands["b"]]
    values: Operands = {"x": operands["x"], "w": operands["w"], "rest": rest}
    return Sample(values, frozenset({"w"}), nodes={"c": attributes})


def _cut(rng: Rng) -> Sample:
    operands, attributes = convolution(rng, groups=(1,), channels=(3, 6))
    filters: int = operands["w"].shape[0]
    first = int(rng.integers(1, filters))
    rank = operands["w"].ndim
    operands["s"] = [np.array([first, filters - first])]
    axis = {"axis": int(rng.choice([1, 1 - rank]))}
    return Sample(operands, frozenset("wbs"), axis, {"c": attributes}, {"ys": 2})


BIAS = """
biases = (b or zeros(w, (w.shape[0],)), e or zeros(v, (v.shape[0],)))
bias = concat(0, *biases) if b or e else None
"""
"""Replacement: a single bias from two."""


def _merge(operator: str) -> Rule:
    fused = operator == "FusedConv"
    return Rule(
        f"merge-{words(operator)}",
        before=f"y = (c := {operator}(x, w, [b])); z = (d := {operator}(x, v, [e]))",
        where=f"{ALIKE} and w.shape[1:] == v.shape[1:]",
        after=f"""{BIAS}
both = {operator}(x, concat(0, w, v), bias, **c)
y, z = Split(both, whole(w.shape[0], v.shape[0]), outputs=2, axis=1)
""",
        sample=lambda rng: _same_input(rng, fused),
        source=f"{TASO}: two convolutions of one input",
    )


BESIDE = """(
    w.constant and w.rank == v.rank and w.shape[2:] != v.shape[2:] and y.shape[2:] == z.shape[2:]
    and c.get('auto_pad', 'NOTSET') == d.get('auto_pad', 'NOTSET') == 'NOTSET'
    and all(c.get(name) == d.get(name) for name in ('activation', 'activation_params'))
    and all(
        large >= small and (large - small) % 2 == 0 and step == other
        and (small == 1 or width == span)
        and front + (large - small) // 2 * span == first and back + (large - small) // 2 * span == last
        for small, large, step, other, width, span, front, back, first, last in zip(
            w.shape[2:], v.shape[2:],
            *(conv.get(name, (1,) * (w.rank - 2)) for name in ('strides', 'dilations') for conv in (c, d)),
            *(
                conv.get('pads', (0,) * 2 * (w.rank - 2))[from_:to]
                for conv in (c, d) for from_, to in ((0, w.rank - 2), (w.rank - 2, 2 * (w.rank - 2)))
            ),
        )
    )
)"""
"""Condition that the windows of c are those of d without a border."""


def _enlarge(operator: str) -> Rule:
    fused = operator == "FusedConv"
    return Rule(
        f"enlarge-{words(operator)}",
        before=f"y = (c := {operator}(x, w, [b])); z = (d := {operator}(x, v, [e]))",
        where=BESIDE,
        after=f"""
side = [(large - small) // 2 for small, large in zip(w.shape[2:], v.shape[2:])]
groups = {{}} if c.get('group', 1) == d.get('group', 1) else {{'group': c.get('group', 1)}}
y = {operator}(x, pad(w, (0, 0, *side), (0, 0, *side)), b, **{{**d, **groups}})
""",
        sample=lambda rng: _small_beside_large(rng, fused),
        shared=("d",),
        source="TASO's enlarge: a window with a border of zeros, so that merge-conv applies",
    )


def _join_groups(operator: str) -> Rule:
    return Rule(
        f"join-groups{'-fused' if operator == 'FusedConv' else ''}",
        before=f"y = (c := {operator}(x, w, *rest))",
        where="w.constant and c.get('group', 1) % 2 == 0",
        after=f"y = {operator}(x, joined_groups(w, c['group']), *rest, **{{**c, 'group': c['group'] // 2}})",
        sample=_even,
        source="TASO's merge_gconv, X-RLflow's merge-group",
    )


def _part(operator: str) -> Rule:
    return Rule(
        f"split-{words(operator)}",
        before=f"*ys = Split(c := {operator}(x, w, [b]), *s, axis=axis)",
        where="w.constant and (not b or b.constant) and c.get('group', 1) == 1 and all(ys)"
        " and axis % w.rank == 1",
        after=f"""
ends = [sum([part.shape[1] for part in ys[: place + 1]]) for place in range(len(ys))]
cuts = [(end - part.shape[1], end) for part, end in zip(ys, ends)]
ys = [{operator}(x, part(w, 0, *cut), part(b, 0, *cut) if b else None, **c) for cut in cuts]
""",
        sample=_cut,
        source="TASO: the reverse of merge-conv",
    )


RULES = (
    _merge("Conv"),
    _merge("FusedConv"),
    _enlarge("Conv"),
    _enlarge("FusedConv"),
    _join_groups("Conv"),
    _join_groups("FusedConv"),
    _part("Conv"),
    _part("FusedConv"),
    Rule(
        "conv-of-concat",
        before="y = (c := Conv(Concat(x, z, axis=1), w, [b]))",
        where="w.constant and c.get('group', 1) == 1",
        after="""
first = x.shape[1]
y = Add(Conv(x, part(w, 1, 0, first), b, **c), Conv(z, part(w, 1, first, w.shape[1]), **c))
""",
        sample=_joined,
        source=TASO,
    ),
    Rule(
        "concat-of-convs",
        before="y = Concat(c := Conv(x, w, [b]), d := Conv(z, v, [e]), axis=1)",
        where=f"{ALIKE} and x.shape == z.shape and w.shape == v.shape",
        after=f"""{BIAS}
y = Conv(Concat(x, z, axis=1), concat(0, w, v), bias, **{{**c, 'group': 2}})
""",
        sample=_two_inputs,
        source=f"{TASO}: two convolutions become two groups of one",
    ),
)
"""Rules that merge convolutions, or split them."""
