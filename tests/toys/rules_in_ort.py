"""Instances of rules in float32, run in ONNX Runtime."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnxruntime
import pytest

from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Node
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Weights, weight_of
from irgym.envs.graph.ir.writing import model_of
from irgym.envs.graph.rewriting.rule import Rule
from irgym.envs.graph.rewriting.verification import Instance, verify

BLOCK = 16


def verify_often(rule: Rule, seeds: int = 200) -> None:
    for seed in range(seeds):
        verify(rule, np.random.default_rng(seed), BLOCK)


def check_in_ort(rule: Rule, seeds: int = 3, allowed: float = 1e-4) -> None:
    """Assert that ONNX Runtime, which optimises nothing, computes the same before and after a rule."""
    for seed in range(seeds):
        instance = in_float32(verify(rule, np.random.default_rng(seed), BLOCK))
        graph = instance.graph
        before = run_in_ort(graph, instance.weights, instance.feeds)
        for site in rule.sites(graph, graph.nodes[instance.anchor], BLOCK):
            rewritten = graph.rewritten(rule.rewrite(graph, site, BLOCK))
            after = run_in_ort(rewritten, instance.weights, instance.feeds)
            for wanted, got in zip(before, after, strict=True):
                assert got == pytest.approx(wanted, rel=allowed, abs=allowed)


def in_float32(instance: Instance) -> Instance:
    graph = instance.graph
    arrays = {name: _narrow(instance.weights.array(weight)) for name, weight in graph.weights.items()}
    types = {
        name: TensorType(kind.dtype.replace("float64", "float32"), kind.shape)
        for name, kind in graph.types.items()
    }
    weights = {name: weight_of(name, array) for name, array in arrays.items()}
    feeds = {name: _narrow(array) for name, array in instance.feeds.items()}
    narrow = replace(graph, types=types, weights=weights, opsets=(("", 23),))
    return Instance(narrow, feeds, Weights(arrays), instance.anchor)


def _narrow(array: Any) -> Any:
    return np.asarray(array, np.float32) if array.dtype == np.float64 else array


def run_in_ort(graph: Graph, weights: Weights, feeds: Mapping[str, Any]) -> Sequence[Any]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    model = model_of(graph, weights, whole=True).SerializeToString()
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return session.run(None, {name: feeds[name] for name in graph.inputs})


def graph_of(
    nodes: Sequence[Node],
    types: Mapping[str, tuple[int, ...]],
    arrays: Mapping[str, Any],
    outputs: Sequence[str],
    dtype: str = "float32",
) -> Graph:
    """Return a graph; `types` are the shapes of its inputs and of what its nodes make."""
    weights = {name: weight_of(name, array) for name, array in arrays.items()}
    made = {value for node in nodes for value in node.results}
    kinds = {name: TensorType(dtype, shape) for name, shape in types.items()}
    kinds.update({name: weight.type for name, weight in weights.items()})
    return Graph.of(nodes, kinds, weights, [name for name in types if name not in made], outputs, [("", 20)])
