"""Allowances for rounding are large enough for differences of similar numbers."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from irgym.envs.graph.checking.checks import checked_on
from irgym.envs.graph.environment import GRAPH


def test_weights_of_one_shape_are_moved_each_its_own_way(tmp_path: Path):
    """Equal changes of two weights that cancel would leave their sum unchanged, unlike rounding."""
    b = np.random.default_rng(0).uniform(0.5, 1, 100).astype(np.float32)
    arrays = {"b": b, "c": -b * np.float32(0.999)}
    weights = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    products = [helper.make_node("Mul", ["x", name], [f"x{name}"]) for name in "bc"]
    nodes = [*products, helper.make_node("Add", ["xb", "xc"], ["y"])]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 100))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 100))
    graph = helper.make_graph(nodes, "cancelling", [x], [y], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    path = tmp_path / "cancelling.onnx"
    onnx.save(model, str(path))
    problem, _ = checked_on(GRAPH.task(f"graph:{path}").path, 0)
    [expected] = problem.expected
    assert expected.allowance is not None
    assert float(np.median(expected.allowance)) > np.finfo(np.float32).eps
