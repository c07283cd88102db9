"""Construction of random tensor graphs from few small operators, with broadcasting and shared values."""

from typing import Any

import numpy as np

from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Attribute, Node
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Literal, Weight, literal
from irgym.envs.graph.reference.calls import OperatorError
from irgym.envs.graph.reference.operators import evaluate, types_of

Rng = np.random.Generator
SIZES = (1, 2, 2, 3)

MOVES = frozenset(
    {
        "Reshape",
        "Split",
        "Slice",
        "Gather",
        "Squeeze",
        "Unsqueeze",
        "Expand",
        "ReduceSum",
        "ReduceMax",
        "ReduceMean",
    }
)
"""Operators whose operands after the first may have another type."""


class Maker:
    """Makes a graph node by node, from random values."""

    def __init__(self, rng: Rng) -> None:
        self.rng = rng
        self.types: dict[str, TensorType] = {}
        self.weights: dict[str, Weight] = {}
        self.inputs: list[str] = []
        self.nodes: list[Node] = []
        for _ in range(4):
            self.leaf(self._shape())

    def _shape(self) -> tuple[int, ...]:
        return tuple(int(self.rng.choice(SIZES)) for _ in range(int(self.rng.integers(0, 5))))

    def leaf(self, shape: tuple[int, ...], *, whole: bool = True) -> str:
        """Return a new input or weight; sometimes of integers, if `whole`."""
        name = f"v{len(self.types)}"
        kind = "int64" if whole and self.rng.random() < 0.1 else "float64"
        self.types[name] = TensorType(kind, shape)
        if self.rng.random() < 0.5:
            array = np.asarray(
                self.rng.integers(-1, 2, shape) if self.rng.random() < 0.4 else self.rng.normal(size=shape)
            )
            self.weights[name] = literal(array, kind)
        else:
            self.inputs.append(name)
        return name

    def constant(self, *numbers: int) -> str:
        """Return a new weight of integers."""
        name = f"v{len(self.types)}"
        self.weights[name] = literal(numbers, "int64")
        self.types[name] = self.weights[name].type
        return name

    def weight(self, *shape: int) -> str:
        """Return a new weight of random numbers."""
        return self.literal(self.rng.normal(size=shape))

    def number(self, value: float) -> str:
        """Return a new weight of one number."""
        return self.literal(np.asarray(value))

    def literal(self, array: Any) -> str:
        """Return a new weight with given elements."""
        name = f"v{len(self.types)}"
        self.weights[name] = literal(array, "float64")
        self.types[name] = self.weights[name].type
        return name

    def any(self, rank: int = 0) -> str:
        """Return a value with at least a rank; later values are more likely."""
        fit = [name for name, kind in self.types.items() if len(kind.shape) >= rank and not self._whole(name)]
        if not fit or self.rng.random() < 0.15:
            return self.leaf((*self._shape(), *(2 for _ in range(rank))))
        place = len(fit) - 1 - int(len(fit) * self.rng.random() ** 2)
        return fit[place]

    def _whole(self, name: str) -> bool:
        return self.types[name].dtype == "int64" and name in self.weights

    def axis(self, name: str) -> int:
        """Return an axis of a value, counted from the front or from the end."""
        rank = len(self.types[name].shape)
        return int(self.rng.integers(-rank, rank))

    def add(
        self, operator: str, inputs: list[str], outputs: int = 1, **attributes: Attribute
    ) -> list[str] | None:
        """Add a node and return its results; None if its operands do not fit."""
        if not self._in_range(operator, inputs, attributes):
            return None
        known = [
            weight.array if isinstance(weight := self.weights.get(name), Literal) else None for name in inputs
        ]
        given = [self.types[name] for name in inputs]
        if len({kind.dtype for kind in given[: 1 if operator in MOVES else None]}) > 1:
            return None
        try:
            kinds = types_of(operator, given, attributes, known, outputs)
            arrays = [
                np.ones(kind.shape, kind.dtype) if array is None else array
                for array, kind in zip(known, given, strict=True)
            ]
            evaluate(operator, arrays, attributes, outputs)
        except (OperatorError, ValueError, IndexError):
            return None
        if not all(0 < kind.size <= 200 for kind in kinds):
            return None
        names = [f"v{len(self.types) + place}" for place in range(outputs)]
        self.types.update(zip(names, kinds, strict=True))
        self.nodes.append(Node(operator, tuple(inputs), tuple(names), tuple(sorted(attributes.items()))))
        return names

    def _in_range(self, operator: str, inputs: list[str], attributes: dict[str, Attribute]) -> bool:
        """Say whether axes are in range; the reference accepts more than ONNX allows."""
        rank = len(self.types[inputs[0]].shape)
        axes = [attributes["axis"]] if "axis" in attributes else []
        place = 3 if operator == "Slice" else 1 if operator.startswith("Reduce") else len(inputs)
        if place < len(inputs):
            weight = self.weights.get(inputs[place])
            axes += weight.array.ravel().tolist() if isinstance(weight, Literal) else [99]
        return all(isinstance(axis, int) and -rank <= axis < rank for axis in axes)

    def same_type(self, name: str) -> str:
        """Return another value of the same type, a new one if necessary."""
        others = [other for other, kind in self.types.items() if kind == self.types[name] and other != name]
        if others and self.rng.random() < 0.6:
            return others[int(self.rng.integers(len(others)))]
        return self.leaf(self.types[name].shape)

    def graph(self) -> Graph:
        """Return the graph of the nodes so far. Unused values are outputs, and some others."""
        used = {value for node in self.nodes for value in node.inputs}
        made = [value for node in self.nodes for value in node.outputs]
        outputs = [name for name in made if name not in used or self.rng.random() < 0.1]
        return Graph.of(self.nodes, self.types, self.weights, self.inputs, outputs, [("", 20)])

    def feeds(self) -> dict[str, Any]:
        """Return random inputs of the graph."""
        kinds = {name: self.types[name] for name in self.inputs}
        return {
            name: np.asarray(
                self.rng.normal(size=kind.shape)
                if kind.dtype == "float64"
                else self.rng.integers(-2, 3, kind.shape)
            )
            for name, kind in kinds.items()
        }
