"""Instances of rewrite rules, run in ONNX Runtime."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.weights import Weights
from irgym.envs.graph.ir.writing import model_of
from irgym.envs.graph.rewriting.rule import Rule
from irgym.envs.graph.rewriting.verification import run, verify

Array = NDArray[Any]


@cache
def block_here() -> int:
    """Return the channels of a block on this machine."""
    node = helper.make_node("ReorderInput", ["x"], ["y"], domain="com.microsoft.nchwc")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 4, 1, 1))
    proto = helper.make_graph([node], "one", [x], [onnx.ValueInfoProto(name="y")])
    domains = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft.nchwc", 1)]
    model = helper.make_model(proto, opset_imports=domains, ir_version=10)
    [y] = _session(model).run(None, {"x": np.ones((1, 4, 1, 1), np.float32)})
    return np.asarray(y).shape[1]


def _session(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


def in_runtime(graph: Graph, feeds: Mapping[str, Array], weights: Weights) -> list[Array]:
    """Return the results of ONNX Runtime for a graph in float64, in float32 and without its optimiser."""
    model = model_of(graph, weights, whole=True)
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.DOUBLE:
            tensor.CopyFrom(
                numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float32), tensor.name)
            )
    for value in (*model.graph.input, *model.graph.output):
        if value.type.tensor_type.elem_type == TensorProto.DOUBLE:
            value.type.tensor_type.elem_type = TensorProto.FLOAT
    single = {
        name: array.astype(np.float32) if array.dtype == np.float64 else array
        for name, array in feeds.items()
    }
    return [np.asarray(array) for array in _session(model).run(None, single)]


def check(rule: Rule, instances: int) -> None:
    """Apply a rule to random instances, in float64 by the reference, and some in ONNX Runtime."""
    for seed in range(instances):
        verify(rule, np.random.default_rng(seed), 8 if seed % 2 else 16)
    for seed in range(instances // 20):
        block = block_here()
        instance = verify(rule, np.random.default_rng(seed), block)
        graph = instance.graph
        wanted = run(graph, instance.feeds, instance.weights, block)
        for site in rule.sites(graph, graph.nodes[instance.anchor], block, "float64"):
            after = graph.rewritten(rule.rewrite(graph, site, block))
            got = in_runtime(after, instance.feeds, instance.weights)
            for left, right in zip(wanted, got, strict=True):
                scale = max(float(np.abs(left).max(initial=0)), 1.0)
                assert left.shape == right.shape, rule.name
                np.testing.assert_allclose(right / scale, left / scale, rtol=0, atol=1e-4, err_msg=rule.name)
