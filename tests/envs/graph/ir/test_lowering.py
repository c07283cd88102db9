"""Open sizes as nodes: ONNX Runtime computes what arithmetic says."""

import numpy as np
import onnxruntime
import pytest
from onnx import numpy_helper
from small_graphs import graph_of

from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import node
from irgym.envs.graph.ir.sizes import at, symbol
from irgym.envs.graph.ir.weights import Sizes, Weights, sizes_of
from irgym.envs.graph.ir.writing import model_of

H, W = symbol("h"), symbol("w")


def made(elements: list[object], dtype: str = "int64") -> Graph:
    """Return a graph whose results are an input (h, w) and some sizes."""
    graph = graph_of([node("Identity", ["x"], ["y"])], {"x": (H, W)}, {}, ["y"])
    weight = sizes_of(np.array(elements, object), dtype)
    assert isinstance(weight, Sizes)
    nodes = [*graph.nodes.values(), node("Identity", ["s"], ["z"])]
    types = {**graph.types, "s": weight.type, "z": weight.type}
    return Graph.of(nodes, types, {"s": weight}, ["x"], ["y", "z"], [("", 20)], {"h": 2, "w": 3})


@pytest.mark.parametrize("dtype", ["int64", "int32", "float32"])
@pytest.mark.parametrize(
    "elements",
    [
        [H],
        [H, W, 7, -1],
        [H * W, 3 * H + 2, (H + 1) // 2, (W + 7) // 8 * H],
        [(H - W) // 2, (H - W) // 3 + 5, H - W],
        [[H, 1], [2, W * W]],
        [[H // 2]],
    ],
)
def test_sizes_are_computed_in_the_model(elements: list[object], dtype: str):
    graph = made(elements, dtype)
    model = model_of(graph, Weights({}), whole=True).SerializeToString()
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    for h, w in ((1, 1), (2, 3), (7, 2), (5, 9), (64, 48)):
        _, found = session.run(None, {"x": np.zeros((h, w), np.float32)})
        wanted = [at(size, {"h": h, "w": w}) for size in np.array(elements, object).reshape(-1)]
        assert found.dtype == dtype and found.reshape(-1).tolist() == wanted
        assert found.shape == graph.types["s"].shape


@pytest.mark.parametrize(
    ("elements", "told"),
    [([H, -1], [0, -1]), ([H * W], [-1]), ([H, 1, W], [0, 1, -1]), ([W, H], None), ([1, H, W], None)],
)
def test_a_reshape_is_told_by_zero_and_minus_one_where_that_suffices(
    elements: list[object], told: list[int] | None
):
    weight = sizes_of(np.array(elements, object))
    graph = graph_of([node("Identity", ["x"], ["y"])], {"x": (H, W)}, {}, ["y"])
    nodes = [*graph.nodes.values(), node("Reshape", ["y", "s"], ["z"])]
    whole = Graph.of(
        nodes, {**graph.types, "s": weight.type}, {"s": weight}, ["x"], ["z"], [("", 20)], {"h": 2}
    )
    model = model_of(whole, Weights({}), whole=True)
    shape = next(made for made in model.graph.node if made.op_type == "Reshape").input[1]
    constants = {tensor.name: numpy_helper.to_array(tensor).tolist() for tensor in model.graph.initializer}
    assert constants.get(shape) == told and (told is not None or shape == "s")
