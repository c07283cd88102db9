"""Samples of the operators of opsets 7 to 12: inputs, and attributes as they were then."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper

Array = NDArray[Any]

FIRST, LAST = 7, 12

UNARY = (
    "Abs Acos Acosh@9 Asin Asinh@9 Atan Atanh@9 Ceil Celu@12 Cos Cosh@9 Elu Erf@9 Exp Floor HardSigmoid Identity "
    "IsNaN@9 LeakyRelu Log Neg Reciprocal Relu Round@11 Selu Shape Shrink@9 Sigmoid Sign@9 Sin Sinh@9 Size "
    "Softplus Softsign Sqrt Tan Tanh ThresholdedRelu@10 NonZero@9 IsInf@10 Det@11 EyeLike@9 "
    "DynamicQuantizeLinear@11"
)
BINARY = "Add Div Mul Sub Pow Max Min Mean Sum Greater@9 Less@9 GreaterOrEqual@12 LessOrEqual@12 PRelu"
REDUCTIONS = (
    "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum "
    "ReduceSumSquare"
)


@dataclass(frozen=True)
class Sample:
    """An operator with inputs and attributes.

    Attributes:
        operator: Its name.
        inputs: Inputs in order; None for one that is left out.
        attributes: Attributes.
        opsets: Opsets in which it has this form.
        outputs: How many results it makes.
        constant: Places of the inputs that are weights.
        label: What tells it from other samples of the operator.
    """

    operator: str
    inputs: Sequence[Array | None]
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])
    opsets: range = range(FIRST, LAST + 1)
    outputs: int = 1
    constant: Sequence[int] = ()
    label: str = ""


def samples(seed: int) -> Iterator[Sample]:
    """Yield all samples; inputs are drawn by a seed."""
    draw = Draw(seed)
    yield from _elementwise(draw)
    yield from _along_axes(draw)
    yield from _movement(draw)
    yield from _windows(draw)
    yield from _interpolation(draw)
    yield from _lookups(draw)
    yield from _quantised(draw)
    yield from _recurrent(draw)
    yield from _bodies(draw)


class Draw:
    """Draws inputs."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def floats(self, *shape: int) -> Array:
        """Return numbers of the standard normal distribution."""
        return np.asarray(self._random.standard_normal(shape), np.float32)

    def shares(self, *shape: int) -> Array:
        """Return numbers from 0.1 to 0.9."""
        return np.asarray(self._random.uniform(0.1, 0.9, shape), np.float32)

    def whole(self, low: int, high: int, *shape: int, kind: Any = np.int64) -> Array:
        """Return whole numbers from `low` on, below `high`."""
        return np.asarray(self._random.integers(low, high, shape), kind)

    def truths(self, *shape: int) -> Array:
        """Return truth values."""
        return np.asarray(self._random.integers(0, 2, shape), np.bool_)


def numbers(*values: int) -> Array:
    """Return whole numbers as an array of one dimension."""
    return np.array(values, np.int64)


def since(first: int) -> range:
    """Return the opsets from one on."""
    return range(first, LAST + 1)


def until(last: int, first: int = FIRST) -> range:
    """Return the opsets up to one."""
    return range(first, last + 1)


def _elementwise(draw: Draw) -> Iterator[Sample]:
    for word in UNARY.split():
        name, _, first = word.partition("@")
        shape = (3, 4, 4) if name == "Det" else (4, 5) if name == "EyeLike" else (2, 3, 4)
        given = draw.shares(*shape) + (1.0 if name == "Acosh" else 0.0)
        outputs = 3 if name == "DynamicQuantizeLinear" else 1
        yield Sample(name, [given.astype(np.float32)], opsets=since(int(first or FIRST)), outputs=outputs)
    for word in BINARY.split():
        name, _, first = word.partition("@")
        old = until(7) if name in ("Max", "Min", "Mean", "Sum") else since(int(first or FIRST))
        yield Sample(name, [draw.shares(2, 3, 4), draw.shares(2, 3, 4)], opsets=old)
        wide = since(8) if name in ("Max", "Min", "Mean", "Sum") else since(int(first or FIRST))
        yield Sample(name, [draw.shares(2, 3, 4), draw.shares(3, 1)], opsets=wide, label=" broadcast")
    for name in ("And", "Or", "Xor"):
        yield Sample(name, [draw.truths(3, 4), draw.truths(4)])
    yield Sample("Not", [draw.truths(3, 4)])
    yield Sample("Equal", [draw.whole(0, 3, 3, 4), draw.whole(0, 3, 4)])
    yield Sample("Equal", [draw.floats(3, 4), draw.floats(4)], opsets=since(11), label=" floats")
    yield Sample("Mod", [draw.whole(-9, 9, 3, 4), draw.whole(1, 5, 4)], opsets=since(10))
    yield Sample("Mod", [draw.floats(3, 4), draw.shares(4)], {"fmod": 1}, since(10), label=" of floats")
    yield Sample(
        "BitShift", [draw.whole(0, 9, 4, kind=np.uint8), draw.whole(0, 3, 4, kind=np.uint8)],
        {"direction": "LEFT"}, since(11),
    )
    yield Sample("Where", [draw.truths(3, 4), draw.floats(3, 4), draw.floats(4)], opsets=since(9))
    for to in (TensorProto.INT32, TensorProto.DOUBLE, TensorProto.BOOL, TensorProto.FLOAT16):
        yield Sample("Cast", [draw.floats(3, 4) * 3], {"to": to}, label=f" to {to}")
    for bounds in ({}, {"min": -0.5}, {"max": 0.5}, {"min": -0.5, "max": 0.5}):
        yield Sample("Clip", [draw.floats(3, 4)], bounds, until(10), label=f" {bounds}")
    yield Sample(
        "Clip", [draw.floats(3, 4), np.array(-0.5, np.float32), np.array(0.5, np.float32)], opsets=since(11)
    )
    yield Sample("Dropout", [draw.floats(3, 4)], {"ratio": 0.3}, until(11))
    yield Sample("Dropout", [draw.floats(3, 4)], {"ratio": 0.3}, until(11), outputs=2, label=" with its mask")
    yield Sample("Dropout", [draw.floats(3, 4), np.array(0.3, np.float32)], opsets=since(12), constant=(1,))
    yield Sample("Range", [np.array(1.0, np.float32), np.array(7.0, np.float32), np.array(2.0, np.float32)],
                 opsets=since(11), constant=(0, 1, 2))  # fmt: skip


def _along_axes(draw: Draw) -> Iterator[Sample]:
    for name in ("Softmax", "LogSoftmax", "Hardmax"):
        for axis in (None, 0, 1, 2, 3, -1, -2):
            known = {} if axis is None else {"axis": axis}
            opsets = since(11) if axis is not None and axis < 0 else since(7)
            yield Sample(name, [draw.floats(2, 3, 4, 5)], known, opsets, label=f" axis {axis}")
    for name in REDUCTIONS.split():
        for known in ({}, {"axes": [1]}, {"axes": [0, 2], "keepdims": 0}, {"keepdims": 0}):
            yield Sample(name, [draw.shares(2, 3, 4)], known, label=f" {known}")
        yield Sample(name, [draw.shares(2, 3, 4)], {"axes": [-1]}, since(11), label=" from the end")
    for name in ("ArgMax", "ArgMin"):
        for known in ({}, {"axis": 1, "keepdims": 0}):
            yield Sample(name, [draw.floats(2, 3, 4)], known, label=f" {known}")
        yield Sample(name, [draw.whole(0, 3, 3, 6).astype(np.float32)], {"axis": 1, "select_last_index": 1},
                     since(12), label=" last")  # fmt: skip
    yield Sample("CumSum", [draw.floats(3, 4), np.array(1, np.int64)], {"reverse": 1}, since(11), constant=(1,))
    yield Sample("LpNormalization", [draw.floats(3, 4)], {"axis": 0, "p": 1})
    yield Sample("MeanVarianceNormalization", [draw.floats(2, 3, 4, 5)], opsets=since(9))
    yield Sample("MeanVarianceNormalization", [draw.floats(2, 3, 4, 5)], {"axes": [1, 2]}, since(9), label=" axes")
    statistics = [draw.shares(3) for _ in range(4)]
    yield Sample("BatchNormalization", [draw.floats(2, 3, 4, 5), *statistics], {"epsilon": 1e-3}, constant=range(1, 5))
    yield Sample("BatchNormalization", [draw.floats(2, 3, 4, 5), *statistics], {"spatial": 1}, until(8),
                 constant=range(1, 5), label=" spatial=1")  # fmt: skip
    each = [draw.shares(3, 4, 5) for _ in range(4)]
    yield Sample("BatchNormalization", [draw.floats(2, 3, 4, 5), *each], {"spatial": 0}, until(8),
                 constant=range(1, 5), label=" spatial=0")  # fmt: skip
    yield Sample("InstanceNormalization", [draw.floats(2, 3, 4, 5), draw.shares(3), draw.shares(3)])
    yield Sample("LRN", [draw.floats(2, 5, 4, 4)], {"size": 3})
    yield Sample("TopK", [draw.floats(3, 6)], {"k": 2, "axis": 0}, until(9), outputs=2)
    yield Sample("TopK", [draw.floats(3, 6)], {"k": 2}, until(9), outputs=2, label=" last axis")
    yield Sample("TopK", [draw.floats(3, 6), numbers(2)], {"axis": 0}, since(10), outputs=2, constant=(1,))
    yield Sample("TopK", [draw.floats(3, 6), numbers(2)], {"largest": 0}, since(11), outputs=2, constant=(1,),
                 label=" least")  # fmt: skip
    logits, labels = draw.floats(4, 5), draw.whole(0, 5, 4)
    yield Sample("SoftmaxCrossEntropyLoss", [logits, labels], {"reduction": "mean"}, since(12))
    yield Sample("NegativeLogLikelihoodLoss", [logits, labels], {"reduction": "sum"}, since(12))


def _movement(draw: Draw) -> Iterator[Sample]:
    yield Sample("Concat", [draw.floats(2, 3), draw.floats(2, 4)], {"axis": 1})
    yield Sample("Concat", [draw.floats(2, 3), draw.floats(2, 4)], {"axis": -1}, since(11), label=" from the end")
    yield Sample("Transpose", [draw.floats(2, 3, 4)], {"perm": [2, 0, 1]})
    yield Sample("Transpose", [draw.floats(2, 3, 4)], label=" reversed")
    yield Sample("Reshape", [draw.floats(2, 3, 4), numbers(0, -1)], constant=(1,))
    for axis in (0, 2):
        yield Sample("Flatten", [draw.floats(2, 3, 4)], {"axis": axis}, label=f" {axis}")
    yield Sample("Flatten", [draw.floats(2, 3, 4)], {"axis": -1}, since(11), label=" -1")
    for known in ({"axes": [0]}, {"axes": [0, 2]}, {}):
        yield Sample("Squeeze", [draw.floats(1, 3, 1)], known, label=f" {known}")
    yield Sample("Squeeze", [draw.floats(1, 3, 1)], {"axes": [-1]}, since(11), label=" from the end")
    yield Sample("Unsqueeze", [draw.floats(3, 4)], {"axes": [0, 3]})
    yield Sample("Unsqueeze", [draw.floats(3, 4)], {"axes": [-1]}, since(11), label=" from the end")
    yield Sample("Slice", [draw.floats(4, 6)], {"starts": [1, -4], "ends": [3, 1000]}, until(9))
    yield Sample("Slice", [draw.floats(4, 6)], {"starts": [1], "ends": [-1], "axes": [1]}, until(9), label=" axes")
    yield Sample("Slice", [draw.floats(4, 6), numbers(5), numbers(0), numbers(1), numbers(-2)], opsets=since(10),
                 constant=(1, 2, 3, 4))  # fmt: skip
    yield Sample("Split", [draw.floats(2, 6)], {"axis": 1}, outputs=2)
    yield Sample("Split", [draw.floats(2, 6)], {"axis": 1, "split": [1, 2, 3]}, outputs=3, label=" sizes")
    yield Sample("Split", [draw.floats(6, 2)], outputs=3, label=" first axis")
    yield Sample("Tile", [draw.floats(2, 3), numbers(2, 3)], constant=(1,))
    yield Sample("Expand", [draw.floats(3, 1), numbers(2, 3, 4)], opsets=since(8), constant=(1,))
    for mode in ("constant", "reflect", "edge"):
        known = {"mode": mode, "pads": [1, 1, 0, 2]} | ({"value": 1.5} if mode == "constant" else {})
        yield Sample("Pad", [draw.floats(3, 4)], known, until(10), label=f" {mode}")
        yield Sample("Pad", [draw.floats(3, 4), numbers(1, 1, 0, 2)], {"mode": mode}, since(11), constant=(1,),
                     label=f" {mode}")  # fmt: skip
    yield Sample("Pad", [draw.floats(3, 4)], {"pads": [0, -1, 0, 1]}, until(10), label=" negative")
    yield Sample("SpaceToDepth", [draw.floats(1, 2, 4, 6)], {"blocksize": 2})
    yield Sample("DepthToSpace", [draw.floats(1, 8, 2, 3)], {"blocksize": 2})
    yield Sample("DepthToSpace", [draw.floats(1, 8, 2, 3)], {"blocksize": 2, "mode": "CRD"}, since(11), label=" CRD")
    yield Sample("ReverseSequence", [draw.floats(4, 3), numbers(4, 2, 3)], {"time_axis": 0, "batch_axis": 1},
                 since(10), constant=(1,))  # fmt: skip
    yield Sample("ConstantOfShape", [numbers(2, 3)], opsets=since(9), constant=(0,))
    yield Sample("Unique", [draw.whole(0, 4, 8).astype(np.float32)], opsets=since(11), outputs=4)
    yield Sample("Einsum", [draw.floats(3, 4), draw.floats(4, 5)], {"equation": "ij,jk->ik"}, since(12))
    yield Sample("MatMul", [draw.floats(2, 3, 4), draw.floats(4, 5)])
    for known in ({}, {"transA": 1, "alpha": 0.5}, {"transB": 1, "beta": 0.25}):
        left = draw.floats(4, 3) if "transA" in known else draw.floats(3, 4)
        right = draw.floats(5, 4) if "transB" in known else draw.floats(4, 5)
        yield Sample("Gemm", [left, right, draw.floats(5)], known, label=f" {known}")
    yield Sample("Gemm", [draw.floats(3, 4), draw.floats(4, 5)], opsets=since(11), label=" without C")


def _windows(draw: Draw) -> Iterator[Sample]:
    x = draw.floats(1, 2, 5, 4)
    padded: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2], "pads": [0, 0, 1, 1]}
    for name in ("MaxPool", "AveragePool", "LpPool"):
        yield Sample(name, [x], padded)
        for auto in ("SAME_UPPER", "SAME_LOWER", "VALID"):
            known = {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": auto}
            yield Sample(name, [x], known, label=f" {auto}")
        if name != "LpPool":
            yield Sample(name, [x], {**padded, "ceil_mode": 1}, since(10), label=" ceil_mode")
            yield Sample(name, [x], {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}, since(10),
                         label=" ceil_mode without pads")  # fmt: skip
    yield Sample("AveragePool", [x], {**padded, "count_include_pad": 1}, label=" all")
    yield Sample("MaxPool", [x], {**padded, "storage_order": 1}, since(8), outputs=2, label=" places")
    yield Sample("MaxPool", [x], {"kernel_shape": [2, 2], "dilations": [2, 1]}, since(10), label=" dilated")
    yield Sample("GlobalAveragePool", [x])
    yield Sample("GlobalMaxPool", [x])
    yield Sample("GlobalLpPool", [x], {"p": 1})
    rois = np.array([[0, 0, 0, 3, 3]], np.float32)
    yield Sample("MaxRoiPool", [draw.floats(1, 2, 6, 6), rois], {"pooled_shape": [2, 2]}, constant=(1,))
    yield Sample("RoiAlign", [draw.floats(1, 2, 6, 6), np.array([[0.5, 0.3, 3.2, 4.1]], np.float32), numbers(0)],
                 {"output_height": 2, "output_width": 3}, since(10), constant=(1, 2))  # fmt: skip
    yield Sample("MaxUnpool", [draw.floats(1, 1, 2, 2), np.array([[[[5, 7], [13, 15]]]], np.int64)],
                 {"kernel_shape": [2, 2], "strides": [2, 2]}, since(9), constant=(1,))  # fmt: skip
    for label, known in {
        "": {"pads": [1, 0, 1, 2]}, " SAME_UPPER": {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
        " SAME_LOWER": {"auto_pad": "SAME_LOWER", "strides": [2, 2]}, " dilated": {"dilations": [2, 1]},
    }.items():  # fmt: skip
        weights = [draw.floats(3, 2, 2, 2), draw.floats(3)]
        yield Sample("Conv", [draw.floats(1, 2, 5, 6), *weights], known, constant=(1, 2), label=label)
        if label != " dilated":
            weights = [draw.floats(2, 3, 2, 2), draw.floats(3)]
            yield Sample("ConvTranspose", [x, *weights], known, constant=(1, 2), label=label)
    sized = {"strides": [2, 2], "output_shape": [10, 8]}
    yield Sample("ConvTranspose", [x, draw.floats(2, 3, 3, 3)], sized, constant=(1,), label=" sized")
    ahead = {**sized, "auto_pad": "SAME_UPPER"}
    yield Sample("ConvTranspose", [x, draw.floats(2, 3, 3, 3)], ahead, constant=(1,), label=" sized, SAME_UPPER")


def _interpolation(draw: Draw) -> Iterator[Sample]:
    factors = {
        "": (1.0, 1.0, 2.0, 3.0), " fractional": (1.0, 1.0, 1.5, 2.4), " shrinking": (1.0, 1.0, 0.6, 0.5),
        " both": (1.0, 1.0, 0.6, 1.7),
    }  # fmt: skip
    for mode in ("nearest", "linear"):
        for label, scales in factors.items():
            x, by = draw.floats(1, 2, 5, 6), np.array(scales, np.float32)
            if min(scales) >= 1.0:
                known = {"mode": mode, "scales": list(scales)}
                yield Sample("Upsample", [x], known, until(8), label=f" {mode}{label}")
                yield Sample("Upsample", [x, by], {"mode": mode}, range(9, 10), constant=(1,), label=f" {mode}{label}")
                yield Sample("Upsample", [x, by], {"mode": mode}, range(9, 10), label=f" {mode}{label} of an input")
            yield Sample("Resize", [x, by], {"mode": mode}, range(10, 11), constant=(1,), label=f" {mode}{label}")
            yield Sample("Resize", [x, by], {"mode": mode}, range(10, 11), label=f" {mode}{label} of an input")
    two = np.array([2.0, 1.5], np.float32)
    yield Sample("Resize", [draw.floats(3, 4), two], {"mode": "nearest"}, range(10, 11), constant=(1,), label=" 2-D")
    yield Sample("Resize", [draw.floats(3, 4), two], {"mode": "linear"}, range(10, 11), constant=(1,), label=" 2-D linear")
    none = np.array([], np.float32)
    by = np.array([1.0, 1.0, 0.6, 1.7], np.float32)
    for how in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "tf_half_pixel_for_nn"):
        for mode in ("nearest", "linear", "cubic"):
            known = {"coordinate_transformation_mode": how, "mode": mode}
            yield Sample("Resize", [draw.floats(1, 2, 5, 6), none, by], known, since(11), constant=(1, 2),
                         label=f" {how} {mode}")  # fmt: skip
    for rounding in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
        yield Sample("Resize", [draw.floats(1, 2, 5, 6), none, by], {"nearest_mode": rounding}, since(11),
                     constant=(1, 2), label=f" {rounding}")  # fmt: skip
    yield Sample("Resize", [draw.floats(1, 2, 5, 6), none, none, numbers(1, 2, 7, 4)], {"mode": "linear"}, since(11),
                 constant=(1, 2, 3), label=" to sizes")  # fmt: skip


def _lookups(draw: Draw) -> Iterator[Sample]:
    yield Sample("Gather", [draw.floats(4, 5), draw.whole(0, 5, 2, 3)], {"axis": 1})
    yield Sample("GatherElements", [draw.floats(3, 4), draw.whole(0, 3, 2, 4)], {"axis": 0}, since(11))
    yield Sample("GatherND", [draw.floats(3, 4), draw.whole(0, 3, 2, 2)], opsets=since(11))
    yield Sample("GatherND", [draw.floats(3, 4, 5), draw.whole(0, 4, 3, 1)], {"batch_dims": 1}, since(12), label=" batch")
    places, updates = np.array([[1, 0, 2]], np.int64), draw.floats(1, 3)
    yield Sample("Scatter", [draw.floats(3, 3), places, updates], opsets=range(9, 11), constant=(1,))
    yield Sample("Scatter", [draw.floats(3, 3), places, updates], {"axis": 1}, range(9, 11), constant=(1,), label=" axis")
    yield Sample("ScatterElements", [draw.floats(3, 3), places, updates], {"axis": 1}, since(11), constant=(1,))
    yield Sample("ScatterND", [draw.floats(4, 2), np.array([[1], [3]], np.int64), draw.floats(2, 2)],
                 opsets=since(11), constant=(1,))  # fmt: skip
    yield Sample("Compress", [draw.floats(3, 4), np.array([True, False, True])], {"axis": 0}, since(9), constant=(1,))
    span = np.array([0.5, 2.5], np.float32)
    yield Sample("OneHot", [draw.whole(0, 4, 3), np.array(4, np.int64), span], opsets=since(9), constant=(1, 2))
    yield Sample("OneHot", [draw.whole(-4, 4, 6), np.array(4, np.int64), span], {"axis": 0}, since(9), constant=(1, 2),
                 label=" negative")  # fmt: skip
    boxes = np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 5, 1, 6]]], np.float32)
    limits = [numbers(3), np.array([0.5], np.float32), np.array([0.0], np.float32)]
    yield Sample("NonMaxSuppression", [boxes, np.array([[[0.9, 0.75, 0.6]]], np.float32), *limits], opsets=since(10),
                 constant=(0, 2, 3, 4))  # fmt: skip


def _quantised(draw: Draw) -> Iterator[Sample]:
    scale, zero = np.array(0.05, np.float32), np.array(7, np.uint8)
    yield Sample("QuantizeLinear", [draw.floats(3, 4), scale, zero], opsets=since(10), constant=(1, 2))
    bytes_, weights = draw.whole(0, 255, 3, 4, kind=np.uint8), draw.whole(0, 255, 4, 5, kind=np.uint8)
    yield Sample("DequantizeLinear", [bytes_, scale, zero], opsets=since(10), constant=(1, 2))
    yield Sample("MatMulInteger", [bytes_, weights, zero, zero], opsets=since(10), constant=(2, 3))
    yield Sample("QLinearMatMul", [bytes_, scale, zero, weights, scale, zero, np.array(3.0, np.float32), zero],
                 opsets=since(10), constant=(1, 2, 3, 4, 5, 6, 7))  # fmt: skip
    image, kernel = draw.whole(0, 255, 1, 2, 5, 5, kind=np.uint8), draw.whole(0, 255, 3, 2, 2, 2, kind=np.uint8)
    yield Sample("ConvInteger", [image, kernel, zero], {"pads": [1, 1, 0, 0]}, since(10), constant=(1, 2))
    yield Sample("QLinearConv", [image, scale, zero, kernel, scale, zero, np.array(3.0, np.float32), zero],
                 {"strides": [2, 1]}, since(10), constant=(1, 2, 3, 4, 5, 6, 7))  # fmt: skip


def _recurrent(draw: Draw) -> Iterator[Sample]:
    for name, gates, outputs in (("RNN", 1, 2), ("GRU", 3, 2), ("LSTM", 4, 3)):
        for direction in ("forward", "bidirectional"):
            ways = 2 if direction == "bidirectional" else 1
            weights = [draw.floats(ways, gates * 3, 4), draw.floats(ways, gates * 3, 3), draw.floats(ways, gates * 6)]
            known = {"hidden_size": 3, "direction": direction}
            x = draw.floats(5, 2, 4)
            yield Sample(name, [x, *weights], known, outputs=outputs, constant=(1, 2, 3), label=f" {direction}")
        lengths = np.array([5, 3], np.int32)
        yield Sample(name, [x, *weights, lengths], known, outputs=outputs, constant=(1, 2, 3, 4), label=" lengths")


def _bodies(draw: Draw) -> Iterator[Sample]:
    adding = [helper.make_node("Add", ["s", "x"], ["t"]), helper.make_node("Softmax", ["t"], ["o"], axis=0)]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3, 4]) for name in "sxto"]
    body = helper.make_graph(adding, "body", values[:2], values[2:])
    yield Sample("Scan", [None, draw.floats(2, 3, 4), draw.floats(2, 5, 3, 4)], {"body": body, "num_scan_inputs": 1},
                 range(8, 9), outputs=2)  # fmt: skip
    yield Sample("Scan", [None, draw.floats(2, 3, 4), draw.floats(2, 5, 3, 4)],
                 {"body": body, "num_scan_inputs": 1, "directions": [1]}, range(8, 9), outputs=2, label=" backwards")  # fmt: skip
    lengths = numbers(5, 3)
    yield Sample("Scan", [lengths, draw.floats(2, 3, 4), draw.floats(2, 5, 3, 4)], {"body": body, "num_scan_inputs": 1},
                 range(8, 9), outputs=2, constant=(0,), label=" lengths")  # fmt: skip
    yield Sample("Scan", [draw.floats(3, 4), draw.floats(5, 3, 4)], {"body": body, "num_scan_inputs": 1}, since(9),
                 outputs=2)  # fmt: skip
    yield Sample("Scan", [draw.floats(3, 4), draw.floats(5, 3, 4)],
                 {"body": body, "num_scan_inputs": 1, "scan_input_directions": [1], "scan_output_axes": [1]},
                 since(9), outputs=2, label=" backwards")  # fmt: skip
    counted = [
        helper.make_node("Identity", ["c"], ["d"]),
        helper.make_node("Softmax", ["a"], ["b"], axis=0),
        helper.make_node("Identity", ["b"], ["e"]),
    ]
    inputs = [
        helper.make_tensor_value_info("i", TensorProto.INT64, []),
        helper.make_tensor_value_info("c", TensorProto.BOOL, []),
        helper.make_tensor_value_info("a", TensorProto.FLOAT, [2, 3]),
    ]
    results = [
        helper.make_tensor_value_info("d", TensorProto.BOOL, []),
        helper.make_tensor_value_info("b", TensorProto.FLOAT, [2, 3]),
        helper.make_tensor_value_info("e", TensorProto.FLOAT, [2, 3]),
    ]
    loop = helper.make_graph(counted, "body", inputs, results)
    yield Sample("Loop", [np.array(3, np.int64), np.array(True), draw.floats(2, 3)], {"body": loop}, outputs=2,
                 constant=(0, 1))  # fmt: skip
