"""Rules of convolutions: folding and fusing what follows them, and merging those that share an input."""

from typing import Any

import numpy as np

from irgym.envs.graph.ir.graph import Attribute
from irgym.envs.graph.rules.rule import Rule, Sample


def _convolution(
    rng: np.random.Generator, bias: bool | None = None
) -> tuple[dict[str, Any], dict[str, Attribute]]:
    """Return operands x, w and b of a random convolution, and its attributes; `bias` None: maybe one."""
    group = int(rng.choice([1, 1, 2]))
    into, out = group * int(rng.integers(1, 4)), group * int(rng.integers(1, 4))
    window = (int(rng.integers(1, 4)), int(rng.integers(1, 4)))
    has_bias = bool(rng.integers(2)) if bias is None else bias
    operands = {
        "x": rng.standard_normal((int(rng.integers(1, 3)), into, 6, 7)),
        "w": rng.standard_normal((out, into // group, *window)),
        "b": rng.standard_normal(out) if has_bias else None,
    }
    attributes: dict[str, Attribute] = {
        "group": group,
        "pads": tuple(rng.integers(0, 2, 4).tolist()),
        "strides": tuple(rng.integers(1, 3, 2).tolist()),
        "dilations": tuple(rng.integers(1, 3, 2).tolist()),
    }
    return operands, attributes


def _bn(rng: np.random.Generator) -> Sample:
    operands, attributes = _convolution(rng)
    channels = operands["w"].shape[0]
    for name in ("scale", "shift", "mean"):
        operands[name] = rng.standard_normal(channels)
    operands["variance"] = rng.uniform(0.5, 2.0, channels)
    weights = frozenset({"w", "b", "scale", "shift", "mean", "variance"})
    return Sample(operands, weights, {"epsilon": float(rng.uniform(1e-5, 0.1))}, {"c": attributes})


def _relu(rng: np.random.Generator) -> Sample:
    operands, attributes = _convolution(rng)
    rest = [operands["w"], *([] if operands["b"] is None else [operands["b"]])]
    return Sample({"x": operands["x"], "rest": rest}, frozenset({"rest"}), nodes={"c": attributes})


def _two(rng: np.random.Generator) -> Sample:
    operands, attributes = _convolution(rng, bias=True)
    attributes["group"] = 1
    operands["w"] = rng.standard_normal((3, operands["x"].shape[1], 2, 3))
    operands["v"] = rng.standard_normal((int(rng.integers(1, 4)), *operands["w"].shape[1:]))
    operands["b"] = rng.standard_normal(3)
    operands["e"] = rng.standard_normal(operands["v"].shape[0])
    return Sample(operands, frozenset("wvbe"), nodes={"c": attributes, "d": attributes})


RULES = (
    Rule(
        "conv-bn",
        before="y = BatchNormalization(c := Conv(x, w, [b]), scale, shift, mean, variance, epsilon=epsilon)",
        where="w.constant and scale.constant and shift.constant and mean.constant and variance.constant"
        " and (b is None or b.constant)",
        after="""
factor = divide(scale, deviation(variance, epsilon))
columns = reshape(factor, (factor.shape[0],) + (1,) * (w.rank - 1))
centre = subtract(b, mean) if b else subtract(zeros(mean, mean.shape), mean)
y = Conv(x, multiply(w, columns), add(multiply(centre, factor), shift), **c)
""",
        sample=_bn,
        source="X-RLflow, TASO; ONNX Runtime's ConvBNFusion",
    ),
    Rule(
        "conv-relu",
        before="y = Relu(c := Conv(x, *rest))",
        after="y = FusedConv(x, *rest, activation='Relu', **c)",
        sample=_relu,
        source="X-RLflow, TASO; ONNX Runtime's ConvActivationFusion",
    ),
    Rule(
        "merge-conv",
        before="y = (c := Conv(x, w, b)); z = (d := Conv(x, v, e))",
        where="c == d and c.get('group', 1) == 1 and w.constant and v.constant and b.constant and e.constant"
        " and w.shape[1:] == v.shape[1:]",
        after="""
both = Conv(x, concat(0, w, v), concat(0, b, e), **c)
y, z = Split(both, whole(w.shape[0], v.shape[0]), outputs=2, axis=1)
""",
        sample=_two,
        source="TASO: two convolutions of one input",
    ),
)
"""Rules of convolutions."""
