"""Rules on random instances: in numpy, and in ONNX Runtime without optimisation."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from small_graphs import BLOCK, in_float32, run_in_ort

from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Node
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Weights, weight_of
from irgym.envs.graph.ir.writing import model_of
from irgym.envs.graph.rewriting.rule import Rule
from irgym.envs.graph.rewriting.verification import run, verify

Array = NDArray[Any]

LATEST = (("", 23),)
"""Operator set of instances: the first with Attention."""


def verify_often(rule: Rule, seeds: int = 60) -> None:
    """Verify a rule on random instances in numpy, in float64, with blocks of 8 and of 16.

    Of 3,602 wrong variants of rules (not Winograd's) that 200 instances find, 60 find all.
    """
    for seed in range(seeds):
        verify(rule, np.random.default_rng(seed), 8 if seed % 2 else 16)


def check_in_ort(rule: Rule, seeds: int = 4, allowed: float = 1e-4) -> None:
    """Check that ONNX Runtime computes the same before and after a rule, in float32."""
    for seed in range(seeds):
        instance = in_float32(verify(rule, np.random.default_rng(seed), BLOCK))
        graph = replace(instance.graph, opsets=LATEST)
        before = run_in_ort(graph, instance.weights, instance.feeds)
        for site in rule.sites(graph, graph.nodes[instance.anchor], BLOCK):
            rewritten = graph.rewritten(rule.rewrite(graph, site, BLOCK))
            after = run_in_ort(rewritten, instance.weights, instance.feeds)
            for wanted, got in zip(before, after, strict=True):
                assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
                np.testing.assert_allclose(got, wanted, rtol=allowed, atol=allowed)


def check_blocked_in_ort(rule: Rule, seeds: int = 10) -> None:
    """Check that ONNX Runtime agrees with numpy after a rule, with blocks of this machine's size.

    ONNX Runtime cannot always run the instance itself: it has blocked operators in float32 only.
    """
    block = block_here()
    for seed in range(seeds):
        instance = verify(rule, np.random.default_rng(seed), block)
        graph = instance.graph
        expected = run(graph, instance.feeds, instance.weights, block)
        for site in rule.sites(graph, graph.nodes[instance.anchor], block, "float64"):
            after = graph.rewritten(rule.rewrite(graph, site, block))
            results = run_narrowed(after, instance.feeds, instance.weights)
            for wanted, got in zip(expected, results, strict=True):
                scale = max(float(np.abs(wanted).max(initial=0)), 1.0)
                assert wanted.shape == got.shape, rule.name
                np.testing.assert_allclose(got / scale, wanted / scale, rtol=0, atol=1e-4, err_msg=rule.name)


def run_narrowed(graph: Graph, feeds: Mapping[str, Array], weights: Weights) -> list[Array]:
    """Return the results of a float64 graph in ONNX Runtime, in float32."""
    model = model_of(graph, weights, whole=True)
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.DOUBLE:
            narrow = numpy_helper.to_array(tensor).astype(np.float32)
            tensor.CopyFrom(numpy_helper.from_array(narrow, tensor.name))
    for value in (*model.graph.input, *model.graph.output):
        if value.type.tensor_type.elem_type == TensorProto.DOUBLE:
            value.type.tensor_type.elem_type = TensorProto.FLOAT
    single = {
        name: array.astype(np.float32) if array.dtype == np.float64 else array
        for name, array in feeds.items()
    }
    return [np.asarray(result) for result in _session(model).run(None, single)]


@cache
def block_here() -> int:
    """Return the channels of a block on this machine."""
    node = helper.make_node("ReorderInput", ["x"], ["y"], domain="com.microsoft.nchwc")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 4, 1, 1))
    proto = helper.make_graph([node], "reorder", [x], [onnx.ValueInfoProto(name="y")])
    domains = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft.nchwc", 1)]
    model = helper.make_model(proto, opset_imports=domains, ir_version=10)
    [y] = _session(model).run(None, {"x": np.ones((1, 4, 1, 1), np.float32)})
    return np.asarray(y).shape[1]


def _session(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


def typed_graph(
    nodes: Sequence[Node],
    types: Mapping[str, tuple[int, ...]],
    arrays: Mapping[str, Any],
    outputs: Sequence[str],
    dtype: str = "float32",
) -> Graph:
    """Return a graph; `types` are the shapes of its inputs and of the results of its nodes."""
    weights = {name: weight_of(name, array) for name, array in arrays.items()}
    made = {value for node in nodes for value in node.results}
    kinds = {name: TensorType(dtype, shape) for name, shape in types.items()}
    kinds.update({name: weight.type for name, weight in weights.items()})
    return Graph.of(nodes, kinds, weights, [name for name in types if name not in made], outputs, [("", 20)])
