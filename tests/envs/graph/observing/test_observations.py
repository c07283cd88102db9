"""The default observation, beside the same written as plainly as possible."""

import copy
import math

import numpy as np
import pytest
from small_graphs import BLOCK, graph_of

from irgym.core.graph_observation import GraphObservation
from irgym.envs.graph.environment import GRAPH
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Node, node
from irgym.envs.graph.observing import table as tables
from irgym.envs.graph.observing.table import EDGE, KINDS, NODE, Table
from irgym.envs.graph.rewriting.sites import Finder
from irgym.envs.graph.rules.catalogue import RULES
from irgym.envs.graph.state import Candidates, GraphState

TINY = [*GRAPH.dataset("tiny").train, *GRAPH.dataset("tiny").test]


def logarithm(number: float) -> float:
    return math.log2(1 + number) / 16


def places_of(graph: Graph) -> dict[str, int]:
    """Return the row of each input and of each value that an operator makes."""
    places = {value: row for row, value in enumerate(graph.inputs)}
    for row, made in enumerate(graph.nodes.values(), start=len(graph.inputs)):
        places.update(dict.fromkeys(made.results, row))
    return places


def nodes_of(graph: Graph) -> np.ndarray:
    rows = np.zeros((len(graph.inputs) + len(graph.nodes), NODE))
    rows[: len(graph.inputs), 0] = 1
    for row, made in zip(rows[len(graph.inputs) :], graph.nodes.values(), strict=True):
        row[KINDS.index(made.operator) if made.operator in KINDS else 1] = 1
        kind = graph.types.get(made.name)
        held = sum(graph.types[value].size for value in made.inputs if value in graph.weights)
        users = len(graph.users.get(made.name, ()))
        row[-4:] = [
            len(kind.shape) / 8 if kind else 0,
            logarithm(kind.size) if kind else 0,
            logarithm(held),
            logarithm(users),
        ]
    return rows


def edges_of(graph: Graph) -> tuple[np.ndarray, list[tuple[int, int]]]:
    places, edges, links = places_of(graph), [], []
    for made in graph.nodes.values():
        for number, value in enumerate((*made.inputs, *made.captured)):
            if value and value not in graph.weights:
                kind = graph.types.get(value)
                last = [logarithm(size) for size in kind.shape[-4:]] if kind else []
                edges.append([*[0] * (4 - len(last)), *last, logarithm(number)])
                links.append((places[value], places[made.name]))
    return np.reshape(edges, (-1, EDGE)), links


def members_of(graph: Graph, candidates: Candidates) -> list[tuple[int, int]]:
    places = places_of(graph)
    pairs = {
        (number, places[name])
        for number, sites in enumerate(candidates.values())
        for site in sites
        for name in site.match.found
    }
    return sorted(pairs)


def assert_shows(graph: Graph, candidates: Candidates, seen: GraphObservation) -> None:
    np.testing.assert_allclose(seen.nodes, nodes_of(graph), rtol=1e-6)
    edges, links = edges_of(graph)
    np.testing.assert_allclose(seen.edges, edges, rtol=1e-6)
    assert [*map(tuple, seen.links.tolist())] == links
    assert sorted(map(tuple, seen.members.tolist())) == members_of(graph, candidates)


@pytest.mark.parametrize("known", [tables.KNOWN, 0], ids=["kept", "forgotten"])
@pytest.mark.parametrize("uri", TINY)
def test_walks(uri: str, known: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tables, "KNOWN", known)
    task, rng = GRAPH.task(uri), np.random.default_rng(3)
    state = task.initial()
    for _ in range(15):
        seen = task.observe(state)
        assert isinstance(seen, GraphObservation)
        assert_shows(state.graph.measured, state.candidates, seen)
        pairs = task.mask(state).candidates
        if not pairs:
            break
        kind, name = pairs[rng.integers(len(pairs))]
        state = task.step(state, task.space.parse(f"{task.space.kinds[kind].name}@{name}"))


def shown(graph: Graph) -> GraphObservation:
    state = GraphState(graph, graph.digest, Finder(RULES, BLOCK).all(graph))
    table = Table()
    seen = table.show(graph)
    members = table.members(seen, state.candidates)
    observation = GraphObservation(seen.nodes, seen.edges, seen.links, members=members)
    assert_shows(graph, state.candidates, observation)
    return observation


def test_an_operator_with_several_results_and_one_that_uses_a_value_twice():
    nodes = [
        node("Split", ["x", "parts"], ["a", "b"], axis=0),
        node("Mul", ["b", "b"], ["c"]),
        node("Sub", ["a", "c"], ["d"]),
        node("Sub", ["b", "d"], ["y"]),
    ]
    seen = shown(graph_of(nodes, {"x": (4, 3)}, {"parts": np.array([2, 2])}, ["y"]))
    assert seen.links.tolist() == [[0, 1], [1, 2], [1, 2], [1, 3], [2, 3], [1, 4], [3, 4]]
    users = np.round(np.exp2(16 * seen.nodes[1:, -1]) - 1)
    assert users.tolist() == [1, 1, 1, 0], "a user counts once, and only the first result counts"


def test_a_value_that_a_subgraph_uses_has_an_edge():
    looks = Node("Tanh", ("x",), ("y",), captured=("z",))
    graph = graph_of([node("Relu", ["x"], ["z"]), looks], {"x": (2, 3)}, {}, ["y"])
    places = places_of(graph)
    assert [places["z"], places["y"]] in shown(graph).links.tolist()


def test_a_model_without_operators():
    seen = shown(graph_of([], {"x": (2, 3)}, {}, ["x"]))
    assert seen.nodes.shape == (1, NODE) and seen.edges.shape == (0, EDGE) and not len(seen.members)


def test_a_copied_table_shows_other_operators():
    """Operators are told apart as objects: those of a copied task may stand where the original's stood."""
    inputs, relus = {"x": (2, 3)}, [node("Relu", ["x"], ["y"])]
    table = Table()
    table.show(graph_of(relus, inputs, {}, ["y"]))
    copied = copy.deepcopy(table)
    ids = {id(relu) for relu in relus}
    del table, relus
    made = [node("Tanh", ["x"], ["y"]) for _ in range(1000)]
    again = next((tanh for tanh in made if id(tanh) in ids), made[0])
    graph = graph_of([again], inputs, {}, ["y"])
    np.testing.assert_array_equal(copied.show(graph).nodes, Table().show(graph).nodes)
