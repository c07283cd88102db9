"""Rules for normalisations: composed from their parts, with a preceding sum or bias, and what follows them.

ONNX Runtime has kernels for `LayerNormalization` and `SimplifiedLayerNormalization` in every operator set.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from irgym.envs.graph.rewriting.rule import Rule, Sample
from irgym.envs.graph.rewriting.samples.operands import Rng

_SQUARES = {"": "Pow({0}, 2.0)", "-product": "Mul({0}, {0})"}
_QUOTIENTS = {
    "": "Div({0}, Sqrt({1}))",
    "-reciprocal": "Mul({0}, Reciprocal(Sqrt({1})))",
    "-inverse": "Mul({0}, Div(1.0, Sqrt({1})))",
}
_LAST = "({0}[0].elements if {0} else {1}.get('axes')) in ((-1,), (x.rank - 1,))"
"""Condition that a mean is over the last axis, given its operands after the first and its attributes."""

_SCALED = (
    "x.floating and x.solid and e.number > 0 and e.rank <= x.rank and y.shape == x.shape"
    " and g.shape == x.shape[-1:]"
)


def _size(rng: Rng, rank: int | None = None) -> tuple[int, ...]:
    return tuple(rng.integers(2, 6, rank or int(rng.integers(2, 5))).tolist())


def _pieces(axes: str, more: str, number: str = "e") -> Callable[[Rng], Sample]:
    """Return samples of x and of a normalisation's operands.

    Args:
        axes: Names of the axes of means.
        more: Names of the scale and the bias.
        number: Name of the epsilon.
    """

    def sample(rng: Rng) -> Sample:
        shape = _size(rng)
        last = [np.array([-1 if rng.integers(2) else len(shape) - 1])]
        values: dict[str, Any] = {"x": rng.standard_normal(shape), number: np.array(rng.uniform(1e-3, 0.1))}
        values.update(dict.fromkeys(axes, last))
        values.update({name: rng.standard_normal(shape[-1]) for name in more})
        return Sample(values, frozenset((*axes, number, *more)))

    return sample


def _layers() -> Iterator[Rule]:
    for square, squared in _SQUARES.items():
        for quotient, divided in _QUOTIENTS.items():
            variance = f"Add(r := ReduceMean({squared.format('d')}, *c, keepdims=1), e)"
            product = f"Mul({divided.format('d', variance)}, g)"
            for bias, result in (("", f"Add({product}, b)"), ("-unbiased", product)):
                yield Rule(
                    f"layer-normalization{square}{quotient}{bias}",
                    before=f"y = {result}; d = Sub(x, m := ReduceMean(x, *a, keepdims=1))",
                    where=f"{_SCALED} and {_LAST.format('a', 'm')} and {_LAST.format('c', 'r')}"
                    + ("" if bias else " and b.shape == g.shape"),
                    after=f"y = LayerNormalization(x, g{'' if bias else ', b'}, axis=-1, epsilon=e.number)",
                    sample=_pieces("ac", "g" if bias else "gb"),
                    source="ONNX Runtime's LayerNormFusion",
                )


def _simplified() -> Iterator[Rule]:
    for square, squared in _SQUARES.items():
        for quotient, divided in _QUOTIENTS.items():
            variance = f"Add(r := ReduceMean({squared.format('x')}, *a, keepdims=1), e)"
            yield Rule(
                f"rms-normalization{square}{quotient}",
                before=f"y = Mul({divided.format('x', variance)}, g)",
                where=f"{_SCALED} and {_LAST.format('a', 'r')}",
                after="y = SimplifiedLayerNormalization(x, g, axis=-1, epsilon=e.number)",
                sample=_pieces("a", "g"),
                source="ONNX Runtime's SimplifiedLayerNormFusion",
            )


_KINDS = {"layer": ("LayerNormalization", ", [b]"), "rms": ("SimplifiedLayerNormalization", "")}
_FITS = "x.floating and x.rank in (2, 3) and e >= 0 and g.shape == x.shape[-1:]"


def _skipped(biased: bool) -> Callable[[Rng], Sample]:
    def sample(rng: Rng) -> Sample:
        shape = _size(rng, int(rng.integers(2, 4)))
        values: dict[str, Any] = {name: rng.standard_normal(shape) for name in "xs"}
        values["g"] = rng.standard_normal(shape[-1])
        values["c"] = rng.standard_normal(shape[-1])
        values["b"] = rng.standard_normal(shape[-1]) if biased and rng.integers(2) else None
        axis = -1 if rng.integers(2) else len(shape) - 1
        return Sample(values, frozenset("gbc"), {"k": axis, "e": float(rng.uniform(1e-3, 0.1))})

    return sample


def _skips() -> Iterator[Rule]:
    for name, (operator, bias) in _KINDS.items():
        given = ", b" if bias else ""
        condition = f"{_FITS} and s.shape == x.shape and k in (-1, x.rank - 1)"
        if bias:
            condition += " and (b is None or b.shape == g.shape)"
        for total, outputs in (("", "y"), ("-sum", "y, _, _, t")):
            summed = f"t = Add(x, s); y = {operator}(t," if total else f"y = {operator}(Add(x, s),"
            yield Rule(
                f"skip-{name}-normalization{total}",
                before=f"{summed} g{bias}, axis=k, epsilon=e)",
                where=condition,
                after=f"{outputs} = Skip{operator}(x, s, g{given}, epsilon=e"
                + (", outputs=4)" if total else ")"),
                sample=_skipped(bool(bias)),
                source="ONNX Runtime's SkipLayerNormFusion",
            )


def _skip_biases() -> Iterator[Rule]:
    for name, (operator, bias) in _KINDS.items():
        given = ", b" if bias else ""
        for place, sum_of in (("", "Add(x, c), s"), ("-skip", "s, Add(x, c)")):
            for total, outputs in (("", "y"), ("-sum", "y, _, _, t")):
                yield Rule(
                    f"skip-{name}-normalization-bias{place}{total}",
                    before=f"{outputs} = Skip{operator}({sum_of}, g{bias}, epsilon=e)",
                    where=f"{_FITS} and c.shape == x.shape[-1:] and s.shape == x.shape",
                    after=f"{outputs} = Skip{operator}(x, s, g{given}, c, epsilon=e"
                    + (", outputs=4)" if total else ")"),
                    sample=_skipped(bool(bias)),
                    source="ONNX Runtime's SkipLayerNormFusion",
                )


def _late_biases() -> Iterator[Rule]:
    for name, operands in (("layer", "x, g"), ("skip-layer", "x, s, g")):
        operator = "SkipLayerNormalization" if "s" in operands else "LayerNormalization"
        yield Rule(
            f"{name}-normalization-late-bias",
            before=f"y = Add(n := {operator}({operands}), b)",
            where="g.rank == 1 and b.shape == g.shape",
            after=f"y = {operator}({operands}, b, **n)",
            sample=_late_bias,
            source="definition of LayerNormalization",
        )


def _late_bias(rng: Rng) -> Sample:
    made = _skipped(False)(rng).values
    values = {**{name: made[name] for name in "xsg"}, "b": made["c"]}
    return Sample(values, frozenset("gb"), nodes={"n": {"epsilon": 0.01}})


def _after(rng: Rng) -> Sample:
    shape = _size(rng)
    values: dict[str, Any] = {name: rng.standard_normal(shape[-1]) for name in "gb"}
    values["s"] = rng.standard_normal(() if rng.integers(2) else shape[-1])
    return Sample(
        {"x": rng.standard_normal(shape), **values}, frozenset("gbs"), nodes={"n": {"epsilon": 0.01}}
    )


_WEIGHTS = (
    "g.constant and b.constant and s.constant and not s.masking and s.shape in ((), (1,), g.shape)"
    " and g.shape == b.shape"
)

RULES = (
    *_layers(),
    *_simplified(),
    *_skips(),
    *_skip_biases(),
    *_late_biases(),
    Rule(
        "scale-normalization",
        before="y = Mul(n := LayerNormalization(x, g, b), s)",
        where=f"{_WEIGHTS}",
        after="y = LayerNormalization(x, multiply(g, s), multiply(b, s), **n)",
        sample=_after,
        source="constant folding",
    ),
    Rule(
        "shift-normalization",
        before="y = Add(n := LayerNormalization(x, g, b), s)",
        where=_WEIGHTS,
        after="y = LayerNormalization(x, g, add(b, s), **n)",
        sample=_after,
        source="constant folding",
    ),
    Rule(
        "simplified-normalization",
        before="y = RMSNormalization(x, g, axis=k, epsilon=e)",
        where="x.floating and x.solid and k in (-1, x.rank - 1) and g.shape == x.shape[-1:]",
        after="y = SimplifiedLayerNormalization(x, g, axis=-1, epsilon=e)",
        sample=lambda rng: Sample(
            {"x": rng.standard_normal((2, 3, 4)), "g": rng.standard_normal(4)},
            frozenset("g"),
            {"k": -1 if rng.integers(2) else 2, "e": 0.01},
        ),
        source="ONNX and ONNX Runtime: two names of the same operator",
    ),
)
"""Rules for normalisations."""
