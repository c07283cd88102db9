"""Features of operators, kept in arrays from graph to graph.

The graphs of an episode share nearly all of their operators. The features of each operator are computed once
and kept as rows of arrays, from which numpy gathers those of a graph. What is gathered depends on the graph
alone, not on the graphs before it.
"""

import math
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Node
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.observing.growing import Growing, Numbers, runs
from irgym.envs.graph.reference.operators import OPERATORS
from irgym.envs.graph.state import Candidates

KINDS = ("input", "other", *sorted(OPERATORS))
"""Kinds of nodes in an observed graph: an input of the model, an unknown operator, or a known one."""

KIND_PLACES = {kind: place for place, kind in enumerate(KINDS)}
"""The place of each kind."""

NODE = len(KINDS) + 4
"""Features of a node: its kind one-hot, its result's rank and size, its weights' size, its users."""

SIZES = 4
"""Number of a tensor's last dimensions that an edge shows."""

EDGE = SIZES + 1
"""Features of an edge: the tensor's sizes, and its place among the operands."""

KNOWN = 5_000
"""Limit of the operators in a table, beyond those of the graph at hand."""


def log(number: float) -> float:
    """Return a logarithm between 0 and about 2 for sizes and counts."""
    return math.log2(1 + number) / 16


class Shown(NamedTuple):
    """A graph as an observation shows it: inputs, then operators.

    Attributes:
        nodes: Features of nodes, shape [N, NODE].
        edges: Features of edges, shape [E, EDGE].
        links: The nodes that each edge leads from and to, shape [E, 2].
        places: The node that makes each value, by the value's number in the table; undefined for values that
            the graph does not have.
    """

    nodes: NDArray[np.float32]
    edges: NDArray[np.float32]
    links: NDArray[np.int64]
    places: NDArray[np.int64]


class Table:
    """Features of operators.

    Operators are told apart as objects: a rewrite that turns an operand into a weight replaces its users.
    Values have numbers in place of names.
    """

    def __init__(self) -> None:
        """Start empty."""
        self._clear()

    def __reduce__(self) -> tuple[type["Table"], tuple[()]]:
        """Let copies start empty: the operators of a copied task are other objects."""
        return Table, ()

    def _clear(self) -> None:
        self._values: dict[str, int] = {}
        self._operators = Numbers[Node]()
        self._facts = Growing(np.int64, 6)  # kind, number of its name, runs of operands and of later results
        self._sizes = Growing(np.float32, 3)  # its result's rank and size, its weights' size
        self._operands = Growing(np.int64, 2)  # value, and whether it is the operator's first such operand
        self._edges = Growing(np.float32, EDGE)
        self._later = Growing(np.int64)  # results after the first

    def show(self, graph: Graph) -> Shown:
        """Return the nodes and edges of a graph."""
        if len(self._operators) > KNOWN + len(graph.nodes):
            self._clear()
        rows, new = self._operators.of(graph.nodes.values())
        if new:
            self._add(graph, new)
        inputs = [self._number(value) for value in graph.inputs]
        kinds, names, starts, counts, later, several = self._facts.take(rows).T
        first, size = len(inputs), len(inputs) + len(rows)
        makers = np.concatenate([np.array(inputs, dtype=np.int64), names])
        places = np.empty(len(self._values), dtype=np.int64)
        places[makers] = np.arange(size)
        if several.any():
            places[self._later.take(runs(later, several))] = np.repeat(np.arange(first, size), several)

        at = runs(starts, counts)
        values, fresh = self._operands.take(at).T
        links = np.empty((len(at), 2), dtype=np.int64)
        links[:, 0] = places.take(values)
        links[:, 1] = np.repeat(np.arange(first, size), counts)

        nodes = np.zeros((size, NODE), dtype=np.float32)
        nodes[:first, 0] = 1
        nodes[np.arange(first, size), kinds] = 1
        nodes[first:, -4:-1] = self._sizes.take(rows)
        used = links[:, 0].compress((fresh != 0) & (makers.take(links[:, 0]) == values))
        users = np.bincount(used, minlength=size)[first:]
        nodes[first:, -1] = np.log2(1 + users.astype(np.float32)) / 16
        return Shown(nodes, self._edges.take(at), links, places)

    def members(self, shown: Shown, candidates: Candidates) -> NDArray[np.int64]:
        """Return pairs of a candidate and a node that it matches, shape [M, 2].

        Args:
            shown: The graph that was shown last.
            candidates: Candidates in it: sites, then for some rules all of these together.
        """
        matched = [sites[0].members for sites in candidates.values() if len(sites) == 1]
        values = np.fromiter(map(self._values.__getitem__, chain.from_iterable(matched)), np.int64)
        nodes = shown.places.take(values)
        owners = np.repeat(np.arange(len(matched)), np.fromiter(map(len, matched), np.int64, len(matched)))
        rules = np.array([rule for rule, _ in candidates], dtype=np.int64)
        together = np.full(rules.max(initial=0) + 1, -1)
        together[rules[len(matched) :]] = np.arange(len(matched), len(rules))
        wholes = together.take(rules.take(owners))
        size = len(shown.nodes)
        pairs = (wholes * size + nodes)[wholes >= 0]
        pairs.sort()  # a pair is one number: candidate * size + node; sites of a rule may share nodes
        pairs = np.concatenate([owners * size + nodes, pairs[np.diff(pairs, prepend=-1) > 0]])
        return np.stack(np.divmod(pairs, size), axis=1)

    def _number(self, value: str) -> int:
        return self._values.setdefault(value, len(self._values))

    def _add(self, graph: Graph, nodes: Sequence[Node]) -> None:
        """Keep operators of a graph."""
        facts: list[tuple[int, ...]] = []
        sizes: list[tuple[float, ...]] = []
        operands: list[tuple[int, bool]] = []
        edges: list[tuple[float, ...]] = []
        later: list[int] = []
        for node in nodes:
            kind, weights = graph.types.get(node.name), graph.weights
            name, *others = [self._number(value) for value in node.results]
            used = [(at, value) for at, value in enumerate(node.given) if value and value not in weights]
            run = len(self._operands) + len(operands), len(used)
            later_run = len(self._later) + len(later), len(others)
            facts.append((KIND_PLACES.get(node.operator, 1), name, *run, *later_run))
            held = sum(graph.types[value].size for value in node.inputs if value in weights)
            size = (len(kind.shape) / 8, log(kind.size)) if kind else (0.0, 0.0)
            sizes.append((*size, log(held)))
            first = {value: at for at, value in reversed(used)}
            operands += [(self._number(value), first[value] == at) for at, value in used]
            edges += [(*_last_sizes(graph.types.get(value)), log(at)) for at, value in used]
            later += others
        self._facts.extend(facts)
        self._sizes.extend(sizes)
        self._operands.extend(operands)
        self._edges.extend(edges)
        self._later.extend(later)


def _last_sizes(kind: TensorType | None) -> list[float]:
    last = [log(size) for size in kind.shape[-SIZES:]] if kind else []
    return [0.0] * (SIZES - len(last)) + last
