"""The graph network in numpy; see `irgym.networks.graphs`, whose features these are, but for rounding."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from irgym.base.errors import IrgymError
from irgym.core.graph_observation import GraphObservation, as_graph
from irgym.policies.encoders import Encoded
from irgym.policies.layers import (
    ACTIVATIONS,
    FloatArray,
    IntArray,
    Linear,
    Weights,
    hidden_layers,
    normalisation,
    side_by_side,
    summaries,
)

A = TypeVar("A")
R = TypeVar("R")

LEAK = np.float32(0.2)
"""Slope of the attention's activation below 0."""

EPSILON = np.float32(1e-5)
"""Addend to variances in torch's layer normalisation."""

Widths = tuple[int, int, int, int]
"""The lengths of the features of a node, an edge, a state and a candidate."""


class Ragged(NamedTuple):
    """Rows of B states, those of the first state first.

    Attributes:
        rows: Shape [M, ...].
        counts: Shape [B]; the number of rows of each state. They add up to M.
    """

    rows: NDArray[Any]
    counts: IntArray

    @property
    def owners(self) -> IntArray:
        """The state of each row, shape [M]."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    @property
    def begins(self) -> IntArray:
        """The place of each state's first row, shape [B]."""
        return self.counts.cumsum() - self.counts


class GraphBatch(NamedTuple, Generic[A, R]):
    """A batch of graphs. Nodes are numbered within their graph, candidates within their state.

    Its arrays are of type A, its ragged ones of type R: those of numpy here, of torch in `irgym.networks`.

    Attributes:
        states: Shape [B, S].
        nodes: Rows of F values.
        edges: Rows of G values.
        links: Rows of two nodes, one for each edge.
        candidates: Rows of K values.
        members: Rows of a candidate and a node.
        own: The nodes of each state's own graph.
    """

    states: A
    nodes: R
    edges: R
    links: R
    candidates: R
    members: R
    own: R


def graphs_of(observations: Sequence[Any], widths: Widths) -> GraphBatch[FloatArray, Ragged]:
    """Return observations as one batch.

    Raises:
        IrgymError: One of them is no graph, or has other widths.
    """
    graphs = [as_graph(observation) for observation in observations]
    if any(graph is None or widths_of(graph) != widths for graph in graphs):
        raise IrgymError(
            "the policy takes graphs with nodes of {} values, edges of {}, states of {}, candidates of {}"
            " and was given others: use it with the observation that it was trained on".format(*widths)
        )
    known = cast(list[GraphObservation], graphs)

    def ragged(part: Callable[[GraphObservation], NDArray[Any]], kind: type[Any]) -> Ragged:
        parts = [part(graph) for graph in known]
        counts = np.array([len(rows) for rows in parts], dtype=np.int64)
        return Ragged(np.concatenate(parts).astype(kind, copy=False), counts)

    return GraphBatch(
        np.stack([graph.state for graph in known], dtype=np.float32),
        ragged(lambda graph: graph.nodes, np.float32),
        ragged(lambda graph: graph.edges, np.float32),
        ragged(lambda graph: graph.links, np.int64),
        ragged(lambda graph: graph.candidates, np.float32),
        ragged(lambda graph: graph.members, np.int64),
        ragged(lambda graph: np.arange(graph.own), np.int64),
    )


def widths_of(graph: GraphObservation) -> Widths:
    """Return the lengths of a graph's features."""
    return graph.nodes.shape[1], graph.edges.shape[1], len(graph.state), graph.candidates.shape[1]


class GraphLayers:
    """Encodes nodes by attention to their neighbours, the state by all nodes, a candidate by its nodes."""

    def __init__(self, networks: Sequence[Weights], settings: Mapping[str, Any]) -> None:
        self._widths: Widths = (
            int(settings["node"]),
            int(settings["edge"]),
            int(settings["state"]),
            int(settings["candidate"]),
        )
        self._states = normalisation(networks, "encoder.norm")
        self._nodes = normalisation(networks, "encoder.node_norm")
        scales = [weights.get("encoder.candidate_norm.scale") for weights in networks]
        # Weights of what never varied are as they were drawn: on a new rule they would be noise.
        self._told = np.stack([[np.ones(1, np.bool_) if scale is None else scale > 0] for scale in scales])
        self._inputs = Linear(networks, "encoder.inputs")
        attention = ATTENTIONS[settings.get("attention", "gatv2")]
        self._attention = attention(networks, "encoder.layers", len(settings["hidden"]))
        self._no_op = bool(settings.get("no_op", False))
        self._whole = hidden_layers(networks, "encoder.whole", settings["activation"])
        self._each = hidden_layers(networks, "encoder.each", settings["activation"])

    def collate(self, observations: Sequence[Any]) -> GraphBatch[FloatArray, Ragged]:
        """Return graphs as one batch."""
        return graphs_of(observations, self._widths)

    def encode(self, batch: GraphBatch[FloatArray, Ragged]) -> Encoded:
        """Return the features of the states and of their candidates."""
        states, nodes, edges, links, candidates, members, own = batch
        links_of = links.rows + nodes.begins[links.owners][:, None]
        hidden = self._attention(self._inputs(self._nodes(nodes.rows)), edges.rows, links_of)
        size = np.log1p(nodes.counts, dtype=np.float32)[None, :, None]
        whole = self._whole(side_by_side([self._states(states), summaries(hidden, nodes.counts), size]))
        owners = members.rows[:, 0] + candidates.begins[members.owners]
        about = hidden[:, members.rows[:, 1] + nodes.begins[members.owners]]
        told = candidates.rows * self._told
        # Members come in the order of their candidates, so they are rows of these.
        by_nodes = summaries(about, np.bincount(owners, minlength=len(candidates.rows)))
        each = self._each(side_by_side([told, by_nodes]))
        unchanged = self._unchanged(hidden, nodes, own, told.shape[-1]) if self._no_op else None
        return Encoded(whole, each, candidates.counts, unchanged)

    def _unchanged(self, hidden: FloatArray, nodes: Ragged, own: Ragged, told: int) -> FloatArray:
        """Return each state's own graph, encoded like a candidate without features; [N, B, features]."""
        present = summaries(hidden[:, own.rows + nodes.begins[own.owners]], own.counts)
        return self._each(side_by_side([np.zeros((1, len(own.counts), told), dtype=np.float32), present]))


class BothWays:
    """Layers of GATv2 with features of edges, which are read both ways; see `irgym.networks.attention`."""

    def __init__(self, networks: Sequence[Weights], name: str, count: int) -> None:
        self._layers = [_EdgeAttention(networks, f"{name}.{number}") for number in range(count)]

    def __call__(self, nodes: FloatArray, edges: FloatArray, links: IntArray) -> FloatArray:
        """Return the nodes after all layers; links have shape [E, 2]."""
        way = np.ones((len(edges), 1), dtype=np.float32)
        features = np.concatenate([np.hstack([edges, way]), np.hstack([edges, -way])])
        into = _Neighbours.of(np.concatenate([links, links[:, ::-1]]))
        features = features[into.order]
        for layer in self._layers:
            nodes = layer(nodes, features, into)
        return nodes


class OneWay:
    """X-RLflow's layers: an update by features of edges, then GAT; see `irgym.networks.attention`."""

    def __init__(self, networks: Sequence[Weights], name: str, count: int) -> None:
        self._edges = Linear(networks, f"{name}.0.edge")
        self._layers = [_NodeAttention(networks, f"{name}.{number}") for number in range(1, count + 1)]

    def __call__(self, nodes: FloatArray, edges: FloatArray, links: IntArray) -> FloatArray:
        """Return the nodes after all layers; links have shape [E, 2]."""
        received = np.zeros((nodes.shape[1], edges.shape[1]), dtype=np.float32)
        np.add.at(received, links[:, 1], edges)
        nodes = ACTIVATIONS["relu"](nodes + self._edges(received))
        itself: IntArray = np.arange(nodes.shape[1], dtype=np.int64)
        others = links[links[:, 0] != links[:, 1]]
        into = _Neighbours.of(np.concatenate([others, np.stack([itself, itself], axis=1)]))
        for layer in self._layers:
            nodes = layer(nodes, into)
        return nodes


ATTENTIONS: Mapping[str, type[BothWays | OneWay]] = {"gatv2": BothWays, "gat": OneWay}
"""Kinds of attention by the names that files have for them."""


@dataclass(frozen=True)
class _Neighbours:
    """Edges, sorted by target node.

    Attributes:
        order: Shape [E]; the places of the edges before.
        sources: Shape [E]; the node that each comes from.
        targets: Shape [E]; the node that it leads to, ascending.
        begins: The place of the first edge to each node that has any.
        nodes: These nodes.
        runs: Shape [E]; which of these nodes each edge leads to.
    """

    order: IntArray
    sources: IntArray
    targets: IntArray
    begins: IntArray
    nodes: IntArray
    runs: IntArray

    @staticmethod
    def of(links: IntArray) -> "_Neighbours":
        """Return those of edges between pairs of nodes, shape [E, 2]."""
        sources, targets = links.T
        order = np.argsort(targets, kind="stable")
        nodes, begins, runs = np.unique(targets[order], return_index=True, return_inverse=True)
        return _Neighbours(order, sources[order], targets[order], begins, nodes, runs)

    def heard(self, sent: FloatArray, scores: FloatArray, count: int) -> FloatArray:
        """Return for each of so many nodes the mean of what edges send, by the softmax of their scores."""
        heard = np.zeros((len(sent), count, sent.shape[-1]), dtype=np.float32)
        if len(self.begins):
            most = np.maximum.reduceat(scores, self.begins, axis=1)
            weights = np.exp(scores - most[:, self.runs])
            total = np.add.reduceat(weights, self.begins, axis=1)
            shares = weights / total[:, self.runs]
            heard[:, self.nodes] = np.add.reduceat(shares * sent, self.begins, axis=1)
        return heard


class _EdgeAttention:
    """A layer of GATv2 with features of edges."""

    def __init__(self, networks: Sequence[Weights], name: str) -> None:
        self._source, self._target, self._edge, self._score = (
            Linear(networks, f"{name}.{part}") for part in ("source", "target", "edge", "score")
        )
        self._scale, self._shift = (
            np.stack([weights[f"{name}.norm.{what}"][None] for weights in networks])
            for what in ("weight", "bias")
        )

    def __call__(self, nodes: FloatArray, edges: FloatArray, into: _Neighbours) -> FloatArray:
        """Return the nodes after one layer, shape [N, nodes, width]."""
        sent = self._source(nodes)[:, into.sources] + self._edge(edges)
        asked = sent + self._target(nodes)[:, into.targets]
        scores = self._score(np.maximum(asked, LEAK * asked))
        heard = ACTIVATIONS["relu"](into.heard(sent, scores, nodes.shape[1]))
        centred = heard - heard.mean(axis=-1, keepdims=True)
        deviation = np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + EPSILON)
        return nodes + centred / deviation * self._scale + self._shift


class _NodeAttention:
    """A layer of GAT."""

    def __init__(self, networks: Sequence[Weights], name: str) -> None:
        self._sent, self._source, self._target = (
            Linear(networks, f"{name}.{part}") for part in ("sent", "source", "target")
        )

    def __call__(self, nodes: FloatArray, into: _Neighbours) -> FloatArray:
        """Return the nodes after one layer, shape [N, nodes, width]."""
        sent = self._sent(nodes)
        asked = self._source(sent)[:, into.sources] + self._target(sent)[:, into.targets]
        heard = into.heard(sent[:, into.sources], np.maximum(asked, LEAK * asked), nodes.shape[1])
        return np.where(heard > 0, heard, np.expm1(np.minimum(heard, 0)))
