"""Inference of the ranges of integer inputs from their uses in a model.

Indices are below the length of the table, and masks are 0 or 1. The analysis follows the values of an input
through operators that pass them on unchanged.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import onnx
from onnx import numpy_helper

from irgym.envs.graph.ir.dense import DEFAULT

# Operators that pass on the values of their first input.
_PASSING = {
    "Concat",
    "DepthToSpace",
    "Expand",
    "Flatten",
    "Identity",
    "Pad",
    "Reshape",
    "Slice",
    "Split",
    "Squeeze",
    "Tile",
    "Transpose",
    "Unsqueeze",
}
_LOOKUPS = {"Gather", "GatherElements", "GatherND"}
_INDEXED = {"Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND"}
_COMPARISONS = {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Not", "And", "Or", "Xor"}
# Operators for which any range will do.
_UNCONCERNED = {"ArgMax", "ArgMin", "Shape", "Size"}
_HARMLESS = _COMPARISONS | _UNCONCERNED


def derived_range(
    model: onnx.ModelProto, name: str, free: tuple[int, int] = (0, 2)
) -> tuple[int, int] | None:
    """Return the half-open range of an integer input; None if it cannot be inferred.

    - An index into tables is below the length of the shortest table.
    - An input that is only compared, cast to Booleans, subtracted from a constant, or multiplied with itself
      or with computed values is a mask: 0 or 1.
    - An input that is only passed on may hold any number.

    After any other use, the range is unknown.

    Args:
        model: The model. Its shapes need not be known.
        name: The input.
        free: The range of an input that may hold any number.
    """
    found = _followed(model, name)
    if found is None:
        return None
    if not found.bounds and not found.masks:
        return free
    return 0, min(found.bounds, default=2)


def wraps(model: onnx.ModelProto, name: str) -> bool:
    """Say whether an integer input is an index into tables, where negative numbers count from the end."""
    found = _followed(model, name)
    return found is not None and bool(found.bounds) and not found.multiplied


@dataclass(frozen=True)
class _Found:
    """Uses of an input.

    Attributes:
        bounds: Lengths of the tables that it indexes.
        multiplied: Whether it is multiplied with itself or with computed values.
        masks: Whether it has other uses than as an index.
    """

    bounds: list[int]
    multiplied: bool
    masks: bool


def _followed(model: onnx.ModelProto, name: str) -> _Found | None:
    """Follow an input through a model; None after a use that the analysis does not know."""
    graph = _Graph(model)
    bounds: list[int] = []
    products: list[onnx.NodeProto] = []
    masks = False
    waiting = [(name, False)]
    seen = set(waiting)
    while waiting:
        value, as_weight = waiting.pop()
        for node, place in graph.uses(value):
            use = graph.use(node, place, as_weight)
            if use is None:
                return None
            if isinstance(use, int):
                bounds.append(use)
            elif use == "product":
                products.append(node)
            elif use == "end":
                masks |= node.op_type not in _UNCONCERNED
            else:
                following = {(output, use == "weight") for output in node.output} - seen
                waiting += sorted(following)
                seen |= following
        if not waiting:
            reached = {reached for reached, _ in seen}
            if not all(reached.issuperset(node.input) for node in products):
                return None
            following = {(output, True) for node in products for output in node.output} - seen
            waiting += sorted(following)
            seen |= following
    return _Found(bounds, bool(products), masks or bool(products))


class _Graph:
    """A model's values by name: their users, and which are constant.

    Args:
        model: The model.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        self._graph = model.graph
        self._shapes: dict[str, tuple[int, ...]] = {
            tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer
        }
        self._tensors = {tensor.name: tensor for tensor in model.graph.initializer if prod(tensor.dims) == 1}
        known = {value.name: value for value in (*model.graph.value_info, *model.graph.output)}
        inputs = {value.name: value for value in model.graph.input}
        self._sizes = {key: _shape(value) for key, value in (known | inputs).items() if _fixed(value)}
        for node in model.graph.node:
            if node.op_type == "Constant":
                shape = next((tuple(entry.t.dims) for entry in node.attribute if entry.name == "value"), ())
                self._shapes[node.output[0]] = shape
            elif node.input and all(not given or given in self._shapes for given in node.input):
                for output in node.output:
                    if output in known and _fixed(known[output]):
                        self._shapes[output] = _shape(known[output])

    def uses(self, value: str) -> Iterator[tuple[onnx.NodeProto, int]]:
        """Yield the nodes that take a value, with its place among their inputs."""
        for node in self._graph.node:
            for place, given in enumerate(node.input):
                if given == value:
                    yield node, place
            if value in _names_inside(node):
                yield node, -1

    def use(self, node: onnx.NodeProto, place: int, as_weight: bool) -> int | str | None:
        """Classify a node's use of a value.

        Args:
            node: The node.
            place: The value's place among its inputs; -1 for a use in a subgraph.
            as_weight: Whether the value has become a factor (a float or a product), which is no index.

        Returns:
            The length of the table that the value indexes; `end` if the results are no longer its values;
            `pass` if it is passed on, `weight` if it is passed on as a factor; `product` if it is multiplied
            with a value that may come from the same input; None if the use is unknown.
        """
        kind = node.op_type if node.domain in DEFAULT and place >= 0 else ""
        on = "weight" if as_weight else "pass"
        if kind == "Cast":
            to = next(entry.i for entry in node.attribute if entry.name == "to")
            if to == onnx.TensorProto.BOOL:
                return "end"
            return "weight" if to in _FLOATS else on
        if kind in _PASSING and (place == 0 or kind == "Concat"):
            return on
        if kind in _LOOKUPS and place == 0:
            return on  # the value is the table
        if kind in _INDEXED and place == 1 and not as_weight:
            return self._length(node)
        if kind == "OneHot" and place == 0 and not as_weight:
            return self._number(node.input[1])
        if kind in _HARMLESS or (kind == "Where" and place == 0):
            return "end"
        if as_weight and kind == "Sub" and place == 1 and node.input[0] in self._shapes:
            return "end"  # 1 - mask
        if kind == "Mul" and node.input[1 - place] not in self._shapes:
            return "end" if as_weight else "product"  # times constants, it is a position or a time
        if as_weight and kind == "ReduceSum" and place == 0:
            return "end"  # the number of unmasked elements
        return None

    def _length(self, node: onnx.NodeProto) -> int | None:
        """Return the length of the table that a node indexes; None if unknown."""
        shape = self._shape_of(node.input[0])
        if not shape:
            return None
        if not node.op_type.endswith("ND"):
            return shape[next((entry.i for entry in node.attribute if entry.name == "axis"), 0)]
        batch = next((entry.i for entry in node.attribute if entry.name == "batch_dims"), 0)
        indices = self._shape_of(node.input[1])
        return min(shape[batch : batch + indices[-1]], default=None) if indices else None

    def _shape_of(self, value: str) -> tuple[int, ...] | None:
        return self._shapes.get(value) or self._sizes.get(value)

    def _number(self, value: str) -> int | None:
        """Return the number in a constant of one element; None for other values."""
        tensor = self._tensors.get(value)
        return None if tensor is None else int(numpy_helper.to_array(tensor).item())


def _names_inside(node: onnx.NodeProto) -> set[str]:
    """Return the names that a node's subgraphs use."""
    found: set[str] = set()
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            for inner in graph.node:
                found |= {*inner.input, *_names_inside(inner)}
    return found


def _shape(value: onnx.ValueInfoProto) -> tuple[int, ...]:
    return tuple(dimension.dim_value for dimension in value.type.tensor_type.shape.dim)


def _fixed(value: onnx.ValueInfoProto) -> bool:
    return value.type.tensor_type.HasField("shape") and all(size > 0 for size in _shape(value))


_FLOATS = {
    onnx.TensorProto.FLOAT,
    onnx.TensorProto.FLOAT16,
    onnx.TensorProto.DOUBLE,
    onnx.TensorProto.BFLOAT16,
}
