"""Which whole numbers an input may hold, from what a model does with it.

Numbers that choose rows of a table are below its length, and a mask is 0 or 1. An input's values are followed
through operators that pass them on unchanged.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import onnx
from onnx import numpy_helper

# What passes values on: the place of the input that it passes on is 0.
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
# What asks of values only which is which, or nothing: any range will do.
_UNCONCERNED = {"ArgMax", "ArgMin", "Shape", "Size"}
_HARMLESS = _COMPARISONS | _UNCONCERNED


def derived_range(
    model: onnx.ModelProto, name: str, free: tuple[int, int] = (0, 2)
) -> tuple[int, int] | None:
    """Return the least value of an input of whole numbers and the one after the greatest; None: not known.

    - Where it chooses in tables, it is below the length of the shortest one.
    - Where it is only compared, made truth values of, subtracted from a constant, or multiplied with itself
      or with computed values, it is a mask: 0 or 1.
    - Where it is only passed on, it may hold any number.

    Where anything else happens to it, nothing is known.

    Args:
        model: Its shapes need not be known.
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
    """Say whether an input of whole numbers chooses in tables, where negative ones count from the end."""
    found = _followed(model, name)
    return found is not None and bool(found.bounds) and not found.multiplied


@dataclass(frozen=True)
class _Found:
    """What becomes of an input.

    Attributes:
        bounds: Lengths of the tables in which it chooses.
        multiplied: Whether it is multiplied with itself or with computed values.
        masks: Whether anything else is done with it than to choose or to be passed on.
    """

    bounds: list[int]
    multiplied: bool
    masks: bool


def _followed(model: onnx.ModelProto, name: str) -> _Found | None:
    """Follow an input through a model; None where something happens to it of which nothing is known."""
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
    """A model's values by their names: who uses them, and which are constant.

    Args:
        model: The model.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        self._graph = model.graph
        self._shapes: dict[str, tuple[int, ...]] = {
            tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer
        }
        self._tensors = {one.name: one for one in model.graph.initializer if prod(one.dims) == 1}
        known = {value.name: value for value in (*model.graph.value_info, *model.graph.output)}
        inputs = {value.name: value for value in model.graph.input}
        self._sizes = {key: _shape(value) for key, value in (known | inputs).items() if _fixed(value)}
        for node in model.graph.node:
            if node.op_type == "Constant":
                shape = next((tuple(one.t.dims) for one in node.attribute if one.name == "value"), ())
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
        """Say what a node does with a value.

        Args:
            node: The node.
            place: Which of its inputs the value is; -1: one of a graph inside of it.
            as_weight: Whether the value is a weight by now, which chooses no rows: a float or a product.

        Returns:
            The length of the table that it chooses in; `end` where it makes something else of it; `pass`
            where it passes it on, `weight` where it does so as a weight; `product` where it multiplies it
            with what may be the same input; None where nobody can tell.
        """
        kind = node.op_type if node.domain in ("", "ai.onnx") and place >= 0 else ""
        on = "weight" if as_weight else "pass"
        if kind == "Cast":
            to = next(one.i for one in node.attribute if one.name == "to")
            if to == onnx.TensorProto.BOOL:
                return "end"
            return "weight" if to in _FLOATS else on
        if kind in _PASSING and (place == 0 or kind == "Concat"):
            return on
        if kind in _LOOKUPS and place == 0:
            return on  # it is what is chosen from
        if kind in _INDEXED and place == 1 and not as_weight:
            return self._length(node)
        if kind == "OneHot" and place == 0 and not as_weight:
            return self._number(node.input[1])
        if kind in _HARMLESS or (kind == "Where" and place == 0):
            return "end"
        if as_weight and kind == "Sub" and place == 1 and node.input[0] in self._shapes:
            return "end"  # 1 - mask
        if kind == "Mul" and node.input[1 - place] not in self._shapes:
            return "end" if as_weight else "product"  # a number times constants is a position or a time
        if as_weight and kind == "ReduceSum" and place == 0:
            return "end"  # how many are not masked
        return None

    def _length(self, node: onnx.NodeProto) -> int | None:
        """Return the length of the table that a node chooses in; None where it is not known."""
        shape = self._shape_of(node.input[0])
        if not shape:
            return None
        if not node.op_type.endswith("ND"):
            return shape[next((one.i for one in node.attribute if one.name == "axis"), 0)]
        batch = next((one.i for one in node.attribute if one.name == "batch_dims"), 0)
        indices = self._shape_of(node.input[1])
        return min(shape[batch : batch + indices[-1]], default=None) if indices else None

    def _shape_of(self, value: str) -> tuple[int, ...] | None:
        return self._shapes.get(value) or self._sizes.get(value)

    def _number(self, value: str) -> int | None:
        """Return a constant that is one number; None for anything else."""
        tensor = self._tensors.get(value)
        return None if tensor is None else int(numpy_helper.to_array(tensor).item())


def _names_inside(node: onnx.NodeProto) -> set[str]:
    """Return the names that the graphs inside of a node use."""
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
