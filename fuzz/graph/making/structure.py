"""Structure of graphs: consistency, isomorphism, and graphs with small differences."""

from collections.abc import Iterator
from dataclasses import replace
from graphlib import TopologicalSorter
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Attribute, Node
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Literal, Weights
from irgym.envs.graph.ir.writing import model_of

Array = NDArray[Any]


def check_structure(graph: Graph) -> None:
    """Check that a graph is consistent: producers and users of values, no circles, no dead nodes.

    Raises:
        AssertionError: The graph is inconsistent.
    """
    made = {value: node.name for node in graph.nodes.values() for value in node.results}
    assert made == dict(graph.producers), "producers are not what makes values"
    assert sum(len(node.results) for node in graph.nodes.values()) == len(made), "a value is made twice"
    used: dict[str, set[str]] = {}
    for node in graph.nodes.values():
        for value in node.operands:
            used.setdefault(value, set()).add(node.name)
            assert value in made or value in graph.weights or value in graph.inputs, f"nothing makes {value}"
    assert used == {value: set(names) for value, names in graph.users.items()}, (
        "users are not who uses values"
    )
    assert all(len(names) == len(set(names)) for names in graph.users.values()), "a user is named twice"
    assert not made.keys() & {*graph.weights, *graph.inputs}, "a node makes an input or a weight"
    for name, node in graph.nodes.items():
        assert name == node.name, f"{name} is called {node.name}"
        assert any(value in used or value in graph.outputs for value in node.results), f"{name} is dead"
    needs = {
        node.name: {made[value] for value in node.operands if value in made} for node in graph.nodes.values()
    }
    assert len(list(TopologicalSorter(needs).static_order())) == len(needs)  # raises CycleError
    for name, weight in graph.weights.items():
        assert graph.types[name] == weight.type, f"the weight {name} is of another type than is said"


def check_types(graph: Graph, weights: Weights) -> int:
    """Compare the types of values with those that ONNX infers, and return their number.

    Raises:
        AssertionError: A type differs.
    """
    model = model_of(graph, weights, whole=False)
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    count = 0
    for value in (*inferred.graph.value_info, *inferred.graph.output):
        kind = value.type.tensor_type
        sizes = [dim.dim_value for dim in kind.shape.dim if dim.HasField("dim_value")]
        if kind.HasField("shape") and len(sizes) == len(kind.shape.dim) and value.name in graph.types:
            found = TensorType(str(helper.tensor_dtype_to_np_dtype(kind.elem_type)), tuple(sizes))
            said = graph.types[value.name]
            assert said == found, f"{value.name} is said to be {said}, and is {found}"
            count += 1
    return count


def same(first: Graph, other: Graph, weights: Weights, *, wired: bool = True) -> bool:
    """Say whether graphs are isomorphic: equal except for names and the order of nodes.

    Both graphs are walked together from the outputs; the order of operands leaves no choice. Weights are
    compared by their elements.

    Args:
        first: A graph.
        other: Another graph.
        weights: The arrays of both.
        wired: Whether it matters which of several equal nodes makes a value. The number of such nodes always
            matters.
    """
    pairs: dict[str, str] = {}
    back: dict[str, str] = {}
    met: set[tuple[str, str]] = set()
    pending = list(zip(first.outputs, other.outputs, strict=True))
    while pending:
        left, right = pending.pop()
        if (left == "") != (right == ""):
            return False
        if left in first.weights or right in other.weights:
            if left not in first.weights or right not in other.weights:
                return False
            if not _equal(weights.array(first.weights[left]), weights.array(other.weights[right])):
                return False
            continue
        if not wired and (left, right) in met:
            continue
        met.add((left, right))
        if wired and (left in pairs or right in back):
            if pairs.get(left) != right or back.get(right) != left:
                return False
            continue
        pairs[left], back[right] = right, left
        a, b = first.producer(left), other.producer(right)
        if a is None or b is None:
            places = [
                graph.inputs.index(name) if name in graph.inputs else name
                for graph, name in ((first, left), (other, right))
            ]
            if a is not b or places[0] != places[1]:
                return False
            continue
        if _described(a) != _described(b):
            return False
        if a.outputs.index(left) != b.outputs.index(right):
            return False
        pending += zip(a.outputs, b.outputs, strict=True)
        pending += zip((*a.inputs, *a.captured), (*b.inputs, *b.captured), strict=True)
    described = [sorted(repr(_described(each)) for each in graph.nodes.values()) for graph in (first, other)]
    return described[0] == described[1]


def _described(node: Node) -> tuple[object, ...]:
    """Return a description of a node without names."""
    return (
        node.operator,
        node.attributes,
        [bool(value) for value in node.inputs],
        len(node.captured),
        [bool(value) for value in node.outputs],
    )


def _equal(first: Array, other: Array) -> bool:
    kinds = (first.dtype, first.shape) == (other.dtype, other.shape)
    return kinds and np.array_equal(
        first.view(np.uint8) if first.ndim else first, other.view(np.uint8) if other.ndim else other
    )


def renamed(graph: Graph, rng: np.random.Generator) -> Graph:
    """Return the graph with other names of values, and its nodes in another order."""
    values = [*graph.producers, *graph.weights, *graph.inputs]
    fixed = {value for node in graph.nodes.values() for value in node.captured}
    names = {value: value if value in fixed else f"other.{place}" for place, value in enumerate(values)}
    names[""] = ""
    nodes = [
        replace(
            node,
            inputs=tuple(names[value] for value in node.inputs),
            outputs=tuple(names[value] for value in node.outputs),
        )
        for node in graph.nodes.values()
    ]
    return Graph.of(
        [nodes[int(place)] for place in rng.permutation(len(nodes))],
        {names[value]: kind for value, kind in graph.types.items() if value in names},
        {names[value]: weight for value, weight in graph.weights.items()},
        [names[value] for value in graph.inputs],
        [names[value] for value in graph.outputs],
        graph.opsets,
    )


def mutants(graph: Graph, weights: Weights, rng: np.random.Generator) -> Iterator[tuple[str, Graph]]:
    """Yield graphs with a change to an attribute, operator, operand or weight, each with a description.

    The graphs need not be valid.
    """
    order = graph.order
    with_attributes = [node for node in order if any(not _opaque(value) for _, value in node.attributes)]
    if with_attributes:
        picked = _pick(rng, with_attributes)
        name, value = _pick(rng, [pair for pair in picked.attributes if not _opaque(pair[1])])
        left = {**dict(picked.attributes), name: _changed(value)}
        yield (
            f"attribute {name} of {picked.name}",
            _with(graph, picked, attributes=tuple(sorted(left.items()))),
        )
    picked = _pick(rng, order)
    yield f"operator of {picked.name}", _with(graph, picked, operator=f"{picked.operator}X")
    picked = _pick(rng, order)
    yield (
        f"an attribute more of {picked.name}",
        _with(graph, picked, attributes=(*picked.attributes, ("zzz", 0))),
    )
    picked = _pick(rng, [node for node in order if len(node.inputs)])
    place = int(rng.integers(len(picked.inputs)))
    others = [
        value for value in graph.types if _is_before(graph, value, picked) and value != picked.inputs[place]
    ]
    if others:
        inputs = (*picked.inputs[:place], _pick(rng, others), *picked.inputs[place + 1 :])
        yield f"operand {place} of {picked.name}", _with(graph, picked, inputs=inputs)
    pairs = [node for node in order if len(set(node.inputs)) > 1]
    if pairs:
        picked = _pick(rng, pairs)
        yield f"operands' order of {picked.name}", _with(graph, picked, inputs=picked.inputs[::-1])
    used = sorted({value for node in order for value in node.inputs if value in graph.weights})
    used = [name for name in used if graph.weights[name].type.size]
    if used:
        name = _pick(rng, used)
        array = weights.array(graph.weights[name]).copy()
        flat = array.reshape(-1).view(np.uint8)
        flat[int(rng.integers(flat.size))] ^= 1
        other = Literal(graph.weights[name].type, array.tobytes())
        if array.dtype != np.bool_:
            yield f"weight {name}", replace(graph, weights={**graph.weights, name: other})


def _pick(rng: np.random.Generator, choices: Any) -> Any:
    return choices[int(rng.integers(len(choices)))]


def _opaque(value: Attribute) -> bool:
    return not isinstance(value, int | float | str | tuple) or value == ()


def _changed(value: Any) -> Any:
    match value:
        case str():
            return f"{value}x"
        case tuple():
            return (*value[:-1], _changed(value[-1]))
        case float():
            return float(np.nextafter(np.float32(value), np.float32(np.inf)))
        case _:
            return value + 1


def _is_before(graph: Graph, value: str, node: Node) -> bool:
    """Say whether a value exists before a node runs, in the order of the graph."""
    maker = graph.producer(value)
    if maker is None:
        return value in graph.weights or value in graph.inputs
    return graph.order.index(maker) < graph.order.index(node)


def _with(graph: Graph, node: Node, **changes: Any) -> Graph:
    nodes = [replace(node, **changes) if kept.name == node.name else kept for kept in graph.nodes.values()]
    return Graph.of(nodes, graph.types, graph.weights, graph.inputs, graph.outputs, graph.opsets)
