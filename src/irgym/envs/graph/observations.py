"""What policies see of a graph, and what Gymnasium shows."""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.core.candidates import CandidateObservation, candidate_view
from irgym.core.graph_observation import GraphObservation, graph_space
from irgym.core.observation import ObservationView, views_of
from irgym.core.target import NUMBERS
from irgym.core.target_observation import TARGET_VIEW
from irgym.envs.graph.actions import RULES, SPACE
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.reference.operators import OPERATORS
from irgym.envs.graph.rules.rule import Site
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


@lru_cache(maxsize=1 << 16)
def _of_type(kind: TensorType | None) -> tuple[tuple[float, float], tuple[float, ...]]:
    """Return a tensor's rank and size, and its last sizes, as rows show them."""
    if kind is None:
        return (0.0, 0.0), (0.0,) * SIZES
    last = [_log(size) for size in kind.shape[-SIZES:]]
    return (len(kind.shape) / 8, _log(kind.size)), (*[0.0] * (SIZES - len(last)), *last)


def node_rows(graph: Graph) -> NDArray[np.float32]:
    """Return what is seen of inputs and operators, shape [N, NODE]."""
    first = len(graph.inputs)
    rows = np.zeros((first + len(graph.nodes), NODE), dtype=np.float32)
    rows[:first, 0] = 1
    types, weights, users = graph.types, graph.weights, graph.users
    kinds: list[int] = []
    numbers: list[tuple[float, ...]] = []
    counts: list[tuple[int, int]] = []
    for one in graph.nodes.values():
        kinds.append(_PLACES.get(one.operator, 1))
        numbers.append(_of_type(types.get(one.name))[0])
        held = sum([types[value].size for value in one.inputs if value in weights])
        counts.append((held, len(users.get(one.name, ()))))
    if kinds:
        rows[np.arange(first, len(rows)), kinds] = 1
        rows[first:, -4:-2] = numbers
        rows[first:, -2:] = np.log2(1 + np.array(counts, dtype=np.float64)) / 16
    return rows


def edge_rows(graph: Graph, place: Mapping[str, int]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return what is seen of operands that are no weights, and between which nodes they are.

    Args:
        graph: The graph.
        place: The rows of inputs and operators, by name.

    Returns:
        Shapes [E, EDGE] and [E, 2].
    """
    links: list[tuple[int, int]] = []
    edges: list[tuple[float, ...]] = []
    for name, one in graph.nodes.items():
        here = place[name]
        for operand, value in enumerate(one.inputs):
            maker = place.get(graph.producers.get(value, value))
            if maker is not None:
                links.append((maker, here))
                edges.append((*_of_type(graph.types.get(value))[1], operand))
    rows = np.array(edges, dtype=np.float32).reshape(-1, EDGE)
    rows[:, -1] = np.log2(1 + rows[:, -1]) / 16
    return rows, np.array(links, dtype=np.int64).reshape(-1, 2)


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
    edges, links = edge_rows(graph, place)
    candidates: Mapping[tuple[int, str], tuple[Site, ...]] = task.candidates(state)
    pairs = tuple((rule + 1, name) for rule, name in candidates)
    members = [
        (number, place[name])
        for number, sites in enumerate(candidates.values())
        for name in dict.fromkeys([name for site in sites for name in site.members])
    ]
    return GraphObservation(
        node_rows(graph),
        edges,
        links,
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
    pairs = tuple((rule + 1, name) for rule, name in task.candidates(state))
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
