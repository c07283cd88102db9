"""Element-wise operators, reductions and movement of elements in opsets 7 to 12."""

from collections.abc import Iterator

import numpy as np
from onnx import TensorProto

from fuzz.graph.reading.samples import FIRST, Draw, Sample, numbers, since, until

UNARY = (
    "Abs Acos Acosh@9 Asin Asinh@9 Atan Atanh@9 Ceil Celu@12 Cos Cosh@9 Elu Erf@9 Exp Floor HardSigmoid "
    "Identity IsNaN@9 LeakyRelu Log Neg Reciprocal Relu Round@11 Selu Shape Shrink@9 Sigmoid Sign@9 Sin "
    "Sinh@9 Size Softplus Softsign Sqrt Tan Tanh ThresholdedRelu@10 NonZero@9 IsInf@10 Det@11 EyeLike@9 "
    "DynamicQuantizeLinear@11"
)
BINARY = "Add Div Mul Sub Pow Max Min Mean Sum Greater@9 Less@9 GreaterOrEqual@12 LessOrEqual@12 PRelu"
REDUCTIONS = (
    "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum "
    "ReduceSumSquare"
)


def elementwise(draw: Draw) -> Iterator[Sample]:
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
        "BitShift",
        [draw.whole(0, 9, 4, kind=np.uint8), draw.whole(0, 3, 4, kind=np.uint8)],
        {"direction": "LEFT"},
        since(11),
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
    yield Sample(
        "Range",
        [np.array(1.0, np.float32), np.array(7.0, np.float32), np.array(2.0, np.float32)],
        opsets=since(11),
        constant=(0, 1, 2),
    )


def along_axes(draw: Draw) -> Iterator[Sample]:
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
        yield Sample(
            name,
            [draw.whole(0, 3, 3, 6).astype(np.float32)],
            {"axis": 1, "select_last_index": 1},
            since(12),
            label=" last",
        )
    yield Sample(
        "CumSum", [draw.floats(3, 4), np.array(1, np.int64)], {"reverse": 1}, since(11), constant=(1,)
    )
    yield Sample("LpNormalization", [draw.floats(3, 4)], {"axis": 0, "p": 1})
    yield Sample("MeanVarianceNormalization", [draw.floats(2, 3, 4, 5)], opsets=since(9))
    yield Sample(
        "MeanVarianceNormalization", [draw.floats(2, 3, 4, 5)], {"axes": [1, 2]}, since(9), label=" axes"
    )
    statistics = [draw.shares(3) for _ in range(4)]
    yield Sample(
        "BatchNormalization", [draw.floats(2, 3, 4, 5), *statistics], {"epsilon": 1e-3}, constant=range(1, 5)
    )
    yield Sample(
        "BatchNormalization",
        [draw.floats(2, 3, 4, 5), *statistics],
        {"spatial": 1},
        until(8),
        constant=range(1, 5),
        label=" spatial=1",
    )
    each = [draw.shares(3, 4, 5) for _ in range(4)]
    yield Sample(
        "BatchNormalization",
        [draw.floats(2, 3, 4, 5), *each],
        {"spatial": 0},
        until(8),
        constant=range(1, 5),
        label=" spatial=0",
    )
    yield Sample("InstanceNormalization", [draw.floats(2, 3, 4, 5), draw.shares(3), draw.shares(3)])
    yield Sample("LRN", [draw.floats(2, 5, 4, 4)], {"size": 3})
    yield Sample("TopK", [draw.floats(3, 6)], {"k": 2, "axis": 0}, until(9), outputs=2)
    yield Sample("TopK", [draw.floats(3, 6)], {"k": 2}, until(9), outputs=2, label=" last axis")
    yield Sample("TopK", [draw.floats(3, 6), numbers(2)], {"axis": 0}, since(10), outputs=2, constant=(1,))
    yield Sample(
        "TopK",
        [draw.floats(3, 6), numbers(2)],
        {"largest": 0},
        since(11),
        outputs=2,
        constant=(1,),
        label=" least",
    )
    logits, labels = draw.floats(4, 5), draw.whole(0, 5, 4)
    yield Sample("SoftmaxCrossEntropyLoss", [logits, labels], {"reduction": "mean"}, since(12))
    yield Sample("NegativeLogLikelihoodLoss", [logits, labels], {"reduction": "sum"}, since(12))


def movement(draw: Draw) -> Iterator[Sample]:
    yield Sample("Concat", [draw.floats(2, 3), draw.floats(2, 4)], {"axis": 1})
    yield Sample(
        "Concat", [draw.floats(2, 3), draw.floats(2, 4)], {"axis": -1}, since(11), label=" from the end"
    )
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
    yield Sample(
        "Slice", [draw.floats(4, 6)], {"starts": [1], "ends": [-1], "axes": [1]}, until(9), label=" axes"
    )
    yield Sample(
        "Slice",
        [draw.floats(4, 6), numbers(5), numbers(0), numbers(1), numbers(-2)],
        opsets=since(10),
        constant=(1, 2, 3, 4),
    )
    yield Sample("Split", [draw.floats(2, 6)], {"axis": 1}, outputs=2)
    yield Sample("Split", [draw.floats(2, 6)], {"axis": 1, "split": [1, 2, 3]}, outputs=3, label=" sizes")
    yield Sample("Split", [draw.floats(6, 2)], outputs=3, label=" first axis")
    yield Sample("Tile", [draw.floats(2, 3), numbers(2, 3)], constant=(1,))
    yield Sample("Expand", [draw.floats(3, 1), numbers(2, 3, 4)], opsets=since(8), constant=(1,))
    for mode in ("constant", "reflect", "edge"):
        known = {"mode": mode, "pads": [1, 1, 0, 2]} | ({"value": 1.5} if mode == "constant" else {})
        yield Sample("Pad", [draw.floats(3, 4)], known, until(10), label=f" {mode}")
        yield Sample(
            "Pad",
            [draw.floats(3, 4), numbers(1, 1, 0, 2)],
            {"mode": mode},
            since(11),
            constant=(1,),
            label=f" {mode}",
        )
    yield Sample("Pad", [draw.floats(3, 4)], {"pads": [0, -1, 0, 1]}, until(10), label=" negative")
    yield Sample("SpaceToDepth", [draw.floats(1, 2, 4, 6)], {"blocksize": 2})
    yield Sample("DepthToSpace", [draw.floats(1, 8, 2, 3)], {"blocksize": 2})
    yield Sample(
        "DepthToSpace", [draw.floats(1, 8, 2, 3)], {"blocksize": 2, "mode": "CRD"}, since(11), label=" CRD"
    )
    yield Sample(
        "ReverseSequence",
        [draw.floats(4, 3), numbers(4, 2, 3)],
        {"time_axis": 0, "batch_axis": 1},
        since(10),
        constant=(1,),
    )
    yield Sample("ConstantOfShape", [numbers(2, 3)], opsets=since(9), constant=(0,))
    yield Sample("Unique", [draw.whole(0, 4, 8).astype(np.float32)], opsets=since(11), outputs=4)
    yield Sample("Einsum", [draw.floats(3, 4), draw.floats(4, 5)], {"equation": "ij,jk->ik"}, since(12))
    yield Sample("MatMul", [draw.floats(2, 3, 4), draw.floats(4, 5)])
    for known in ({}, {"transA": 1, "alpha": 0.5}, {"transB": 1, "beta": 0.25}):
        left = draw.floats(4, 3) if "transA" in known else draw.floats(3, 4)
        right = draw.floats(5, 4) if "transB" in known else draw.floats(4, 5)
        yield Sample("Gemm", [left, right, draw.floats(5)], known, label=f" {known}")
    yield Sample("Gemm", [draw.floats(3, 4), draw.floats(4, 5)], opsets=since(11), label=" without C")
