"""Graphs in double precision, by the meaning that operators have in numpy."""

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
"""The numbers of float32 and float64 in ONNX."""


class Doubles(Weights):
    """Weights in double precision.

    Args:
        weights: The weights of the model as written.
    """

    def __init__(self, weights: Weights) -> None:
        super().__init__({})
        self._of = weights

    def array(self, weight: Weight) -> Array:
        """Return a weight's array; what is computed is computed in double precision too."""
        if isinstance(weight, Stored | Literal):
            return doubled(self._of.array(weight))
        arguments = [
            self.array(one) if isinstance(one, Stored | Literal | Computed) else one
            for one in weight.arguments
        ]
        return doubled(np.asarray(FUNCTIONS[weight.function].array(*arguments)))


def doubled(array: Array) -> Array:
    """Return single-precision numbers in double precision, and others as they are."""
    return array.astype(np.float64) if array.dtype == np.float32 else array


def computed(graph: Graph, weights: Weights, feeds: Mapping[str, Array], block: int) -> list[Array]:
    """Return what a graph computes, and check the types of all values on the way.

    Args:
        graph: The graph.
        weights: Its weights, as `Doubles`.
        feeds: Its inputs, in double precision.
        block: Channels of a block, for operators of the blocked layout.

    Raises:
        OperatorError: The reference does not know an operator.
        AssertionError: A value is of another type than the graph says.
    """
    values = dict(feeds)

    def value(name: str) -> Array | None:
        if not name:
            return None
        return values[name] if name in values else weights.array(graph.weights[name])

    for one in graph.order:
        operands = [value(name) for name in one.inputs]
        results = evaluate(one.operator, operands, _attributes(one), len(one.outputs), block=block)
        for name, array in zip(one.outputs, results, strict=True):
            if not name:
                continue
            values[name] = doubled(array)
            said = graph.types.get(name)
            found = (str(values[name].dtype), array.shape)
            if said is not None:
                wanted = (said.dtype.replace("float32", "float64"), said.shape)
                assert found == wanted, f"{name} is said to be {wanted}, and is {found}"
    return [np.asarray(value(name)) for name in graph.outputs]


def _attributes(one: Node) -> dict[str, Attribute]:
    """Return a node's attributes; casts to single precision become casts to double precision."""
    attributes = dict(one.attributes)
    if one.operator == "Cast" and attributes.get("to") == SINGLE:
        attributes["to"] = DOUBLE
    return attributes
