"""Rules of Concat and Split: they cancel, they flatten, and activations move through them."""

import numpy as np

from irgym.envs.graph.rules.activations import ACTIVATIONS, again, with_parameters, words
from irgym.envs.graph.rules.rule import Rule, Sample
from irgym.envs.graph.rules.samples import several

MOVING = tuple(name for name in ACTIVATIONS if name != "Clip")
"""Activations that move through Concat and Split."""

EXCHANGE = "TASO: element-wise operators move through Concat and Split"
CANCEL = "TASO: Concat and Split cancel"


def _shape(rng: np.random.Generator) -> tuple[tuple[int, ...], int, int]:
    """Return a shape, an axis of it, and the axis as an attribute may have it."""
    shape = tuple(rng.integers(1, 4, int(rng.integers(1, 5))).tolist())
    axis = int(rng.integers(len(shape)))
    return shape, axis, axis - len(shape) * int(rng.integers(2))


def _joined(rng: np.random.Generator) -> Sample:
    shape, axis, given = _shape(rng)
    return Sample({"xs": several(rng, axis, shape)}, attributes={"axis": given})


def _cut(rng: np.random.Generator) -> Sample:
    """Return a sample of a Split of x into two or three parts."""
    shape, axis, given = _shape(rng)
    parts = several(rng, axis, shape)
    sizes = np.array([part.shape[axis] for part in parts])
    values = {"x": np.concatenate(parts, axis), "s": [sizes]}
    return Sample(values, frozenset("s"), {"axis": given}, {"p": {}}, {"ys": len(parts), "xs": len(parts)})


def _halved(rng: np.random.Generator) -> Sample:
    shape, axis, given = _shape(rng)
    x = np.concatenate([rng.standard_normal(shape), rng.standard_normal(shape)], axis)
    if rng.integers(2):
        return Sample({"x": x, "s": []}, nodes={"p": {"axis": given, "num_outputs": 2}})
    sizes = np.array([shape[axis]] * 2)
    return Sample({"x": x, "s": [sizes]}, frozenset("s"), nodes={"p": {"axis": given}})


def _cut_and_joined(rng: np.random.Generator) -> Sample:
    sample = _cut(rng)
    axis = int(str(sample.attributes["axis"]))
    x = sample.values["x"]
    more = [np.delete(x, 0, axis) if x.shape[axis] > 1 else x for _ in range(int(rng.integers(2)))]
    values = {**sample.values, "before": more, "after": [x] if rng.integers(2) or not more else []}
    other = axis % x.ndim - x.ndim * int(rng.integers(2))
    return Sample(values, sample.weights, {"axis": axis, "other": other}, sample.nodes, sample.counts)


def _joined_and_cut(rng: np.random.Generator) -> Sample:
    shape, axis, given = _shape(rng)
    parts = several(rng, axis, shape)
    sizes = np.array([part.shape[axis] for part in parts])
    other = axis - len(shape) * int(rng.integers(2))
    attributes = {"axis": given, "other": other}
    return Sample({"xs": parts, "s": [sizes]}, frozenset("s"), attributes, counts={"ys": len(parts)})


def _nested(rng: np.random.Generator) -> Sample:
    shape, axis, given = _shape(rng)
    values = {"inner": several(rng, axis, shape)}
    for name in ("before", "after"):
        values[name] = several(rng, axis, shape)[: int(rng.integers(3))]
    other = axis - len(shape) * int(rng.integers(2))
    return Sample(values, attributes={"axis": given, "other": other})


def _single(rng: np.random.Generator) -> Sample:
    shape, axis, given = _shape(rng)
    x = rng.standard_normal(shape)
    return Sample({"x": x, "s": [np.array([shape[axis]])]}, frozenset("s"), {"axis": given})


def _after_concat(name: str) -> Rule:
    parameters = [one for one in ("alpha", "beta") if one in ACTIVATIONS[name][1]]

    def sample(rng: np.random.Generator) -> Sample:
        plain = _joined(rng)
        return with_parameters(name, rng, plain, each=len(plain.values["xs"]))

    return Rule(
        f"concat-{words(name)}",
        before=f"y = Concat(*{name}(xs{ACTIVATIONS[name][0]}), axis=axis)",
        where=" and ".join(f"len(set({one})) == 1" for one in parameters) or "True",
        after="\n".join(f"{one} = {one}[0]" for one in parameters)
        + f"\ny = {again(name, 'Concat(*xs, axis=axis)')}",
        sample=sample,
        source=EXCHANGE,
    )


def _before_split(name: str) -> Rule:
    return Rule(
        f"split-{words(name)}",
        before=f"*ys = (p := Split({name}(x{ACTIVATIONS[name][0]}), *s))",
        where="len(ys) > 1 and all(ys)",
        after=f"ys = [{again(name, 'one')} for one in Split(x, *s, outputs=len(ys), **p)]",
        sample=lambda rng: with_parameters(name, rng, _attributed(rng)),
        source=EXCHANGE,
    )


def _attributed(rng: np.random.Generator) -> Sample:
    sample = _cut(rng)
    return Sample(sample.values, sample.weights, nodes={"p": dict(sample.attributes)}, counts=sample.counts)


def _after_split(name: str) -> Rule:
    follows = ACTIVATIONS[name][0]
    return Rule(
        f"{words(name)}-split",
        before=f"a, b = (p := Split(x, *s)); y = {name}(a{follows}); z = {name}(b{follows})",
        after=f"y, z = Split({again(name, 'x')}, *s, outputs=2, **p)",
        sample=lambda rng: with_parameters(name, rng, _halved(rng)),
        source=EXCHANGE,
    )


RULES = (
    *(_after_concat(name) for name in MOVING),
    *(_before_split(name) for name in MOVING),
    *(_after_split(name) for name in MOVING),
    Rule(
        "concat-split",
        before="y = Concat(*xs, axis=axis); *xs = (p := Split(x, *s, axis=axis))",
        after="y = x",
        sample=_cut,
        shared=("p",),
        source=CANCEL,
    ),
    Rule(
        "concat-split-part",
        before="*xs = (p := Split(x, *s, axis=axis)); y = Concat(*before, *xs, *after, axis=other)",
        where="(axis - other) % x.rank == 0 and (before or after)",
        after="y = Concat(*before, x, *after, axis=other)",
        sample=_cut_and_joined,
        shared=("p",),
        source=CANCEL,
    ),
    Rule(
        "split-concat",
        before="*ys = Split(p := Concat(*xs, axis=axis), *s, axis=other)",
        where="len(xs) == len(ys) and all(ys) and (axis - other) % xs[0].rank == 0"
        " and all(x.shape == y.shape for x, y in zip(xs, ys))",
        after="ys = xs",
        sample=_joined_and_cut,
        shared=("p",),
        source=CANCEL,
    ),
    Rule(
        "concat-of-concat",
        before="y = Concat(*before, Concat(*inner, axis=axis), *after, axis=other)",
        where="(axis - other) % inner[0].rank == 0",
        after="y = Concat(*before, *inner, *after, axis=other)",
        sample=_nested,
        source="a Concat in a Concat",
    ),
    Rule(
        "concat-of-one",
        before="y = Concat(x, axis=axis)",
        after="y = x",
        sample=_single,
        source="nothing is joined",
    ),
    Rule(
        "split-of-one",
        before="y = Split(x, *s, axis=axis)",
        after="y = x",
        sample=_single,
        source="nothing is cut",
    ),
)
"""Rules of Concat and Split."""
