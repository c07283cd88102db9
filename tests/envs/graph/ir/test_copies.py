"""Weights that layers share through copies."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from irgym.envs.graph.ir.reading import read

SIZE = 40


def shared(folder: Path) -> Path:
    """Save a model of two layers and a branch with one weight, of which it also returns a copy."""
    weight = np.random.default_rng(0).standard_normal((SIZE, SIZE)).astype(np.float32)
    branch = helper.make_graph(
        [helper.make_node("MatMul", ["second", "copy.of.copy"], ["inner"])],
        "branch",
        [],
        [helper.make_tensor_value_info("inner", TensorProto.FLOAT, [4, SIZE])],
    )
    nodes = [
        helper.make_node("Identity", ["weight"], ["copy"]),
        helper.make_node("Identity", ["copy"], ["copy.of.copy"]),
        helper.make_node("Identity", ["weight"], ["returned"]),
        helper.make_node("MatMul", ["x", "weight"], ["first"]),
        helper.make_node("MatMul", ["first", "copy"], ["second"]),
        helper.make_node("If", ["yes"], ["y"], then_branch=branch, else_branch=branch),
    ]
    kinds = {"y": [4, SIZE], "returned": [SIZE, SIZE]}
    graph = helper.make_graph(
        nodes,
        "shared",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, SIZE]),
            helper.make_tensor_value_info("yes", TensorProto.BOOL, []),
        ],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, kind) for name, kind in kinds.items()],
        [numpy_helper.from_array(weight, "weight")],
    )
    path = folder / "shared.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return path


def test_a_shared_weight_is_read_once(tmp_path: Path):
    graph, arrays = read(shared(tmp_path))
    assert list(arrays) == ["weight", "returned"]
    products = [node for node in graph.nodes.values() if node.operator == "MatMul"]
    assert [node.inputs[1] for node in products] == ["weight", "weight"]
    [branching] = [node for node in graph.nodes.values() if node.operator == "If"]
    assert set(branching.captured) == {"second", "weight"}
    assert graph.outputs == ("y", "returned")
