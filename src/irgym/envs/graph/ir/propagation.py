"""Types and shape constants of models with open sizes, from the inputs on.

Exporters compute shapes in the model: the size of a dimension is read, multiplied, joined with others, and
given to a Reshape. Where such a value is a polynomial of the open sizes, it becomes a weight of `Sizes`, and
the nodes that compute it go. Rules then see shapes as they do where all sizes are fixed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from onnx import AttributeProto, numpy_helper

from irgym.envs.graph.ir.node import Node, Opaque
from irgym.envs.graph.ir.sizes import Open, Undecided
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Literal, Sizes, Weight, sizes_of
from irgym.envs.graph.reference.calls import Call, OperatorError
from irgym.envs.graph.reference.operators import OPERATORS, types_of

Array: TypeAlias = NDArray[Any]

MOST = 64
"""Greatest number of elements of a shape constant."""

WINDOWED = frozenset(
    {"AveragePool", "Conv", "ConvInteger", "ConvTranspose", "LpPool", "MaxPool", "QLinearConv"}
)
"""Operators that do not run unless a window fits."""

FARTHEST = 4096
"""Sizes at which windows are tried."""

MOVES = frozenset(
    {"Concat", "Expand", "Gather", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"}
)
"""Operators that move elements of shapes."""


def _quotient(a: Array, b: Array) -> Array:
    """Return a quotient, which ONNX rounds towards 0; of numbers that are not negative, down."""
    if not ((a >= 0).all() and (b > 0).all()):
        raise Undecided("a quotient of negative sizes")
    return a // b


ARITHMETIC: Mapping[str, Callable[[Array, Array], Array]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": _quotient,
    "Max": np.maximum,
    "Min": np.minimum,
}
"""Operators on two shapes."""


@dataclass
class Propagation:
    """Types and constants, node by node in topological order.

    Attributes:
        types: Types of values; to begin with, those of inputs, of weights and of what has no open sizes.
        weights: Weights; shape constants are added.
        positive: Sizes that are positive wherever the model runs: numbers of windows.
    """

    types: dict[str, TensorType]
    weights: dict[str, Weight]
    positive: set[Open] = field(default_factory=set[Open])

    def kept(self, nodes: Iterable[Node], outputs: Sequence[str]) -> list[Node]:
        """Return the nodes that remain, and note the types of their results.

        Args:
            nodes: The nodes, in topological order.
            outputs: Results of the model, whose nodes remain.
        """
        left: list[Node] = []
        for node in nodes:
            value = None if node.name in outputs else self._value(node)
            if value is not None:
                self.weights[node.name] = value
                self.types[node.name] = value.type
                continue
            self.types.update(self._types(node))
            left.append(node)
        return left

    def complete(self, nodes: Iterable[Node]) -> None:
        """Note the types of results that onnx does not infer: those behind operators of other domains.

        Args:
            nodes: The nodes, in topological order.
        """
        for node in nodes:
            self.types.update(self._types(node))

    def _value(self, node: Node) -> Weight | None:
        """Return what a node computes if it is a shape constant; else None."""
        try:
            found = self._computed(node)
        except (OperatorError, Undecided, IndexError, ValueError, ZeroDivisionError):
            return None
        if found is None or found.size > MOST:
            return None
        return sizes_of(found, self._dtype(node))

    def _dtype(self, node: Node) -> str:
        """Return the element type of a shape constant that a node makes."""
        if node.operator == "Cast":
            return WHOLE[Call(node.operator, dict(node.attributes)).integer("to")]
        kinds = [self.types[value].dtype for value in node.inputs if value in self.weights]
        return kinds[0] if kinds else "int64"

    def _computed(self, node: Node) -> Array | None:
        attributes = _plain(node)
        if node.operator in ("Shape", "Size") and node.inputs[0] in self.types and attributes is not None:
            kind = self.types[node.inputs[0]]
            if node.operator == "Size":
                return np.array(kind.size, object)
            call = Call(node.operator, attributes)
            end = call.integer("end") if "end" in attributes else None
            return np.array(kind.shape[call.integer("start", 0) : end], object)
        given = [self._array(value) if value else None for value in node.inputs]
        if attributes is None or any(array is not None and array.dtype.kind not in "iO" for array in given):
            return None
        if any(array is None and value for array, value in zip(given, node.inputs, strict=True)):
            return None
        known: list[Any] = given
        if node.operator in MOVES:
            return np.asarray(
                OPERATORS[node.operator].meaning(Call(node.operator, attributes), *known), object
            )
        if node.operator == "Cast" and attributes.get("to") in WHOLE:
            return known[0]
        if self._dtype(node) == "float32":
            return None  # quotients of these are not whole
        if node.operator in ARITHMETIC and len(known) == 2:
            return np.asarray(ARITHMETIC[node.operator](*known), object)
        if node.operator == "ReduceProd" and len(known) == 1 and known[0].ndim == 1:
            total = np.asarray(np.multiply.reduce(known[0]), object)
            return total.reshape(1) if attributes.get("keepdims", 1) else total
        return None

    def _array(self, value: str) -> Array | None:
        """Return the elements of a constant; those with open sizes are objects."""
        weight = self.weights.get(value)
        return weight.array if isinstance(weight, Literal | Sizes) else None

    def _types(self, node: Node) -> dict[str, TensorType]:
        """Return the types of a node's results, as far as they are known."""
        known = {value: self.types[value] for value in node.results if value in self.types}
        if len(known) == len(node.results):
            return known
        attributes = _plain(node)
        operands = [self.types.get(value) if value else None for value in node.inputs]
        missing = any(kind is None and value for kind, value in zip(operands, node.inputs, strict=True))
        if node.operator not in OPERATORS or attributes is None or missing:
            return known
        constants = [self._array(value) if value else None for value in node.inputs]
        try:
            kinds = types_of(node.operator, operands, attributes, constants, len(node.outputs), trusted=True)
        except (OperatorError, Undecided, IndexError, ValueError, ZeroDivisionError):
            return known
        if node.operator in WINDOWED:
            self.positive.update(size for size in kinds[0].shape if isinstance(size, Open))
        made = {value: kind for value, kind in zip(node.outputs, kinds, strict=True) if value}
        return {**made, **known}

    def least(self) -> dict[str, int]:
        """Return the least size of each symbol at which every window fits, where that is more than 1."""
        found: dict[str, int] = {}
        for size in self.positive:
            symbols = {atom.name for atom in size.form.symbols()}
            if len(symbols) == 1 and (size.form.least or 0) < 1:
                [name] = symbols
                fits = next((n for n in range(1, FARTHEST) if size.form.at({name: n}) > 0), 1)
                found[name] = max(fits, found.get(name, 1))
        return {name: size for name, size in found.items() if size > 1}


WHOLE = {1: "float32", 6: "int32", 7: "int64"}
"""Element types of shape constants, by ONNX's numbers."""


def _plain(node: Node) -> dict[str, Any] | None:
    """Return a node's attributes, tensors as arrays; None where some are graphs."""
    found: dict[str, Any] = {}
    for name, value in node.attributes:
        if isinstance(value, Opaque) and value.kind != AttributeProto.TENSOR:
            return None
        found[name] = (
            numpy_helper.to_array(AttributeProto.FromString(value.content).t)
            if isinstance(value, Opaque)
            else value
        )
    return found
