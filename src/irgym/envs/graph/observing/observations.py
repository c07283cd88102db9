"""Observations of graphs, for policies and Gymnasium."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from irgym.core.candidates import CandidateObservation, candidate_view
from irgym.core.graph_observation import GraphObservation
from irgym.core.observation import ObservationView, graph_space, views_of
from irgym.core.target import NUMBERS
from irgym.core.target_observation import TARGET_VIEW
from irgym.envs.graph.actions import SPACE
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Node
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.reference.operators import OPERATORS
from irgym.envs.graph.rewriting.traits import traits_of
from irgym.envs.graph.rules.catalogue import RULES
from irgym.envs.graph.state import Candidates, GraphState

KINDS = ("input", "other", *sorted(OPERATORS))
"""Kinds of nodes in an observed graph: an input of the model, an unknown operator, or a known one."""

NODE = len(KINDS) + 4
"""Features of a node: its kind one-hot, its result's rank and size, its weights' size, its users."""

SIZES = 4
"""Number of a tensor's last dimensions that an edge shows."""

EDGE = SIZES + 1
"""Features of an edge: the tensor's sizes, and its place among the operands."""

STATE = NUMBERS + 2
"""Features of the whole: the target's, and the logarithms of the numbers of operators and candidates."""

TRAITS = traits_of(RULES)
"""Features of each rule; see `traits_of`."""

CANDIDATE = TRAITS.shape[1] + 2
"""Features of a candidate: its rule's traits, the logarithm of its number of sites, and whether these are all
sites of the rule."""

KNOWN = 100_000
"""Limit of the operators in the cache of `Rows`."""

_WIDE = np.pad(TRAITS, ((0, 0), (0, CANDIDATE - TRAITS.shape[1])))

_PLACES = {kind: place for place, kind in enumerate(KINDS)}


def _log(number: float) -> float:
    return math.log2(1 + number) / 16


class _Row(NamedTuple):
    """Features of an operator that do not depend on the users of its result.

    Attributes:
        node: The operator.
        kind: Its place in `KINDS`.
        numbers: Its result's rank and size, its weights' size; float32 as bytes, which are quick to join.
        operands: Its operands, weights excluded.
        edges: Features of the edges of these operands; float32 as bytes.
    """

    node: Node
    kind: int
    numbers: bytes
    operands: tuple[str, ...]
    edges: bytes


class Rows:
    """Operator features, cached across similar graphs.

    The cache is keyed by node: a rewrite that turns an operand into a weight replaces the node.
    """

    def __init__(self) -> None:
        """Start with an empty cache."""
        self._known: dict[int, _Row] = {}

    def of(self, graph: Graph) -> list[_Row]:
        """Return the features of a graph's operators, in their order."""
        if len(self._known) > KNOWN:
            self._known.clear()
        rows = [self._known.get(id(node)) for node in graph.nodes.values()]
        return [row or self._new(graph, node) for row, node in zip(rows, graph.nodes.values(), strict=True)]

    def _new(self, graph: Graph, node: Node) -> _Row:
        row = self._known[id(node)] = _row(graph, node)  # the row holds the node, so ids are unique
        return row


def _row(graph: Graph, node: Node) -> _Row:
    kind, weights = graph.types.get(node.name), graph.weights
    held = sum(graph.types[value].size for value in node.inputs if value in weights)
    numbers = (len(kind.shape) / 8 if kind else 0.0, _log(kind.size) if kind else 0.0, _log(held))
    operands = [(place, value) for place, value in enumerate(node.inputs) if value and value not in weights]
    edges = [(*_last_sizes(graph.types.get(value)), _log(place)) for place, value in operands]
    return _Row(
        node,
        _PLACES.get(node.operator, 1),
        np.array(numbers, dtype=np.float32).tobytes(),
        tuple([value for _, value in operands]),
        np.array(edges, dtype=np.float32).tobytes(),
    )


def _joined(parts: Iterable[bytes], width: int) -> NDArray[np.float32]:
    return np.frombuffer(b"".join(parts), dtype=np.float32).reshape(-1, width)


def _last_sizes(kind: TensorType | None) -> list[float]:
    last = [_log(size) for size in kind.shape[-SIZES:]] if kind else []
    return [0.0] * (SIZES - len(last)) + last


def _nodes(graph: Graph, kinds: Sequence[int], numbers: Iterable[bytes]) -> NDArray[np.float32]:
    """Return the features of inputs and operators, shape [N, NODE].

    Args:
        graph: The graph.
        kinds: Of its operators; see `_Row`.
        numbers: Of its operators; see `_Row`.
    """
    first = len(graph.inputs)
    nodes = np.zeros((first + len(kinds), NODE), dtype=np.float32)
    nodes[:first, 0] = 1
    if kinds:
        nodes[np.arange(first, len(nodes)), kinds] = 1
        nodes[first:, -4:-1] = _joined(numbers, 3)
        counts = np.array([*map(len, map(graph.users.get, graph.nodes, repeat(())))], dtype=np.float32)
        nodes[first:, -1] = np.log2(1 + counts) / 16
    return nodes


def _places(graph: Graph) -> dict[str, int]:
    """Return the rows of inputs and operators by the values that they make."""
    place = {name: number for number, name in enumerate([*graph.inputs, *graph.nodes])}
    for value in graph.producers.keys() - graph.nodes.keys():  # later results
        place[value] = place[graph.producers[value]]
    return place


def _links(graph: Graph, operands: Sequence[tuple[str, ...]], place: Mapping[str, int]) -> NDArray[np.int64]:
    """Return the nodes that operands connect, shape [E, 2].

    Args:
        graph: The graph.
        operands: Of its operators; see `_Row`.
        place: See `_places`.
    """
    makers = [*map(place.__getitem__, chain.from_iterable(operands))]
    links = _pairs([*map(len, operands)], makers)[:, ::-1]
    links[:, 1] += len(graph.inputs)
    return np.ascontiguousarray(links)


def _pairs(counts: Sequence[int], others: Sequence[int]) -> NDArray[np.int64]:
    """Return pairs of a place and a number that belongs to it, shape [len(others), 2].

    Args:
        counts: The count of numbers that belong to each place.
        others: The numbers of the first place, then of the second, and so on.
    """
    pairs = np.empty((len(others), 2), dtype=np.int64)
    pairs[:, 0] = np.repeat(np.arange(len(counts)), counts)
    pairs[:, 1] = others
    return pairs


def _whole(task: Any, state: GraphState, candidates: int) -> NDArray[np.float32]:
    numbers = (*task.target.numbers, _log(len(state.graph.nodes)), _log(candidates))
    return np.array(numbers, dtype=np.float32)


def _candidates(candidates: Candidates) -> NDArray[np.float32]:
    """Return the features of candidates, shape [C, CANDIDATE]."""
    rules = [rule for rule, _ in candidates]
    rows = _WIDE.take(rules, axis=0) if rules else np.empty((0, CANDIDATE), dtype=np.float32)
    if candidates:
        last = dict(zip(rules, range(len(rules)), strict=True))
        rows[:, -2] = np.log2(np.fromiter(map(len, candidates.values()), np.int64, len(rules))) / 4
        rows[list(last.values()), -1] = 1  # a rule's last candidate covers all of its sites
    return rows


def graph_of(task: Any, state: GraphState) -> GraphObservation:
    """Return the graph: inputs, then operators; the members of a candidate are the operators of its match."""
    graph = state.graph.measured
    candidates: Candidates = task.candidates(state)
    rows: list[_Row] = task.rows.of(graph)
    _, kinds, numbers, operands, edges = zip(*rows, strict=True) if rows else [()] * len(_Row._fields)
    place = _places(graph)
    about = [
        sites[0].members
        if len(sites) == 1
        else [*dict.fromkeys(chain.from_iterable([site.members for site in sites]))]
        for sites in candidates.values()
    ]
    members = _pairs([*map(len, about)], [*map(place.__getitem__, chain.from_iterable(about))])
    return GraphObservation(
        _nodes(graph, kinds, numbers),
        _joined(edges, EDGE).copy(),
        _links(graph, operands, place),
        _whole(task, state, len(candidates)),
        _candidates(candidates),
        members,
    )


def counts_of(task: Any, state: GraphState) -> CandidateObservation:
    """Return the logarithmic count of operators of each kind, and the features of candidates."""
    counts = np.zeros(len(KINDS), dtype=np.float32)
    counts[0] = len(state.graph.inputs)
    for node in state.graph.nodes.values():
        counts[_PLACES.get(node.operator, 1)] += 1
    candidates: Candidates = task.candidates(state)
    whole = np.concatenate([np.log1p(counts), _whole(task, state, len(candidates))])
    return CandidateObservation(whole, _candidates(candidates))


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
