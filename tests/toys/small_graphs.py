"""Small tensor graphs, and what ONNX Runtime makes of instances of rules in float32."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnxruntime

from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Node
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Weights, literal
from irgym.envs.graph.ir.writing import model_of
from irgym.envs.graph.reference.operators import types_of
from irgym.envs.graph.rewriting.rule import Rule, Site
from irgym.envs.graph.rewriting.verification import Instance

BLOCK = 16
DOUBLE, SINGLE = 11, 1


def graph_of(
    nodes: Sequence[Node],
    inputs: Mapping[str, tuple[int, ...] | TensorType],
    weights: Mapping[str, Any],
    outputs: Sequence[str],
) -> Graph:
    """Return a graph; inputs given as shapes are of float32, and so are weights of no whole numbers."""
    types = {
        name: kind if isinstance(kind, TensorType) else TensorType("float32", kind)
        for name, kind in inputs.items()
    }
    arrays = {name: np.asarray(value) for name, value in weights.items()}
    own = {
        name: literal(array, "float32" if array.dtype.kind == "f" else str(array.dtype))
        for name, array in arrays.items()
    }
    types.update({name: weight.type for name, weight in own.items()})
    for node in nodes:
        known = [own[name].array if name in own else None for name in node.inputs]
        given = [types.get(name) for name in node.inputs]
        made = types_of(node.operator, given, dict(node.attributes), known, len(node.outputs))
        types.update(zip(node.outputs, made, strict=True))
    return Graph.of(nodes, types, own, list(inputs), outputs, [("", 20)])


def sites_of(rule: Rule, graph: Graph, precision: str = "float32", block: int = BLOCK) -> list[Site]:
    return [
        site
        for node in graph.nodes.values()
        if rule.anchors is None or node.operator in rule.anchors
        for site in rule.sites(graph, node, block, precision)
    ]


def applied(rule: Rule, graph: Graph, place: int = 0) -> Graph:
    return graph.rewritten(rule.rewrite(graph, sites_of(rule, graph)[place], BLOCK))


def operators_of(graph: Graph) -> list[str]:
    return sorted(node.operator for node in graph.nodes.values())


def in_float32(instance: Instance) -> Instance:
    """Return an instance with single in the place of double precision."""
    graph = instance.graph
    arrays = {name: _single(instance.weights.array(weight)) for name, weight in graph.weights.items()}
    types = {
        name: TensorType(kind.dtype.replace("float64", "float32"), kind.shape)
        for name, kind in graph.types.items()
    }
    nodes = {
        name: replace(node, attributes=(("to", SINGLE),)) if node.attributes == (("to", DOUBLE),) else node
        for name, node in graph.nodes.items()
    }
    weights = {name: literal(array, str(array.dtype)) for name, array in arrays.items()}
    feeds = {name: _single(array) for name, array in instance.feeds.items()}
    return Instance(
        replace(graph, nodes=nodes, types=types, weights=weights), feeds, Weights(arrays), instance.anchor
    )


def _single(array: Any) -> Any:
    return np.asarray(array, np.float32) if array.dtype == np.float64 else array


def run_in_ort(graph: Graph, weights: Weights, feeds: Mapping[str, Any]) -> Sequence[Any]:
    settings = onnxruntime.SessionOptions()
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    settings.intra_op_num_threads = 1
    settings.log_severity_level = 3
    model = model_of(graph, weights, whole=True).SerializeToString()
    session = onnxruntime.InferenceSession(model, settings, ["CPUExecutionProvider"])
    return session.run(None, {name: feeds[name] for name in graph.inputs})
