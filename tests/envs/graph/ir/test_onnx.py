"""Conversion from ONNX and back: equal results in ONNX Runtime, and unsupported models."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

from irgym.base.errors import ProgramError
from irgym.envs.graph.ir.computing import computed
from irgym.envs.graph.ir.reading import read
from irgym.envs.graph.ir.weights import Literal, Stored, Weights
from irgym.envs.graph.ir.writing import arrays_apart, model_of


def value(name: str, *shape: int, kind: int = TensorProto.FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def written(path: Path, nodes: list[Any], weights: dict[str, Any], **more: Any) -> Path:
    opset = more.pop("opset", 20)
    graph = helper.make_graph(
        nodes,
        "test",
        more.pop("inputs", [value("x", 2, 8)]),
        more.pop("outputs", [value("y", 2, 16)]),
        [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()],
    )
    imports = [helper.make_opsetid("", opset), *more.pop("imports", [])]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=10), str(path))
    return path


def run(model: bytes, feeds: dict[str, Any], apart: list[tuple[str, Any]] | None = None) -> list[Any]:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    kept = [ort.OrtValue.ortvalue_from_numpy(array) for _, array in apart or []]
    if apart:
        options.add_external_initializers([name for name, _ in apart], kept)
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, feeds)


RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 8)).astype(np.float32)
W = RNG.standard_normal((8, 16)).astype(np.float32)


def linear(path: Path) -> Path:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Identity", ["a"], ["i"]),
        helper.make_node("Constant", [], ["one"], value_float=1.0),
        helper.make_node("Add", ["i", "one"], ["b"]),
        helper.make_node("Clip", ["b", "", "one"], ["y"]),
    ]
    return written(path, nodes, {"w": W})


def test_a_model_is_the_same_after_reading_and_writing(tmp_path: Path):
    path = linear(tmp_path / "m.onnx")
    graph, arrays = read(path)
    assert [node.operator for node in graph.order] == ["MatMul", "Add", "Clip"]
    assert isinstance(graph.weights["w"], Stored) and isinstance(graph.weights["one"], Literal)
    assert graph.nodes["y"].inputs == ("b", "", "one")
    weights = Weights(arrays)
    [expected] = run(path.read_bytes(), {"x": X})
    for whole in (True, False):
        model = model_of(graph, weights, whole=whole)
        onnx.checker.check_model(model) if whole else None
        apart = None if whole else arrays_apart(graph, weights)
        [found] = run(model.SerializeToString(), {"x": X}, apart)
        np.testing.assert_array_equal(found, expected)


def test_inner_graphs_stay_as_they_are(tmp_path: Path):
    def branch(name: str, operator: str) -> Any:
        out = helper.make_node(operator, ["a"], [f"{name}_out"])
        return helper.make_graph([out], name, [], [value(f"{name}_out", 2, 16)])

    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node(
            "If", ["c"], ["y"], then_branch=branch("t", "Relu"), else_branch=branch("e", "Tanh")
        ),
    ]
    inputs = [value("x", 2, 8), value("c", kind=TensorProto.BOOL)]
    path = written(tmp_path / "m.onnx", nodes, {"w": W}, inputs=inputs)
    graph, arrays = read(path)
    assert graph.nodes["y"].captured == ("a",) and graph.users["a"] == ("y",)
    model = model_of(graph, Weights(arrays), whole=True).SerializeToString()
    for condition in (True, False):
        feeds = {"x": X, "c": np.array(condition)}
        np.testing.assert_array_equal(run(model, feeds)[0], run(path.read_bytes(), feeds)[0])


def test_an_operator_of_another_domain_stays(tmp_path: Path):
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("BiasGelu", ["a", "b"], ["y"], domain="com.microsoft"),
    ]
    weights = {"w": W, "b": np.ones(16, np.float32)}
    path = written(tmp_path / "m.onnx", nodes, weights, imports=[helper.make_opsetid("com.microsoft", 1)])
    graph, arrays = read(path)
    assert graph.nodes["y"].operator == "com.microsoft.BiasGelu"
    model = model_of(graph, Weights(arrays), whole=True).SerializeToString()
    np.testing.assert_array_equal(run(model, {"x": X})[0], run(path.read_bytes(), {"x": X})[0])


def test_zero_dimensional_weights_keep_their_shape(tmp_path: Path):
    nodes = [
        helper.make_node("Gather", ["w", "i"], ["r"], axis=0),
        helper.make_node("Mul", ["x", "r"], ["y"]),
    ]
    path = written(
        tmp_path / "m.onnx", nodes, {"w": W.T.copy(), "i": np.int64(3)}, outputs=[value("y", 2, 8)]
    )
    graph, arrays = read(path)
    model = model_of(graph, Weights(arrays), whole=True).SerializeToString()
    np.testing.assert_array_equal(run(model, {"x": X})[0], run(path.read_bytes(), {"x": X})[0])


def test_models_that_cannot_be_read_are_refused(tmp_path: Path):
    noise = [
        helper.make_node("RandomNormalLike", ["x"], ["r"]),
        helper.make_node("MatMul", ["r", "w"], ["y"]),
    ]
    with pytest.raises(ProgramError, match="draws random numbers"):
        read(written(tmp_path / "r.onnx", noise, {"w": W}))


def test_facts_about_large_weights_are_found_on_reading(tmp_path: Path):
    mask = np.where(np.tri(16, dtype=bool), 0, -3.4e38).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Add", ["a", "m"], ["y"])]
    io = {"inputs": [value("x", 16, 8)], "outputs": [value("y", 16, 16)]}
    graph, _ = read(written(tmp_path / "m.onnx", nodes, {"w": W, "m": mask}, **io))
    weight, masked = graph.weights["w"], graph.weights["m"]
    assert isinstance(weight, Stored)
    assert isinstance(masked, Stored)
    assert (weight.greatest, weight.causal, weight.open) == (float(abs(W).max()), False, True)
    assert (masked.greatest, masked.causal, masked.open) == (float(-mask.min()), True, True)


def test_rows_that_repeat_are_known_for_the_row_alone(tmp_path: Path):
    rows = np.tile(W[0], (16, 1))
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Add", ["a", "rows"], ["c"]),
        helper.make_node("Add", ["c", "row"], ["y"]),
    ]
    io = {"inputs": [value("x", 16, 8)], "outputs": [value("y", 16, 16)]}
    arrays = {"w": W, "rows": rows, "row": W[0]}
    graph, found = read(written(tmp_path / "m.onnx", nodes, arrays, **io))
    repeated, other = graph.weights["rows"], graph.weights["w"]
    assert isinstance(repeated, Stored) and isinstance(other, Stored)
    assert not other.row
    row = computed("row", repeated)
    assert row.digest == repeated.row == graph.weights["row"].digest
    np.testing.assert_array_equal(Weights(found).array(row), W[0])


def test_constants_that_repeat_a_number_are_computed(tmp_path: Path):
    nodes = [
        helper.make_node(
            "ConstantOfShape", ["s"], ["c"], value=numpy_helper.from_array(np.ones(1, np.float32))
        ),
        helper.make_node("Add", ["x", "c"], ["y"]),
    ]
    path = written(tmp_path / "m.onnx", nodes, {"s": np.array([2, 8])}, outputs=[value("y", 2, 8)])
    graph, _ = read(path)
    assert [node.operator for node in graph.order] == ["Add"]
    assert np.array_equal(graph.weights["c"].array, np.ones((2, 8)))
