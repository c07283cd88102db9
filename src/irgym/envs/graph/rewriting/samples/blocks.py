"""Samples for rules of the blocked layout, with channels that fit blocks of 8 and of 16."""

import numpy as np

from irgym.envs.graph.rewriting.rule import Sample
from irgym.envs.graph.rewriting.samples.convolutions import (
    Attributes,
    Operands,
    convolution,
    integers,
    result_shape,
)
from irgym.envs.graph.rewriting.samples.operands import Rng

CHANNEL_MULTIPLE = 4
"""ONNX Runtime reorders tensors whose number of channels is a multiple of this."""

FINITE = (
    "Abs",
    "Ceil",
    "Clip",
    "Cos",
    "Elu",
    "Erf",
    "Floor",
    "Gelu",
    "HardSigmoid",
    "HardSwish",
    "LeakyRelu",
    "Mish",
    "Neg",
    "Relu",
    "Round",
    "Selu",
    "Sigmoid",
    "Sign",
    "Sin",
    "Softplus",
    "Softsign",
    "Tanh",
    "ThresholdedRelu",
    "com.microsoft.QuickGelu",
)
"""Element-wise operators with finite results for all finite operands."""


def _convolution(rng: Rng) -> tuple[Operands, Attributes]:
    """Return operands and attributes of a convolution that can be blocked, of a random kind."""
    kind = rng.choice(["plain", "padded", "depthwise", "grouped"])
    if kind == "depthwise":
        group = CHANNEL_MULTIPLE * int(rng.integers(1, 7))
        operands, attributes = convolution(rng, groups=(group,), channels=(1, 2), rank=2)
    elif kind == "grouped":
        operands, attributes = convolution(rng, groups=(2,), channels=(16, 17), rank=2)
    else:
        operands, attributes = convolution(rng, groups=(1,), channels=(1, 40), rank=2)
        inputs = int(rng.integers(1, 8)) if kind == "plain" else CHANNEL_MULTIPLE * int(rng.integers(1, 10))
        batch, _, *spatial = operands["x"].shape
        operands["x"] = rng.standard_normal((batch, inputs, *spatial))
        operands["w"] = rng.standard_normal((operands["w"].shape[0], inputs, *operands["w"].shape[2:]))
    return operands, attributes


def conv(rng: Rng) -> Sample:
    """Return a convolution c that can be blocked."""
    operands, attributes = _convolution(rng)
    return Sample(operands, frozenset("wb"), nodes={"c": attributes})


def fused_conv(rng: Rng) -> Sample:
    """Return a FusedConv c that can be blocked, with or without an added z."""
    operands, attributes = _convolution(rng)
    if rng.integers(2):
        attributes["activation"] = "Relu"
    operands["z"] = rng.standard_normal(result_shape(operands, attributes)) if rng.integers(2) else None
    if operands["z"] is not None and operands["w"].shape[0] % CHANNEL_MULTIPLE:
        operands["z"] = None
    return Sample(operands, frozenset("wb"), nodes={"c": attributes})


def conv_and_blocks(rng: Rng) -> Sample:
    """Return a convolution c that can be blocked, and an array z in blocks to add to it."""
    operands, attributes = _convolution(rng)
    while (
        -operands["w"].shape[0] % 16 != -operands["w"].shape[0] % 8
    ):  # blocks of 8 and 16 need equal padding
        operands, attributes = _convolution(rng)
    batch, channels, *spatial = result_shape(operands, attributes)
    operands["z"] = rng.standard_normal((batch, channels + -channels % 16, *spatial))
    return Sample(operands, frozenset("wb"), {"k": channels}, {"c": attributes})


def blocks(rng: Rng, batch: int = 2) -> tuple[np.ndarray, int]:
    """Return an array in blocks of 8 or 16, and its number of channels without padding."""
    channels = 16 * int(rng.integers(1, 4))
    shape = (batch, channels, *integers(rng, 5, 9, 2))
    return rng.standard_normal(shape), channels - CHANNEL_MULTIPLE * int(rng.integers(2))


def from_blocks(rng: Rng) -> Sample:
    """Return an array x in blocks, with k channels before padding."""
    x, channels = blocks(rng)
    return Sample({"x": x}, attributes={"k": channels})


def pooled(rng: Rng) -> Sample:
    """Return an array x in blocks and a pool p."""
    sample = from_blocks(rng)
    pool: Attributes = {
        "kernel_shape": integers(rng, 2, 4, 2),
        "strides": integers(rng, 1, 3, 2),
        "pads": integers(rng, 0, 2, 4),
        "dilations": integers(rng, 1, 3, 2),
        "ceil_mode": int(rng.integers(2)),
    }
    return Sample(sample.values, attributes=sample.attributes, nodes={"p": pool})


def averaged(rng: Rng) -> Sample:
    """Return an array x in blocks and a pool p that may count padding."""
    sample = pooled(rng)
    counted = {"ceil_mode": 0, "count_include_pad": 1} if rng.integers(2) else {}
    return Sample(sample.values, attributes=sample.attributes, nodes={"p": {**sample.nodes["p"], **counted}})


def resized(rng: Rng) -> Sample:
    """Return an array x in blocks and a Resize by integer factors."""
    sample = from_blocks(rng)
    scales = np.array([1, 1, *rng.integers(1, 4, 2)], np.float32)
    names = ("coordinates", "rounding")
    kind = ("asymmetric", "floor") if rng.integers(2) else ("half_pixel", "round_prefer_floor")
    attributes = {**sample.attributes, **dict(zip(names, kind, strict=True))}
    return Sample({**sample.values, "scales": scales}, frozenset({"scales"}), attributes)


def rest(rng: Rng, sums: bool = False) -> Sample:
    """Return a blocked convolution c of x and `rest`; with `sums`, it has a bias and an added array."""
    x, _ = blocks(rng)
    operands: Operands = {"x": x, "w": rng.standard_normal((16, x.shape[1], 2, 3))}
    rest = [operands["w"], rng.standard_normal(16) if rng.integers(2) or sums else None]
    if sums:
        rest.append(rng.standard_normal(result_shape(operands, {})))
    return Sample({"x": x, "rest": [operand for operand in rest if operand is not None]}, nodes={"c": {}})


def blocked_sum(rng: Rng) -> Sample:
    """Return a blocked convolution of x, w and b, and an array z of the same shape."""
    sample = rest(rng, sums=True)
    w, b, z = sample.values["rest"]
    bias = b if rng.integers(2) else None
    return Sample({"x": sample.values["x"], "w": w, "b": bias, "z": z}, frozenset("wb"))


def padded(rng: Rng) -> Sample:
    """Return a blocked convolution of an array in blocks with padded channels."""
    x, channels = blocks(rng)
    group = x.shape[1] if rng.integers(2) else 1
    filters, inputs = (x.shape[1], 1) if group > 1 else (16, x.shape[1])
    operands = {
        "x": x,
        "w": rng.standard_normal((filters, inputs, 2, 2)),
        "b": rng.standard_normal(filters) if rng.integers(2) else None,
    }
    if rng.integers(2):
        operands["z"] = rng.standard_normal(result_shape(operands, {}))
    return Sample(operands, frozenset("wb"), {"k": channels}, {"c": {"group": group}})


def padded_sum(rng: Rng) -> Sample:
    """Return a blocked convolution and an array z to add, with k channels before padding."""
    operands = dict(blocked_sum(rng).values)
    return Sample(operands, frozenset("wb"), {"k": 16 - CHANNEL_MULTIPLE * int(rng.integers(2))})


def pair(rng: Rng) -> Sample:
    """Return two arrays x and z of the same shape in blocks."""
    x, channels = blocks(rng)
    return Sample({"x": x, "z": rng.standard_normal(x.shape)}, attributes={"k": channels})


def gated(rng: Rng) -> Sample:
    """Return an array x in blocks, and a factor z for each channel."""
    x, channels = blocks(rng, batch=1)
    return Sample({"x": x, "z": rng.standard_normal((*x.shape[:2], 1, 1))}, attributes={"k": channels})


def parts(rng: Rng) -> Sample:
    """Return arrays xs in blocks that are concatenated along channels."""
    channels = 16 * int(rng.integers(1, 3))
    xs = [rng.standard_normal((2, channels, 3, 4)) for _ in range(int(rng.integers(1, 4)))]
    # The ReorderOutput nodes have no name in the pattern.
    nodes: dict[str, Attributes] = {"": {"channels": channels}, "j": {}}
    return Sample({"xs": xs}, attributes={"axis": int(rng.choice([1, -3]))}, nodes=nodes)


def beside(rng: Rng) -> Sample:
    """Return an array x in blocks and an array z that is not, concatenated along channels."""
    channels, others = (16 * int(rng.integers(1, 3)) for _ in range(2))
    values = {"x": rng.standard_normal((2, channels, 3, 4)), "z": rng.standard_normal((2, others, 3, 4))}
    return Sample(values, attributes={"k": channels, "axis": int(rng.choice([1, -3]))})


def normal(rng: Rng) -> Sample:
    """Return an array x in blocks and the constants of a batch normalisation."""
    x, channels = blocks(rng)
    constants = {name: rng.standard_normal(channels) for name in ("scale", "shift", "mean")}
    constants["variance"] = rng.uniform(0.5, 2, channels)
    epsilon = float(rng.uniform(1e-5, 0.1))
    return Sample({"x": x, **constants}, frozenset(constants), {"k": channels, "epsilon": epsilon})


def last(rng: Rng) -> Sample:
    """Return an array x with channels last."""
    return Sample({"x": rng.standard_normal((2, 3, 4, CHANNEL_MULTIPLE * int(rng.integers(1, 6))))})


def reordered(rng: Rng) -> Sample:
    """Return an array x of whole blocks, with channels last or not."""
    x, _ = blocks(rng)
    last = int(rng.integers(2))
    channels = x.shape[3 if last else 1]
    return Sample({"x": x}, attributes={"k": channels, "last": last})


def back(rng: Rng) -> Sample:
    """Return an array x in blocks without padding."""
    x, _ = blocks(rng)
    return Sample({"x": x}, attributes={"k": x.shape[1], "last": int(rng.integers(2))})


def unary(rng: Rng) -> Sample:
    """Return an array x in blocks and an element-wise operator p."""
    x, channels = blocks(rng)
    operator = str(rng.choice(FINITE))
    rest = [np.array(-0.5), np.array(0.5)] if operator == "Clip" else []
    values = {"x": x, "rest": rest}
    return Sample(values, frozenset({"rest"}), {"k": channels}, operators={"p": operator})
