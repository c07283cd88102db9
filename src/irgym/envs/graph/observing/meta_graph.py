"""X-RLflow's observation: the graph, and the whole graph after each candidate.

From He et al., "X-RLflow: Graph Reinforcement Learning for Neural Network Subgraphs Transformation", MLSys
2023: operators one-hot, sizes of tensors at edges, self-loops, and 0 as the global feature. Nothing but its
graph describes a candidate. This observation is for comparison; `graph` shows the same choices in a single
graph.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from irgym.core.graph_observation import GraphObservation
from irgym.core.observation import ObservationView, graph_space
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Node
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.observing.table import KIND_PLACES, KINDS
from irgym.envs.graph.rewriting.transitions import applied
from irgym.envs.graph.state import Candidates, GraphState

SIZES = 4
"""Number of a tensor's last dimensions that an edge shows, padded with 0 in front."""

LARGEST = 4096
"""Divisor of sizes."""


class _Row(NamedTuple):
    """Features of an operator, the same in all graphs that contain it.

    Attributes:
        kind: Its place in `KINDS`.
        operands: Pairs of an operand, weights excluded, and the place of its sizes in `_MetaGraph.sizes`.
    """

    kind: int
    operands: tuple[tuple[str, int], ...]


class _MetaGraph:
    """A disjoint union of graphs.

    Args:
        graphs: The graphs. The features of operators that they share are computed once.
    """

    def __init__(self, graphs: Sequence[Graph]) -> None:
        self.kinds: list[int] = []
        self.links: list[tuple[int, int]] = []
        self.tensors: list[int] = []  # for each link, the place of its tensor's sizes
        self.begins = [0]
        self.sizes: dict[tuple[float, ...], int] = {(0.0,) * SIZES: 0}
        self._rows: dict[int, _Row] = {}
        for graph in graphs:
            self._add(graph)
            self.begins.append(len(self.kinds))

    def _add(self, graph: Graph) -> None:
        names = (*graph.inputs, *graph.nodes)
        place = {name: number for number, name in enumerate(names, start=len(self.kinds))}
        self.kinds += [0] * len(graph.inputs)
        producers, rows = graph.producers, self._rows
        for node in graph.nodes.values():
            row = rows.get(id(node))  # the graphs hold the nodes, so ids are unique
            if row is None:
                row = rows[id(node)] = self._row(graph, node)
            here = len(self.kinds)
            self.kinds.append(row.kind)
            for value, tensor in row.operands:
                self.links.append((place[producers.get(value, value)], here))
                self.tensors.append(tensor)

    def _row(self, graph: Graph, node: Node) -> _Row:
        operands = [value for value in node.inputs if value and value not in graph.weights]
        seen = [(value, _sizes(graph.types.get(value))) for value in operands]
        return _Row(
            KIND_PLACES.get(node.operator, 1),
            tuple((value, self.sizes.setdefault(sizes, len(self.sizes))) for value, sizes in seen),
        )

    def nodes(self) -> NDArray[np.float32]:
        """Return inputs and operators, one-hot, shape [N, len(KINDS)]."""
        nodes = np.zeros((len(self.kinds), len(KINDS)), dtype=np.float32)
        nodes[np.arange(len(nodes)), self.kinds] = 1
        return nodes

    def edges(self) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return edges of operands, then self-loops of zeros, shapes [E, SIZES] and [E, 2]."""
        loops = np.arange(len(self.kinds))
        links = np.array(self.links, dtype=np.int64).reshape(-1, 2)
        tensors = np.array(self.tensors, dtype=np.int64)
        sizes = np.array(list(self.sizes), dtype=np.float32)
        return (
            sizes[np.concatenate([tensors, np.zeros_like(loops)])],
            np.concatenate([links, np.stack([loops, loops], axis=1)]),
        )

    def members(self) -> NDArray[np.int64]:
        """Return pairs of a candidate and a node of its graph, shape [M, 2]; the first graph is of none."""
        first = self.begins[1]
        owners = np.repeat(np.arange(len(self.begins) - 2), np.diff(self.begins[1:]))
        return np.stack([owners, np.arange(first, len(self.kinds))], axis=1)


def _sizes(kind: TensorType | None) -> tuple[float, ...]:
    last = [size / LARGEST for size in kind.shape[-SIZES:]] if kind else []
    return (*[0.0] * (SIZES - len(last)), *last)


def meta_graph_of(task: Any, state: GraphState) -> GraphObservation:
    """Return the graph and the graph after each candidate, whose nodes are the candidate's members.

    The graphs are rewritten, but neither searched for sites nor cached: a policy takes at most one of them,
    and the task's cache is for steps that are taken.
    """
    candidates: Candidates = task.candidates(state)
    after = [applied(task.finder, state, rule, sites)[0] for (rule, _), sites in candidates.items()]
    seen = _MetaGraph([graph.measured for graph in (state.graph, *after)])
    edges, links = seen.edges()
    return GraphObservation(
        seen.nodes(),
        edges,
        links,
        np.zeros(1, dtype=np.float32),
        candidates=np.zeros((len(candidates), 0), dtype=np.float32),
        members=seen.members(),
        present=seen.begins[1],
    )


META_GRAPH = ObservationView(
    "meta-graph",
    f"X-RLflow's: operators [N, {len(KINDS)}] and operands [E, {SIZES}] of the graph and of those after each "
    "candidate; nothing else of candidates; Gymnasium shows operators and operands",
    lambda: graph_space(len(KINDS), SIZES, 0, np.inf),
    meta_graph_of,
    shown=lambda seen: seen.instance,
)
"""The observation."""
