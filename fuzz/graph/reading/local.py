"""Operators of opsets 7 to 12: windows, images, lookups, quantised and recurrent operators, and subgraphs."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from fuzz.graph.reading.samples import Draw, Sample, numbers, since, until


def windows(draw: Draw) -> Iterator[Sample]:
    x = draw.floats(1, 2, 5, 4)
    padded: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2], "pads": [0, 0, 1, 1]}
    for name in ("MaxPool", "AveragePool", "LpPool"):
        yield Sample(name, [x], padded)
        for auto in ("SAME_UPPER", "SAME_LOWER", "VALID"):
            known = {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": auto}
            yield Sample(name, [x], known, label=f" {auto}")
        if name != "LpPool":
            yield Sample(name, [x], {**padded, "ceil_mode": 1}, since(10), label=" ceil_mode")
            yield Sample(
                name,
                [x],
                {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
                since(10),
                label=" ceil_mode without pads",
            )
    yield Sample("AveragePool", [x], {**padded, "count_include_pad": 1}, label=" all")
    yield Sample("MaxPool", [x], {**padded, "storage_order": 1}, since(8), outputs=2, label=" places")
    yield Sample("MaxPool", [x], {"kernel_shape": [2, 2], "dilations": [2, 1]}, since(10), label=" dilated")
    yield Sample("GlobalAveragePool", [x])
    yield Sample("GlobalMaxPool", [x])
    yield Sample("GlobalLpPool", [x], {"p": 1})
    rois = np.array([[0, 0, 0, 3, 3]], np.float32)
    yield Sample("MaxRoiPool", [draw.floats(1, 2, 6, 6), rois], {"pooled_shape": [2, 2]}, constant=(1,))
    yield Sample(
        "RoiAlign",
        [draw.floats(1, 2, 6, 6), np.array([[0.5, 0.3, 3.2, 4.1]], np.float32), numbers(0)],
        {"output_height": 2, "output_width": 3},
        since(10),
        constant=(1, 2),
    )
    yield Sample(
        "MaxUnpool",
        [draw.floats(1, 1, 2, 2), np.array([[[[5, 7], [13, 15]]]], np.int64)],
        {"kernel_shape": [2, 2], "strides": [2, 2]},
        since(9),
        constant=(1,),
    )
    for label, known in {
        "": {"pads": [1, 0, 1, 2]},
        " SAME_UPPER": {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
        " SAME_LOWER": {"auto_pad": "SAME_LOWER", "strides": [2, 2]},
        " dilated": {"dilations": [2, 1]},
    }.items():
        weights = [draw.floats(3, 2, 2, 2), draw.floats(3)]
        yield Sample("Conv", [draw.floats(1, 2, 5, 6), *weights], known, constant=(1, 2), label=label)
        if label != " dilated":
            weights = [draw.floats(2, 3, 2, 2), draw.floats(3)]
            yield Sample("ConvTranspose", [x, *weights], known, constant=(1, 2), label=label)
    sized = {"strides": [2, 2], "output_shape": [10, 8]}
    yield Sample("ConvTranspose", [x, draw.floats(2, 3, 3, 3)], sized, constant=(1,), label=" sized")
    ahead = {**sized, "auto_pad": "SAME_UPPER"}
    yield Sample(
        "ConvTranspose", [x, draw.floats(2, 3, 3, 3)], ahead, constant=(1,), label=" sized, SAME_UPPER"
    )


def interpolation(draw: Draw) -> Iterator[Sample]:
    factors = {
        "": (1.0, 1.0, 2.0, 3.0),
        " fractional": (1.0, 1.0, 1.5, 2.4),
        " shrinking": (1.0, 1.0, 0.6, 0.5),
        " both": (1.0, 1.0, 0.6, 1.7),
    }
    for mode in ("nearest", "linear"):
        for label, scales in factors.items():
            x, by = draw.floats(1, 2, 5, 6), np.array(scales, np.float32)
            if min(scales) >= 1.0:
                known = {"mode": mode, "scales": list(scales)}
                yield Sample("Upsample", [x], known, until(8), label=f" {mode}{label}")
                yield Sample(
                    "Upsample", [x, by], {"mode": mode}, range(9, 10), constant=(1,), label=f" {mode}{label}"
                )
                yield Sample(
                    "Upsample", [x, by], {"mode": mode}, range(9, 10), label=f" {mode}{label} of an input"
                )
            yield Sample(
                "Resize", [x, by], {"mode": mode}, range(10, 11), constant=(1,), label=f" {mode}{label}"
            )
            yield Sample(
                "Resize", [x, by], {"mode": mode}, range(10, 11), label=f" {mode}{label} of an input"
            )
    two = np.array([2.0, 1.5], np.float32)
    yield Sample(
        "Resize", [draw.floats(3, 4), two], {"mode": "nearest"}, range(10, 11), constant=(1,), label=" 2-D"
    )
    yield Sample(
        "Resize",
        [draw.floats(3, 4), two],
        {"mode": "linear"},
        range(10, 11),
        constant=(1,),
        label=" 2-D linear",
    )
    none = np.array([], np.float32)
    by = np.array([1.0, 1.0, 0.6, 1.7], np.float32)
    for how in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "tf_half_pixel_for_nn"):
        for mode in ("nearest", "linear", "cubic"):
            known = {"coordinate_transformation_mode": how, "mode": mode}
            yield Sample(
                "Resize",
                [draw.floats(1, 2, 5, 6), none, by],
                known,
                since(11),
                constant=(1, 2),
                label=f" {how} {mode}",
            )
    for rounding in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
        yield Sample(
            "Resize",
            [draw.floats(1, 2, 5, 6), none, by],
            {"nearest_mode": rounding},
            since(11),
            constant=(1, 2),
            label=f" {rounding}",
        )
    yield Sample(
        "Resize",
        [draw.floats(1, 2, 5, 6), none, none, numbers(1, 2, 7, 4)],
        {"mode": "linear"},
        since(11),
        constant=(1, 2, 3),
        label=" to sizes",
    )


def lookups(draw: Draw) -> Iterator[Sample]:
    yield Sample("Gather", [draw.floats(4, 5), draw.whole(0, 5, 2, 3)], {"axis": 1})
    yield Sample("GatherElements", [draw.floats(3, 4), draw.whole(0, 3, 2, 4)], {"axis": 0}, since(11))
    yield Sample("GatherND", [draw.floats(3, 4), draw.whole(0, 3, 2, 2)], opsets=since(11))
    yield Sample(
        "GatherND",
        [draw.floats(3, 4, 5), draw.whole(0, 4, 3, 1)],
        {"batch_dims": 1},
        since(12),
        label=" batch",
    )
    places, updates = np.array([[1, 0, 2]], np.int64), draw.floats(1, 3)
    yield Sample("Scatter", [draw.floats(3, 3), places, updates], opsets=range(9, 11), constant=(1,))
    yield Sample(
        "Scatter",
        [draw.floats(3, 3), places, updates],
        {"axis": 1},
        range(9, 11),
        constant=(1,),
        label=" axis",
    )
    yield Sample(
        "ScatterElements", [draw.floats(3, 3), places, updates], {"axis": 1}, since(11), constant=(1,)
    )
    yield Sample(
        "ScatterND",
        [draw.floats(4, 2), np.array([[1], [3]], np.int64), draw.floats(2, 2)],
        opsets=since(11),
        constant=(1,),
    )
    yield Sample(
        "Compress", [draw.floats(3, 4), np.array([True, False, True])], {"axis": 0}, since(9), constant=(1,)
    )
    span = np.array([0.5, 2.5], np.float32)
    yield Sample(
        "OneHot", [draw.whole(0, 4, 3), np.array(4, np.int64), span], opsets=since(9), constant=(1, 2)
    )
    yield Sample(
        "OneHot",
        [draw.whole(-4, 4, 6), np.array(4, np.int64), span],
        {"axis": 0},
        since(9),
        constant=(1, 2),
        label=" negative",
    )
    boxes = np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 5, 1, 6]]], np.float32)
    limits = [numbers(3), np.array([0.5], np.float32), np.array([0.0], np.float32)]
    yield Sample(
        "NonMaxSuppression",
        [boxes, np.array([[[0.9, 0.75, 0.6]]], np.float32), *limits],
        opsets=since(10),
        constant=(0, 2, 3, 4),
    )


def quantised(draw: Draw) -> Iterator[Sample]:
    scale, zero = np.array(0.05, np.float32), np.array(7, np.uint8)
    yield Sample("QuantizeLinear", [draw.floats(3, 4), scale, zero], opsets=since(10), constant=(1, 2))
    bytes_, weights = draw.whole(0, 255, 3, 4, kind=np.uint8), draw.whole(0, 255, 4, 5, kind=np.uint8)
    yield Sample("DequantizeLinear", [bytes_, scale, zero], opsets=since(10), constant=(1, 2))
    yield Sample("MatMulInteger", [bytes_, weights, zero, zero], opsets=since(10), constant=(2, 3))
    yield Sample(
        "QLinearMatMul",
        [bytes_, scale, zero, weights, scale, zero, np.array(3.0, np.float32), zero],
        opsets=since(10),
        constant=(1, 2, 3, 4, 5, 6, 7),
    )
    image, kernel = (
        draw.whole(0, 255, 1, 2, 5, 5, kind=np.uint8),
        draw.whole(0, 255, 3, 2, 2, 2, kind=np.uint8),
    )
    yield Sample("ConvInteger", [image, kernel, zero], {"pads": [1, 1, 0, 0]}, since(10), constant=(1, 2))
    yield Sample(
        "QLinearConv",
        [image, scale, zero, kernel, scale, zero, np.array(3.0, np.float32), zero],
        {"strides": [2, 1]},
        since(10),
        constant=(1, 2, 3, 4, 5, 6, 7),
    )


def recurrent(draw: Draw) -> Iterator[Sample]:
    for name, gates, outputs in (("RNN", 1, 2), ("GRU", 3, 2), ("LSTM", 4, 3)):
        for direction in ("forward", "bidirectional"):
            ways = 2 if direction == "bidirectional" else 1
            weights = [
                draw.floats(ways, gates * 3, 4),
                draw.floats(ways, gates * 3, 3),
                draw.floats(ways, gates * 6),
            ]
            known = {"hidden_size": 3, "direction": direction}
            x = draw.floats(5, 2, 4)
            yield Sample(
                name, [x, *weights], known, outputs=outputs, constant=(1, 2, 3), label=f" {direction}"
            )
        lengths = np.array([5, 3], np.int32)
        yield Sample(
            name, [x, *weights, lengths], known, outputs=outputs, constant=(1, 2, 3, 4), label=" lengths"
        )


def bodies(draw: Draw) -> Iterator[Sample]:
    adding = [helper.make_node("Add", ["s", "x"], ["t"]), helper.make_node("Softmax", ["t"], ["o"], axis=0)]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3, 4]) for name in "sxto"]
    body = helper.make_graph(adding, "body", values[:2], values[2:])
    yield Sample(
        "Scan",
        [None, draw.floats(2, 3, 4), draw.floats(2, 5, 3, 4)],
        {"body": body, "num_scan_inputs": 1},
        range(8, 9),
        outputs=2,
    )
    yield Sample(
        "Scan",
        [None, draw.floats(2, 3, 4), draw.floats(2, 5, 3, 4)],
        {"body": body, "num_scan_inputs": 1, "directions": [1]},
        range(8, 9),
        outputs=2,
        label=" backwards",
    )
    lengths = numbers(5, 3)
    yield Sample(
        "Scan",
        [lengths, draw.floats(2, 3, 4), draw.floats(2, 5, 3, 4)],
        {"body": body, "num_scan_inputs": 1},
        range(8, 9),
        outputs=2,
        constant=(0,),
        label=" lengths",
    )
    yield Sample(
        "Scan",
        [draw.floats(3, 4), draw.floats(5, 3, 4)],
        {"body": body, "num_scan_inputs": 1},
        since(9),
        outputs=2,
    )
    yield Sample(
        "Scan",
        [draw.floats(3, 4), draw.floats(5, 3, 4)],
        {"body": body, "num_scan_inputs": 1, "scan_input_directions": [1], "scan_output_axes": [1]},
        since(9),
        outputs=2,
        label=" backwards",
    )
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
    yield Sample(
        "Loop",
        [np.array(3, np.int64), np.array(True), draw.floats(2, 3)],
        {"body": loop},
        outputs=2,
        constant=(0, 1),
    )
