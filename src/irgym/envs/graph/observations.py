"""What policies see of a graph, and what Gymnasium shows."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.core.candidates import CandidateObservation, candidate_view
from irgym.core.graph_observation import GraphObservation, graph_space
from irgym.core.observation import ObservationView, views_of
from irgym.core.target import NUMBERS
from irgym.core.target_observation import TARGET_VIEW
from irgym.envs.graph.actions import RULES, SPACE
from irgym.envs.graph.ir.graph import Graph, Node
from irgym.envs.graph.reference.operators import OPERATORS
from irgym.envs.graph.state import GraphState

KINDS = ("input", "other", *sorted(OPERATORS))
"""What a node of an observed graph is: an input of the model, an operator that is not known, or which one."""

NODE = len(KINDS) + 4
"""Numbers for each node: its kind one-hot, its result's rank and size, its weights' size, its users."""

SIZES = 4
"""Dimensions of a tensor that an edge shows, the last ones."""

EDGE = SIZES + 1
"""Numbers for each edge: the tensor's sizes, and the place among the operands."""

STATE = NUMBERS + 2
"""Numbers for the whole: the target's, the number of operators, and that of candidates; by logarithm."""

CANDIDATE = len(RULES)
"""Numbers for each candidate: its rule, one-hot."""

_PLACES = {kind: place for place, kind in enumerate(KINDS)}


def _log(number: float) -> float:
    return math.log2(1 + number) / 16


def node_row(graph: Graph, one: Node) -> NDArray[np.float32]:
    """Return what is seen of an operator, shape [NODE]."""
    row = np.zeros(NODE, dtype=np.float32)
    row[_PLACES.get(one.operator, 1)] = 1
    kind = graph.types.get(one.name)
    weights = sum(graph.weights[value].type.size for value in one.inputs if value in graph.weights)
    users = len(graph.users.get(one.name, ()))
    row[-4:] = (
        (len(kind.shape) / 8, _log(kind.size), _log(weights), _log(users))
        if kind
        else (0, 0, _log(weights), 0)
    )
    return row


def edge_row(graph: Graph, value: str, place: int) -> list[float]:
    """Return what is seen of an operand, [EDGE] numbers."""
    kind = graph.types.get(value)
    sizes = [_log(size) for size in kind.shape[-SIZES:]] if kind else []
    return [0.0] * (SIZES - len(sizes)) + sizes + [_log(place)]


def _whole(task: Any, state: GraphState, candidates: int) -> NDArray[np.float32]:
    numbers = (*task.target.numbers, _log(len(state.graph.nodes)), _log(candidates))
    return np.array(numbers, dtype=np.float32)


def _rules(pairs: tuple[tuple[int, str], ...]) -> NDArray[np.float32]:
    rows = np.zeros((len(pairs), CANDIDATE), dtype=np.float32)
    rows[np.arange(len(pairs)), [kind - 1 for kind, _ in pairs]] = 1
    return rows


def graph_of(task: Any, state: GraphState) -> GraphObservation:
    """Return the graph: inputs, then operators; a candidate is about the operators that its rule matches."""
    graph = state.graph
    names = [*graph.inputs, *graph.nodes]
    place = {name: number for number, name in enumerate(names)}
    nodes = np.zeros((len(names), NODE), dtype=np.float32)
    nodes[: len(graph.inputs), 0] = 1
    for number, one in enumerate(graph.nodes.values(), start=len(graph.inputs)):
        nodes[number] = node_row(graph, one)
    links: list[tuple[int, int]] = []
    edges: list[list[float]] = []
    for name, one in graph.nodes.items():
        for operand, value in enumerate(one.inputs):
            maker = graph.producers.get(value, value)
            if maker in place:
                links.append((place[maker], place[name]))
                edges.append(edge_row(graph, value, operand))
    sites = task.named(state)
    pairs = tuple((rule + 1, name) for rule, name in sites)
    members = [
        (number, place[name])
        for number, site in enumerate(sites.values())
        for name in sorted(site.match.found)
    ]
    return GraphObservation(
        nodes,
        np.array(edges, dtype=np.float32).reshape(-1, EDGE),
        np.array(links, dtype=np.int64).reshape(-1, 2),
        _whole(task, state, len(pairs)),
        _rules(pairs),
        np.array(members, dtype=np.int64).reshape(-1, 2),
    )


def counts_of(task: Any, state: GraphState) -> CandidateObservation:
    """Return how many operators of each kind there are, by logarithm, and the rule of each candidate."""
    counts = np.zeros(len(KINDS), dtype=np.float32)
    counts[0] = len(state.graph.inputs)
    for one in state.graph.nodes.values():
        counts[_PLACES.get(one.operator, 1)] += 1
    pairs = tuple((rule + 1, name) for rule, name in task.named(state))
    whole = np.concatenate([np.log1p(counts), _whole(task, state, len(pairs))])
    return CandidateObservation(whole, _rules(pairs))


VIEWS = views_of(
    ObservationView(
        "graph",
        f"operators [N, {NODE}], operands [E, {EDGE}], the whole [{STATE}], candidates [C, {CANDIDATE}]; "
        "Gymnasium shows operators and operands",
        lambda: graph_space(NODE, EDGE, -np.inf, np.inf),
        graph_of,
        shown=lambda seen: seen.instance,
    ),
    candidate_view(SPACE, counts_of, len(KINDS) + STATE, CANDIDATE, -np.inf, np.inf, "counts"),
    TARGET_VIEW,
)
"""The observations, the default first."""
