"""Rules for convolutions: constants folded into weights, and fused activations and sums."""

import numpy as np

from irgym.envs.graph.rewriting.rule import Rule, Sample
from irgym.envs.graph.rewriting.samples.convolutions import convolution, integers, result_shape
from irgym.envs.graph.rewriting.samples.operands import Rng
from irgym.envs.graph.rewriting.templates import FUSED_ACTIVATIONS, fusing

ACTIVATION = "X-RLflow, TASO; ONNX Runtime's ConvActivationFusion"
NORMAL = "y = BatchNormalization({}, scale, shift, mean, variance, epsilon=epsilon, training_mode=0)"
CONSTANT = (
    "scale.constant and shift.constant and mean.constant and variance.constant"
    " and scale.type.dtype == mean.type.dtype"
    " and scale.shape == shift.shape == mean.shape == variance.shape == ({channels},)"
)
"""Condition that the operands of a batch normalisation are weights with an element for each channel."""

BY_CHANNEL = (
    "k.constant and not k.masking and k.rank <= {x}.rank and (k.type.size == 1 or k.rank >= {x}.rank - 1"
    " and k.type.size == k.shape[k.rank - {x}.rank + 1] == {channels})"
)
"""Condition that a weight k has one element, or an element for each channel of an array."""


def _normalisation(rng: Rng, channels: int, sample: Sample) -> Sample:
    """Return a sample with the constants of a batch normalisation."""
    constants = {name: rng.standard_normal(channels) for name in ("scale", "shift", "mean")}
    constants["variance"] = rng.uniform(0.5, 2.0, channels)
    epsilon = {"epsilon": float(rng.uniform(1e-5, 0.1))}
    weights = sample.weights.union(constants)
    return Sample({**sample.values, **constants}, weights, epsilon, sample.nodes)


def _bn(rng: Rng) -> Sample:
    operands, attributes = convolution(rng)
    sample = Sample(operands, frozenset("wb"), nodes={"c": attributes})
    return _normalisation(rng, operands["w"].shape[0], sample)


def _bn_alone(rng: Rng) -> Sample:
    shape = integers(rng, 1, 5, int(rng.integers(2, 5)))
    return _normalisation(rng, shape[1], Sample({"x": rng.standard_normal(shape)}))


def _constant(rng: Rng, channels: int, rank: int) -> np.ndarray:
    """Return a constant with one element or an element for each channel, of at most a given rank."""
    if rng.integers(2):
        return rng.uniform(0.5, 2, (1,) * int(rng.integers(0, rank + 1)))
    return rng.uniform(0.5, 2, (*(1,) * int(rng.integers(2)), channels, *(1,) * (rank - 2)))


def _then_constant(rng: Rng) -> Sample:
    operands, attributes = convolution(rng)
    operands["k"] = _constant(rng, operands["w"].shape[0], operands["w"].ndim)
    return Sample(operands, frozenset("wbk"), nodes={"c": attributes})


def _scaled(rng: Rng) -> Sample:
    operands, attributes = convolution(rng, groups=(1, 1, 2))
    rank = operands["w"].ndim
    grouped = attributes.get("group", 1) != 1
    operands["k"] = np.array(rng.uniform(0.5, 2)) if grouped else _constant(rng, operands["w"].shape[1], rank)
    return Sample(operands, frozenset("wbk"), nodes={"c": attributes})


def _folding(name: str, before: str, weights: str, bias: str, sums: bool) -> Rule:
    """Return the rule that folds an operator with a constant k into the convolution before it.

    Args:
        name: Name of the rule.
        before: Pattern of the operator, around `c`.
        weights: Code for the new weights, with `column` for k in their rank.
        bias: Code for the new bias, with `row` for k in one dimension.
        sums: Whether the new convolution has a bias even if the old one has none.
    """
    none = f"{bias.replace('(b,', '(zeros(w, (w.shape[0],)),')}" if sums else "None"
    return Rule(
        name,
        before=f"y = {before.replace('c', 'c := Conv(x, w, [b])', 1)}",
        where="w.constant and (b is None or b.constant) and "
        + BY_CHANNEL.format(x="w", channels="w.shape[0]"),
        after=f"""
row = reshape(k, (k.type.size,))
column = reshape(k, (k.type.size,) + (1,) * (w.rank - 1))
y = Conv(x, {weights}, {bias} if b else {none}, **c)
""",
        sample=_then_constant,
        source="X-RLflow, TASO; ONNX Runtime's ConvMulFusion and ConvAddFusion",
    )


def _sum(rng: Rng) -> Sample:
    operands, attributes = convolution(rng)
    operands["z"] = rng.standard_normal(result_shape(operands, attributes))
    return Sample(operands, frozenset("wb"), nodes={"c": attributes})


def _rest(rng: Rng) -> Sample:
    operands, attributes = convolution(rng)
    rest = [operands["w"], *([] if operands["b"] is None else [operands["b"]])]
    return Sample({"x": operands["x"], "rest": rest}, nodes={"c": attributes})


def _rest_and_sum(rng: Rng) -> Sample:
    operands, attributes = convolution(rng, bias=True)
    rest = [operands["w"], operands["b"], rng.standard_normal(result_shape(operands, attributes))]
    return Sample({"x": operands["x"], "rest": rest}, nodes={"c": attributes})


def _vector(rng: Rng) -> Sample:
    inputs, outputs = int(rng.integers(1, 5)), int(rng.integers(1, 5))
    operands = {
        "x": rng.standard_normal((int(rng.integers(1, 4)), inputs, 1, 1)),
        "w": rng.standard_normal((outputs, inputs, 1, 1)),
        "b": rng.standard_normal(outputs) if rng.integers(2) else None,
    }
    attributes = {"strides": (2, 2)} if rng.integers(2) else {}
    return Sample(operands, frozenset("wb"), nodes={"c": attributes})


RULES = (
    Rule(
        "conv-bn",
        before=NORMAL.format("c := Conv(x, w, [b])"),
        where="w.constant and (b is None or b.constant) and w.type.dtype == scale.type.dtype and "
        + CONSTANT.format(channels="w.shape[0]"),
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
        "bn-scale",
        before=NORMAL.format("x"),
        where="x.rank > 1 and x.type.dtype == scale.type.dtype and " + CONSTANT.format(channels="x.shape[1]"),
        after="""
factor = divide(scale, deviation(variance, epsilon))
offset = subtract(shift, multiply(mean, factor))
sizes = (factor.shape[0],) + (1,) * (x.rank - 2)
y = Add(Mul(x, reshape(factor, sizes)), reshape(offset, sizes))
""",
        sample=_bn_alone,
        source="definition of BatchNormalization, where no convolution precedes it",
    ),
    _folding("conv-mul", "Mul(c, k)", "multiply(w, column)", "multiply(b, row)", sums=False),
    _folding("conv-div", "Div(c, k)", "divide(w, column)", "divide(b, row)", sums=False),
    _folding("conv-add", "Add(c, k)", "w", "add(b, row)", sums=True),
    _folding("conv-sub", "Sub(c, k)", "w", "subtract(b, row)", sums=True),
    Rule(
        "mul-conv",
        before="y = (c := Conv(Mul(x, k), w, [b]))",
        where="w.constant and x.rank == w.rank and x.shape[1] == w.shape[1] * c.get('group', 1)"
        " and (c.get('group', 1) == 1 or k.type.size == 1) and "
        + BY_CHANNEL.format(x="x", channels="w.shape[1]"),
        after="""
columns = reshape(k, (1, k.type.size) + (1,) * (w.rank - 2))
y = Conv(x, multiply(w, columns), b, **c)
""",
        sample=_scaled,
        source="TASO: products move through convolutions",
    ),
    *(fusing(name, "Conv", "FusedConv", "conv", _rest, ACTIVATION) for name in FUSED_ACTIVATIONS),
    Rule(
        "conv-sum",
        before="y = Add(c_, z); c_ = (c := Conv(x, w, [b]))",
        where="z.shape == y.shape == c_.shape",
        after="y = FusedConv(x, w, b, z, **c)",
        sample=_sum,
        source="ONNX Runtime's ConvAddActivationFusion",
    ),
    *(
        fusing(name, "FusedConv", "FusedConv", "conv-sum", _rest_and_sum, ACTIVATION)
        for name in FUSED_ACTIVATIONS
    ),
    Rule(
        "conv-gemm",
        before="y = (c := Conv(x, w, [b], group=1, auto_pad='NOTSET'))",
        where="w.constant and x.shape[2:] == w.shape[2:] == y.shape[2:] == (1,) * (x.rank - 2)"
        " and not any(c.get('pads', ()))",
        after="""
rows = Reshape(x, whole(*x.shape[:2]))
y = Reshape(Gemm(rows, reshape(w, w.shape[:2]), b, transB=1), whole(*y.shape))
""",
        sample=_vector,
        source="a convolution of vectors is a matrix product",
    ),
)
"""Rules for convolutions."""
