"""Evaluation of graphs in float64, by the reference operators."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.envs.graph.ir.functions import FUNCTIONS
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Attribute, Node
from irgym.envs.graph.ir.weights import Computed, Literal, Stored, Weight, Weights
from irgym.envs.graph.reference.operators import evaluate

Array = NDArray[Any]

SINGLE, DOUBLE = 1, 11
"""ONNX's numbers of float32 and float64."""


class Doubles(Weights):
    """Weights in float64.

    Args:
        weights: The weights of the original model.
    """

    def __init__(self, weights: Weights) -> None:
        super().__init__({})
        self._of = weights

    def array(self, weight: Weight) -> Array:
        """Return the array of a weight; computed weights are computed in float64 too."""
        if isinstance(weight, Stored | Literal):
            return doubled(self._of.array(weight))
        arguments = [
            self.array(argument) if isinstance(argument, Stored | Literal | Computed) else argument
            for argument in weight.arguments
        ]
        return doubled(np.asarray(FUNCTIONS[weight.function].array(*arguments)))


def doubled(array: Array) -> Array:
    """Return float32 numbers in float64, and others unchanged."""
    return array.astype(np.float64) if array.dtype == np.float32 else array


def computed(graph: Graph, weights: Weights, feeds: Mapping[str, Array], block: int) -> list[Array]:
    """Return the results of a graph, and check the types of all values.

    Args:
        graph: The graph.
        weights: Its weights, as `Doubles`.
        feeds: Its inputs, in float64.
        block: Channels of a block, for operators of the blocked layout.

    Raises:
        OperatorError: The reference does not support an operator.
        AssertionError: A value has another type than in the graph.
    """
    values = dict(feeds)

    def value(name: str) -> Array | None:
        if not name:
            return None
        return values[name] if name in values else weights.array(graph.weights[name])

    for node in graph.order:
        operands = [value(name) for name in node.inputs]
        results = evaluate(node.operator, operands, _attributes(node), len(node.outputs), block=block)
        for name, array in zip(node.outputs, results, strict=True):
            if not name:
                continue
            values[name] = doubled(array)
            said = graph.types.get(name)
            found = (str(values[name].dtype), array.shape)
            if said is not None:
                wanted = (said.dtype.replace("float32", "float64"), said.shape)
                assert found == wanted, f"{name} is said to be {wanted}, and is {found}"
    return [np.asarray(value(name)) for name in graph.outputs]


def _attributes(node: Node) -> dict[str, Attribute]:
    """Return the attributes of a node; casts to float32 become casts to float64."""
    attributes = dict(node.attributes)
    if node.operator == "Cast" and attributes.get("to") == SINGLE:
        attributes["to"] = DOUBLE
    return attributes
