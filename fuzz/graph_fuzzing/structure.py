"""The structure of graphs: whether it is sound, whether two are the same, and graphs that differ a little."""

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
    """Check a graph against itself: what makes and uses each value, that there is no circle, nothing is dead.

    Raises:
        AssertionError: Something does not fit.
    """
    made = {value: one.name for one in graph.nodes.values() for value in one.results}
    assert made == dict(graph.producers), "producers are not what makes values"
    assert sum(len(one.results) for one in graph.nodes.values()) == len(made), "a value is made twice"
    used: dict[str, set[str]] = {}
    for one in graph.nodes.values():
        for value in one.operands:
            used.setdefault(value, set()).add(one.name)
            assert value in made or value in graph.weights or value in graph.inputs, f"nothing makes {value}"
    assert used == {value: set(names) for value, names in graph.users.items()}, (
        "users are not who uses values"
    )
    assert all(len(names) == len(set(names)) for names in graph.users.values()), "a user is named twice"
    assert not made.keys() & {*graph.weights, *graph.inputs}, "a node makes an input or a weight"
    for name, one in graph.nodes.items():
        assert name == one.name, f"{name} is called {one.name}"
        assert any(value in used or value in graph.outputs for value in one.results), f"{name} is dead"
    needs = {
        one.name: {made[value] for value in one.operands if value in made} for one in graph.nodes.values()
    }
    assert len(list(TopologicalSorter(needs).static_order())) == len(needs)  # raises CycleError
    for name, weight in graph.weights.items():
        assert graph.types[name] == weight.type, f"the weight {name} is of another type than is said"


def check_types(graph: Graph, weights: Weights) -> int:
    """Compare the types of values with those that ONNX infers; returns how many it tells.

    Raises:
        AssertionError: One is another.
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


def same(one: Graph, other: Graph, weights: Weights, *, wired: bool = True) -> bool:
    """Say whether graphs are isomorphic: equal but for names and the order in which nodes are kept.

    From the outputs on, operands in their order leave one choice, so both are walked along together. Weights
    are compared by their elements.

    Args:
        one: A graph.
        other: Another.
        weights: The arrays of both.
        wired: Whether it matters which of several nodes that compute the same a value is taken from; how many
            there are always does.
    """
    pairs: dict[str, str] = {}
    back: dict[str, str] = {}
    met: set[tuple[str, str]] = set()
    pending = list(zip(one.outputs, other.outputs, strict=True))
    while pending:
        left, right = pending.pop()
        if (left == "") != (right == ""):
            return False
        if left in one.weights or right in other.weights:
            if left not in one.weights or right not in other.weights:
                return False
            if not _equal(weights.array(one.weights[left]), weights.array(other.weights[right])):
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
        a, b = one.producer(left), other.producer(right)
        if a is None or b is None:
            places = [
                graph.inputs.index(name) if name in graph.inputs else name
                for graph, name in ((one, left), (other, right))
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
    described = [sorted(repr(_described(each)) for each in graph.nodes.values()) for graph in (one, other)]
    return described[0] == described[1]


def _described(one: Node) -> tuple[object, ...]:
    """Return all of a node but names."""
    return (
        one.operator,
        one.attributes,
        [bool(value) for value in one.inputs],
        len(one.captured),
        [bool(value) for value in one.outputs],
    )


def _equal(one: Array, other: Array) -> bool:
    kinds = (one.dtype, one.shape) == (other.dtype, other.shape)
    return kinds and np.array_equal(
        one.view(np.uint8) if one.ndim else one, other.view(np.uint8) if other.ndim else other
    )


def renamed(graph: Graph, rng: np.random.Generator) -> Graph:
    """Return the graph with other names of values, and its nodes kept in another order."""
    values = [*graph.producers, *graph.weights, *graph.inputs]
    fixed = {value for one in graph.nodes.values() for value in one.captured}
    names = {value: value if value in fixed else f"other.{place}" for place, value in enumerate(values)}
    names[""] = ""
    nodes = [
        replace(
            one,
            inputs=tuple(names[value] for value in one.inputs),
            outputs=tuple(names[value] for value in one.outputs),
        )
        for one in graph.nodes.values()
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
    """Return graphs that differ from one in an attribute, an operator, an operand, a weight or an output.

    Each with words for what differs. They need not make sense.
    """
    order = graph.order
    with_attributes = [one for one in order if any(not _opaque(value) for _, value in one.attributes)]
    if with_attributes:
        one = _pick(rng, with_attributes)
        name, value = _pick(rng, [pair for pair in one.attributes if not _opaque(pair[1])])
        left = {**dict(one.attributes), name: _changed(value)}
        yield f"attribute {name} of {one.name}", _with(graph, one, attributes=tuple(sorted(left.items())))
    one = _pick(rng, order)
    yield f"operator of {one.name}", _with(graph, one, operator=f"{one.operator}X")
    one = _pick(rng, order)
    yield f"an attribute more of {one.name}", _with(graph, one, attributes=(*one.attributes, ("zzz", 0)))
    one = _pick(rng, [one for one in order if len(one.inputs)])
    place = int(rng.integers(len(one.inputs)))
    others = [value for value in graph.types if _is_before(graph, value, one) and value != one.inputs[place]]
    if others:
        inputs = (*one.inputs[:place], _pick(rng, others), *one.inputs[place + 1 :])
        yield f"operand {place} of {one.name}", _with(graph, one, inputs=inputs)
    pairs = [one for one in order if len(set(one.inputs)) > 1]
    if pairs:
        one = _pick(rng, pairs)
        yield f"operands' order of {one.name}", _with(graph, one, inputs=one.inputs[::-1])
    used = sorted({value for one in order for value in one.inputs if value in graph.weights})
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


def _is_before(graph: Graph, value: str, one: Node) -> bool:
    """Say whether a value is there before a node is run, in the order of the graph."""
    maker = graph.producer(value)
    if maker is None:
        return value in graph.weights or value in graph.inputs
    return graph.order.index(maker) < graph.order.index(one)


def _with(graph: Graph, one: Node, **changes: Any) -> Graph:
    nodes = [replace(one, **changes) if own.name == one.name else own for own in graph.nodes.values()]
    return Graph.of(nodes, graph.types, graph.weights, graph.inputs, graph.outputs, graph.opsets)
