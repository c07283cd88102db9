"""Rules of algebra with convolutions and pools that TASO found; `algebra` lists all of TASO's laws.

Sums and convolutions commute for real numbers; results differ by rounding.
"""

from typing import Any

import numpy as np

from irgym.envs.graph.ir.node import Attribute
from irgym.envs.graph.rewriting.rule import Rule, Sample
from irgym.envs.graph.rewriting.samples.operands import Rng, array, parts_of, pick, sample

_SOURCE = "TASO"


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
    """Return operands of two convolutions whose results have the same shape.

    Args:
        rng: Random numbers.
        inputs: Number of inputs: 1 for x alone, 2 for x and z.
        equal: Whether both inputs have the same number of channels.
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
    """Return a shape that can be concatenated along axis 1 to the result of a convolution of 2 by 3."""
    pads, strides, dilations = (np.array(attributes[name]) for name in ("pads", "strides", "dilations"))
    reach = dilations * [1, 2] + 1
    sizes = (np.array(x.shape[2:]) + pads[:2] + pads[2:] - reach) // strides + 1
    return (x.shape[0], 2, *(int(size) for size in sizes))


_ADDED = "bias = add(b, e) if b and e else b or e"

RULES = (
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
        " and all([weight.constant for weight in (w, v, b, e) if weight])",
        after=f"{_ADDED}\ny = Same(c, x, add(w, v), *([bias] if bias else []))",
        sample=lambda rng: _convs(rng, inputs=1, equal=True),
        source=_SOURCE,
    ),
    Rule(
        "add-inputs",
        before="y = Add(c := Conv(x, w, [b]), d := Conv(z, w, [e]))",
        where="y.floating and c.alike(d) and x.shape == z.shape"
        " and all([bias.constant for bias in (b, e) if bias])",
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
            {**(convs := _convs(rng, inputs=2, equal=True)).values, "rest": []},
            frozenset("w"),
            nodes=convs.nodes,
        ),
        source="TASO, the reverse of add-inputs",
    ),
    Rule(
        "sum-of-convs",
        before="y = Add(c := Conv(x, w, [b]), d := Conv(z, v, [e]))",
        where="y.floating and c.alike(d) and c.get('group', 1) == 1"
        " and x.shape[:1] + x.shape[2:] == z.shape[:1] + z.shape[2:]"
        " and w.shape[:1] + w.shape[2:] == v.shape[:1] + v.shape[2:]"
        " and all([weight.constant for weight in (w, v, b, e) if weight])",
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
"""Rules of algebra with convolutions and pools."""
