"""Graphs: changes, sharing and refusals of rewrites."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from irgym.base.errors import ScheduleError
from irgym.envs.graph.ir.computing import computed
from irgym.envs.graph.ir.graph import Graph, Rewrite
from irgym.envs.graph.ir.node import Node, node
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Weights, literal

ROW = TensorType("float32", (4,))


def graph_of(*nodes: Node, outputs: tuple[str, ...], inputs: tuple[str, ...] = ("x",)) -> Graph:
    names = {value for node in nodes for value in (*node.operands, *node.results)}
    return Graph.of(nodes, dict.fromkeys(names, ROW), {}, inputs, outputs, [("", 20)])


CHAIN = graph_of(
    node("Relu", ["x"], ["a"]),
    node("Tanh", ["a"], ["b"]),
    node("Add", ["a", "b"], ["y"]),
    node("Exp", ["b"], ["unused"]),
    outputs=("y",),
)


def test_nodes_that_no_output_needs_are_left_out():
    assert list(CHAIN.nodes) == ["a", "b", "y"]
    assert CHAIN.users["b"] == ("y",) and CHAIN.producer("unused") is None


def test_a_rewrite_takes_what_nothing_needs_then_with_it():
    after = CHAIN.rewritten(Rewrite(("y",), (node("Abs", ["x"], ["y"]),)))
    assert list(after.nodes) == ["y"] and after.users == {"x": ("y",)}
    assert list(CHAIN.nodes) == ["a", "b", "y"], "the original is as it was"


def test_added_nodes_that_nothing_needs_are_left_out():
    chain = replace(CHAIN)
    _ = chain.order, chain.digests
    added = node("Tanh", ["a"], ["b"]), node("Exp", ["x"], ["e"]), node("Abs", ["e"], ["f"])
    types = {"e": ROW, "f": ROW}
    after = chain.rewritten(Rewrite(("b",), added, types=types))
    assert list(after.nodes) == ["a", "y", "b"] and after.producers.keys() == {"a", "y", "b"}
    assert after.users["x"] == ("a",) and "e" not in after.users
    assert after.digest == chain.digest == pickle.loads(pickle.dumps(after)).digest


def test_untouched_nodes_are_shared():
    after = CHAIN.rewritten(Rewrite(("y",), (node("Mul", ["a", "b"], ["y"]),)))
    assert all(after.nodes[name] is CHAIN.nodes[name] for name in ("a", "b"))


def test_a_value_replaces_another():
    after = CHAIN.rewritten(Rewrite(("b",), replaced={"b": "a"}))
    assert after.nodes["y"].inputs == ("a", "a") and after.users["a"] == ("y",)


def test_a_value_that_is_needed_cannot_go():
    with pytest.raises(ScheduleError, match="b is still needed"):
        CHAIN.rewritten(Rewrite(("b",)))


def test_a_cycle_is_reported():
    after = CHAIN.rewritten(Rewrite(("a",), (node("Relu", ["y"], ["a"]),)))
    with pytest.raises(ScheduleError, match="depend on its result"):
        _ = after.order


def test_values_that_inner_graphs_use_keep_their_names():
    inner = Node("If", ("c",), ("y",), captured=("a",))
    graph = graph_of(node("Relu", ["x"], ["a"]), inner, outputs=("y",), inputs=("x", "c"))
    assert graph.users["a"] == ("y",)
    with pytest.raises(ScheduleError, match="it cannot be replaced"):
        graph.rewritten(Rewrite(("a",), replaced={"a": "x"}))


def test_reaches():
    assert CHAIN.reaches("a", ["y"]) and CHAIN.reaches("b", ["y"])
    assert not CHAIN.reaches("y", ["a", "b"]) and not CHAIN.reaches("b", ["a"])


def test_fresh_names():
    assert CHAIN.fresh("new") == "new"
    assert CHAIN.fresh("a") == "a.2" and CHAIN.fresh("a", ["a.2"]) == "a.3"


def random_graph(rng: np.random.Generator, names: list[str]) -> Graph:
    """Return a random graph; equal random numbers give equal graphs up to the names of values."""
    values = ["x", "z"]
    nodes: list[Node] = []
    for name in names:
        operator, arity = [("Relu", 1), ("Tanh", 1), ("Add", 2), ("Sub", 2)][rng.integers(4)]
        inputs = [values[rng.integers(len(values))] for _ in range(arity)]
        nodes.append(node(operator, inputs, [name]))
        values.append(name)
    return graph_of(*nodes, outputs=(values[-1],), inputs=("x", "z"))


@pytest.mark.parametrize("seed", range(30))
def test_the_digest_does_not_depend_on_names_and_order(seed: int):
    names = [f"v{place}" for place in range(12)]
    first = random_graph(np.random.default_rng(seed), names)
    other = random_graph(np.random.default_rng(seed), [f"w{place}" for place in reversed(range(12))])
    turned = Graph.of(
        reversed([*first.nodes.values()]),
        first.types,
        first.weights,
        first.inputs,
        first.outputs,
        first.opsets,
    )
    assert len({graph.digest for graph in (first, other, turned)}) == 1


def program_of(graph: Graph) -> tuple[object, ...]:
    """Return the computation of a graph as nested tuples, the oracle of the digest."""
    known: dict[str, object] = {name: f"input {place}" for place, name in enumerate(graph.inputs)}
    for made in graph.order:
        known[made.name] = (made.operator, *(known[value] for value in made.inputs))
    return *(known[value] for value in graph.outputs), tuple(
        sorted(repr(known[name]) for name in graph.nodes)
    )


def test_a_repeated_computation_changes_the_digest():
    first, second = node("Relu", ["x"], ["a"]), node("Relu", ["x"], ["b"])
    once = graph_of(first, node("Add", ["a", "a"], ["y"]), outputs=("y",))
    twice = graph_of(first, second, node("Add", ["a", "b"], ["y"]), outputs=("y",))
    named_otherwise = graph_of(second, first, node("Add", ["b", "a"], ["z"]), outputs=("z",))
    assert once.digest != twice.digest == named_otherwise.digest


def test_each_of_very_many_outputs_has_a_digest_of_its_own():
    parts = [f"part{place}" for place in range(600)]
    split = node("Split", ["x"], parts, axis=0)
    assert len({graph_of(split, outputs=(part,)).digest for part in parts}) == len(parts)


def test_equal_digests_mean_equal_graphs():
    graphs = [
        random_graph(np.random.default_rng(seed), [f"v{place}" for place in range(4)]) for seed in range(600)
    ]
    digests = [graph.digest for graph in graphs]
    programs = [program_of(graph) for graph in graphs]
    assert len(set(digests)) == len(set(programs)) > 100
    assert len(set(zip(digests, programs, strict=True))) == len(set(programs))


@pytest.mark.parametrize(
    "changed",
    [
        node("Relu", ["x"], ["y"], axis=2),
        node("Relu", ["x"], ["y"], axis=1, keepdims=0),
        node("Tanh", ["x"], ["y"], axis=1),
        Node("Relu", ("x",), ("y", "more"), (("axis", 1),)),
        Node("com.microsoft.Relu", ("x",), ("y",), (("axis", 1),)),
    ],
)
def test_attributes_outputs_and_domains_change_the_digest(changed: Node):
    first = graph_of(node("Relu", ["x"], ["y"], axis=1), outputs=("y",))
    assert first.digest != graph_of(changed, outputs=("y",)).digest


def test_weights_are_computed_once_and_when_needed():
    left, right = literal([[1.0, 2.0]], "float32"), literal([[3.0]], "float32")
    joined = computed("concat", 1, left, right)
    assert joined.type == TensorType("float32", (1, 3))
    weights = Weights({})
    array = weights.array(computed("multiply", joined, right))
    assert array.tolist() == [[3.0, 6.0, 9.0]] and array.dtype == np.float32
    assert weights.array(joined) is weights.array(computed("concat", 1, left, right))
    assert computed("concat", 1, right, left).digest != joined.digest
