"""Conversion of graphs from float64 to float32."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from fuzz.graph.making.doubles import DOUBLE, SINGLE
from fuzz.graph.making.odd import Array, cast
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Weights, weight_of


def narrowed(graph: Graph, feeds: Mapping[str, Array]) -> tuple[Graph, dict[str, Array], Weights]:
    """Return a graph with literal weights in float32, with its inputs and weights."""
    arrays = {name: cast(Weights({}).array(weight), "float32") for name, weight in graph.weights.items()}
    kinds = {
        name: TensorType("float32" if kind.dtype == "float64" else kind.dtype, kind.shape)
        for name, kind in graph.types.items()
    }
    to = (("to", DOUBLE),)
    nodes = {
        name: replace(node, attributes=(("to", SINGLE),)) if node.attributes == to else node
        for name, node in graph.nodes.items()
    }
    weights = {name: weight_of(name, array) for name, array in arrays.items()}
    inputs = {name: cast(np.asarray(array), "float32") for name, array in feeds.items()}
    return replace(graph, nodes=nodes, types=kinds, weights=weights), inputs, Weights(arrays)
