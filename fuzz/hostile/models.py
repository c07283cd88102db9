"""Hostile ONNX models: weights in forbidden places, false sizes, graphs that explode."""

import os
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper

from fuzz.hostile.case import Maker, Opening, tune

FLOAT = TensorProto.FLOAT
OPSETS = (helper.make_opsetid("", 18),)


def _value(name: str, shape: Sequence[int | str], kind: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def _model(
    nodes: Sequence[onnx.NodeProto],
    shape: Sequence[int | str] = (4, 4),
    weights: Sequence[onnx.TensorProto] = (),
    functions: Sequence[onnx.FunctionProto] = (),
    result: Sequence[int | str] | None = None,
) -> onnx.ModelProto:
    """Return a model from x to y."""
    graph = helper.make_graph(
        nodes, "hostile", [_value("x", shape)], [_value("y", shape if result is None else result)], weights
    )
    opsets = [*OPSETS, *([helper.make_opsetid("f", 1)] if functions else [])]
    return helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=9)


def _saved(model: onnx.ModelProto, folder: Path, refused: bool = True) -> Opening:
    path = folder / "hostile.onnx"
    path.write_bytes(model.SerializeToString())
    return tune(path, refused=refused)


def _outside(
    dims: Sequence[int] = (4, 4),
    prepare: Callable[[Path, str], object] = lambda _folder, _payload: None,
    **entries: object,
) -> Maker:
    """Return a maker of a model whose weight is in another file, at the place in the given entries."""

    def make(folder: Path, payload: str) -> Opening:
        weight = TensorProto(name="w", data_type=FLOAT, dims=dims)
        weight.data_location = TensorProto.EXTERNAL
        for key, value in {"location": "weights.bin", **entries}.items():
            weight.external_data.add(key=key, value=str(value))
        (folder / "weights.bin").write_bytes(bytes(64))
        prepare(folder, payload)
        return _saved(_model([helper.make_node("MatMul", ["x", "w"], ["y"])], weights=[weight]), folder)

    return make


def _linked(target: str) -> Callable[[Path, str], object]:
    def prepare(folder: Path, _: str) -> None:
        (folder / "weights.bin").unlink()
        (folder / "weights.bin").symlink_to(target)

    return prepare


def _fifo(folder: Path, _: str) -> None:
    (folder / "weights.bin").unlink()
    os.mkfifo(folder / "weights.bin")


def _sparse(folder: Path, _: str) -> None:
    with (folder / "weights.bin").open("wb") as file:
        file.truncate(100 << 30)


def _nodes(*nodes: onnx.NodeProto, refused: bool = True, **options: Any) -> Maker:
    return lambda folder, _: _saved(_model(nodes, **options), folder, refused)


def _expanding(depth: int) -> Maker:
    """Return a maker of functions that each call the next one twice: 2 ** depth nodes."""

    def make(folder: Path, _: str) -> Opening:
        functions = []
        for level in range(depth):
            inner = "Neg" if level == depth - 1 else f"F{level + 1}"
            domain = "" if inner == "Neg" else "f"
            nodes = [
                helper.make_node(inner, ["a"], ["b"], domain=domain),
                helper.make_node(inner, ["b"], ["c"], domain=domain),
            ]
            opsets = [*OPSETS, helper.make_opsetid("f", 1)]
            functions.append(helper.make_function("f", f"F{level}", ["a"], ["c"], nodes, opsets))
        call = helper.make_node("F0", ["x"], ["y"], domain="f")
        return _saved(_model([call], functions=functions), folder)

    return make


def _recursive(folder: Path, _: str) -> Opening:
    node = helper.make_node("F", ["a"], ["c"], domain="f")
    opsets = [*OPSETS, helper.make_opsetid("f", 1)]
    function = helper.make_function("f", "F", ["a"], ["c"], [node], opsets)
    return _saved(_model([helper.make_node("F", ["x"], ["y"], domain="f")], functions=[function]), folder)


def _looping(trips: int) -> Maker:
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["going"], ["goes"]),
            helper.make_node("Sin", ["state"], ["next"]),
        ],
        "body",
        [_value("i", (), TensorProto.INT64), _value("going", (), TensorProto.BOOL), _value("state", (4, 4))],
        [_value("goes", (), TensorProto.BOOL), _value("next", (4, 4))],
    )
    number = helper.make_tensor("trips", TensorProto.INT64, (), [trips])
    true = helper.make_tensor("true", TensorProto.BOOL, (), [True])
    loop = helper.make_node("Loop", ["trips", "true", "x"], ["y"], body=body)
    return _nodes(loop, weights=[number, true])


def _nested(depth: int) -> Maker:
    """Return a maker of If operators nested to a given depth, byte by byte."""

    def make(folder: Path, _: str) -> Opening:
        def framed(tag: int, content: bytes) -> bytes:
            return bytes([tag << 3 | 2]) + _varint(len(content)) + content

        value = _value("y", (4, 4)).SerializeToString()
        inner = helper.make_node("Neg", ["x"], ["y"]).SerializeToString()
        for _ in range(depth):
            graph = framed(1, inner) + framed(2, b"g") + framed(12, value)
            branches = b"".join(
                framed(5, framed(1, name) + framed(6, graph) + b"\xa0\x01\x05") for name in (b"then_branch",)
            )
            inner = framed(1, b"c") + framed(2, b"y") + framed(4, b"If") + branches
        graph = framed(1, inner) + framed(2, b"g") + framed(11, _value("x", (4, 4)).SerializeToString())
        graph += framed(12, value)
        model = b"\x08\x09" + framed(7, graph) + framed(8, OPSETS[0].SerializeToString())
        path = folder / "hostile.onnx"
        path.write_bytes(model)
        return tune(path, refused=True)

    return make


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def _many(count: int) -> Maker:
    """Return a maker of a chain of nodes."""

    def make(folder: Path, _: str) -> Opening:
        names = ["x", *(f"v{place}" for place in range(count - 1)), "y"]
        nodes = [helper.make_node("Neg", [a], [b]) for a, b in pairwise(names)]
        return _saved(_model(nodes), folder)

    return make


def _lying(data: bytes, *dims: int) -> Maker:
    """Return a maker of a weight whose sizes differ from its data's."""
    weight = TensorProto(name="w", data_type=FLOAT, dims=dims, raw_data=data)
    return _nodes(helper.make_node("Add", ["x", "w"], ["y"]), weights=[weight])


def _constant_of_shape(*sizes: int) -> Maker:
    shape = helper.make_tensor("shape", TensorProto.INT64, (len(sizes),), sizes)
    nodes = [
        helper.make_node("ConstantOfShape", ["shape"], ["huge"]),
        helper.make_node("ReduceSum", ["huge"], ["sum"], keepdims=0),
        helper.make_node("Add", ["x", "sum"], ["y"]),
    ]
    return _nodes(*nodes, weights=[shape])


def _repeated(times: int) -> Maker:
    """Return a maker of constants that are computed from each other, each larger than the last."""
    two = helper.make_tensor("two", TensorProto.INT64, (1,), [256])
    names = [f"c{place}" for place in range(times + 1)]
    seed = helper.make_tensor("c0", FLOAT, (1,), [1.0])
    nodes = [helper.make_node("Tile", [a, "two"], [b]) for a, b in pairwise(names)]
    nodes += [
        helper.make_node("ReduceSum", [names[-1]], ["sum"], keepdims=0),
        helper.make_node("Add", ["x", "sum"], ["y"]),
    ]
    return _nodes(*nodes, weights=[two, seed])


def _at(path: str) -> Maker:
    return lambda _folder, _payload: tune(path, refused=True)


def _program_fifo(folder: Path, _: str) -> Opening:
    os.mkfifo(folder / "hostile.onnx")
    return tune(folder / "hostile.onnx", refused=True)


def _program_sparse(folder: Path, _: str) -> Opening:
    with (folder / "hostile.onnx").open("wb") as file:
        file.truncate(100 << 30)
    return tune(folder / "hostile.onnx", refused=True)


def _program_zero(folder: Path, _: str) -> Opening:
    (folder / "hostile.onnx").symlink_to("/dev/zero")
    return tune(folder / "hostile.onnx", refused=True)


def _bytes(content: bytes) -> Maker:
    def make(folder: Path, _: str) -> Opening:
        (folder / "hostile.onnx").write_bytes(content)
        return tune(folder / "hostile.onnx", refused=True)

    return make


NEG = helper.make_node("Neg", ["x"], ["y"])

CASES: Mapping[str, Maker] = {
    "external_offset_negative": _outside(offset=-5),
    "external_length_negative": _outside(length=-1),
    "external_offset_no_number": _outside(offset="five"),
    "external_length_no_number": _outside(length="0x10"),
    "external_offset_huge": _outside(offset=10**400),
    "external_length_huge": _outside(length=1 << 62),
    "external_offset_2_63": _outside(offset=1 << 63),
    "external_nul": _outside(location="a\0b"),
    "external_long_name": _outside(location="a" * 5000),
    "external_surrogate": _outside(location="\u2028weights.bin"),
    "external_empty": _outside(location=""),
    "external_absolute": _outside(location="/etc/passwd"),
    "external_parent": _outside(location="../../../../etc/passwd"),
    "external_link_outside": _outside(prepare=_linked("/etc/passwd")),
    "external_link_loop": _outside(prepare=_linked("weights.bin")),
    "external_link_dev_zero": _outside(prepare=_linked("/dev/zero")),
    "external_folder": _outside(location="."),
    "external_dev_zero": _outside(location="/dev/zero"),
    "external_stdin": _outside(location="/dev/stdin"),
    "external_fifo": _outside(prepare=_fifo),
    "external_sparse_100_gib": _outside(prepare=_sparse),
    "external_dims_huge": _outside(dims=(1 << 40,)),
    "external_dims_overflow": _outside(dims=(1 << 62, 4)),
    "external_dims_negative": _outside(dims=(-4, -4)),
    "external_large_offset_negative": _outside(dims=(1024, 1024), offset=-5),
    "external_large_nul": _outside(dims=(1024, 1024), location="a\0b"),
    "dimension_2_62": _nodes(NEG, shape=(1 << 62, 4)),
    "dimension_2_40": _nodes(NEG, shape=(1 << 40,)),
    "dimensions_product_overflow": _nodes(NEG, shape=(1 << 33, 1 << 33)),
    "dimension_negative": _nodes(NEG, shape=(-4, 4)),
    "result_dimension_2_62": _nodes(NEG, refused=False, result=(1 << 62, 4)),
    "rank_100000": _nodes(NEG, shape=(1,) * 100_000),
    "weight_dims_lie": _lying(bytes(16), 1 << 40),
    "weight_dims_overflow": _lying(bytes(16), 1 << 32, 1 << 32),
    "weight_dims_negative": _lying(bytes(16), -2, -2),
    "weight_type_unknown": _nodes(
        helper.make_node("Add", ["x", "w"], ["y"]), weights=[TensorProto(name="w", data_type=99, dims=(1,))]
    ),
    "functions_2_24_nodes": _expanding(24),
    "functions_2_200_nodes": _expanding(200),
    "function_recursive": _recursive,
    "loop_2_62": _looping(1 << 62),
    "loop_10_9": _looping(10**9),
    "nodes_1000000": _many(1_000_000),
    "nodes_100000": _many(100_000),
    "nested_if_5000": _nested(5000),
    "nested_if_90": _nested(30),
    "nested_protobuf": _bytes(b"\x3a\x80\x80\x04" * 100_000),
    "constant_of_shape_2_40": _constant_of_shape(1 << 40),
    "constant_of_shape_2_62": _constant_of_shape(1 << 62, 1 << 62),
    "constant_of_shape_2_32": _constant_of_shape(1 << 32),
    "constants_tiled_2_40": _repeated(5),
    "graph_without_end": _bytes(b"\x08\x09\x3a\xff\xff\xff\xff\x0f"),
    "program_fifo": _program_fifo,
    "program_sparse_100_gib": _program_sparse,
    "program_dev_zero": _program_zero,
    "program_at_dev_stdin": _at("/dev/stdin"),
    "program_nul": _at("graph:a%00b.onnx"),
    "dimension_in_uri_huge": lambda folder, payload: tune(
        f"graph:{_open(folder)}?n={'9' * 5000}", refused=True
    ),
    "dimension_in_uri_2_62": lambda folder, payload: tune(f"graph:{_open(folder)}?n={1 << 62}", refused=True),
}
"""Models, by name."""


def _open(folder: Path) -> Path:
    """Return the file of a valid model with a dynamic dimension."""
    path = folder / "open.onnx"
    path.write_bytes(_model([NEG], shape=("n", 4)).SerializeToString())
    return path
