"""A graph network, for graphs with and without candidates: attention over edges, both ways.

Layers are GATv2's (Brody et al., arXiv 2105.14491) with features of edges, one head, a residual connection
and a normalisation. X-RLflow (MLSys 2023) encodes every candidate's graph; here the graph is encoded once,
and a candidate by the nodes that it is about.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from irgym.base.errors import IrgymError
from irgym.core.graph_observation import GraphObservation, as_graph
from irgym.networks import ragged
from irgym.networks.candidates import CandidateEncoder, Encoded
from irgym.networks.encoders import RunningNorm, hidden_layers, orthogonal_linear
from irgym.networks.ragged import Ragged
from irgym.policies.graphs import GraphBatch, graphs_of, widths_of


@dataclass(frozen=True)
class GraphSpec:
    """A layer of attention for each hidden width, and fully connected layers behind.

    Attributes:
        node: F, the length of a node's features.
        edge: G, the length of an edge's features.
        state: S, the length of the state's vector.
        candidate: K, the length of a candidate's row.
        hidden: Widths of the layers, all alike.
        activation: One of `ACTIVATIONS`, of the fully connected layers.
        normalise: Whether the state's vector and the nodes' features are brought to mean 0 and deviation 1.
        kind: Name in `ENCODERS`.
    """

    node: int
    edge: int
    state: int
    candidate: int
    hidden: tuple[int, ...] = (64, 64, 64)
    activation: str = "tanh"
    normalise: bool = False
    kind: str = "graph"

    @classmethod
    def suited_to(
        cls, observation: Any, hidden: Sequence[int], activation: str, *, normalise: bool = False
    ) -> "GraphSpec":
        """Return a specification for observations of this one's widths.

        Raises:
            IrgymError: It is no graph, or the hidden layers are not of one width.
        """
        graph = as_graph(observation)
        if graph is None or len(set(hidden)) != 1:
            raise IrgymError(
                "the encoder graph reads graphs and needs hidden layers of one width, as in hidden=64,64,64: "
                "change encoder, observation or hidden"
            )
        return cls(*widths_of(graph), tuple(hidden), activation, normalise)

    def build(self) -> "GraphNetwork":
        """Return a freshly initialised encoder."""
        return GraphNetwork(self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that `spec_from_dict` reads back."""
        return {**asdict(self), "hidden": list(self.hidden)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "GraphSpec":
        """Return the specification that `to_dict` wrote."""
        widths = values["node"], values["edge"], values["state"], values["candidate"]
        return cls(*widths, tuple(values["hidden"]), values["activation"], values["normalise"])


Plain: TypeAlias = tuple[Any, ...]
"""A batch as tuples without names."""


class GraphNetwork(CandidateEncoder):
    """Encodes nodes by attention to their neighbours, the state by all nodes, a candidate by its nodes."""

    def __init__(self, spec: GraphSpec) -> None:
        super().__init__()
        width = spec.hidden[0]
        self.features = self.candidate_features = width
        self._widths = spec.node, spec.edge, spec.state, spec.candidate
        self.norm = RunningNorm(spec.state) if spec.normalise else None
        self.node_norm = RunningNorm(spec.node) if spec.normalise else None
        self.candidate_norm = RunningNorm(spec.candidate) if spec.normalise else None
        self.inputs = orthogonal_linear(spec.node, width, gain=1.0)
        # An edge and the same edge read backwards are told apart by one more feature.
        self.layers = nn.ModuleList(_Attention(width, spec.edge + 1) for _ in spec.hidden)
        self.whole = hidden_layers((spec.state + 2 * width + 1, width), spec.activation)
        self.each = hidden_layers((spec.candidate + 2 * width, width), spec.activation)

    def collate(self, observations: Sequence[Any]) -> Plain:
        """Return the observations as one batch.

        Raises:
            IrgymError: One of them is no graph, or has other widths.
        """
        states, *parts = graphs_of(observations, self._widths)
        ragged_parts = [Ragged(torch.as_tensor(rows), torch.as_tensor(counts)) for rows, counts in parts]
        return _plain(torch.as_tensor(states), *ragged_parts)

    def separate(self, batch: Plain) -> list[GraphObservation]:
        """Return the observations."""
        states, *parts = _batch(batch)
        nodes, edges, links, candidates, members = (
            [part_rows.numpy() for part_rows in part.separate()] for part in parts
        )
        rows = zip(nodes, edges, links, states.numpy(), candidates, members, strict=True)
        return [GraphObservation(*row) for row in rows]

    def join(self, batches: Sequence[Plain]) -> Plain:
        """Return the observations of all batches as one."""
        known = [_batch(batch) for batch in batches]
        states = torch.cat([batch.states for batch in known])
        parts = [ragged.join([cast(Ragged, batch[place]) for batch in known]) for place in range(1, 6)]
        return _plain(states, *parts)

    def select(self, batch: Plain, rows: Tensor | slice) -> Plain:
        """Return some observations."""
        states, *parts = _batch(batch)
        return _plain(states[rows], *(part.select(rows) for part in parts))

    def encode(self, batch: Plain) -> Encoded:
        """Return the features of the states and of their candidates."""
        states, nodes, edges, links, candidates, members = _batch(batch)
        rows, told = nodes.rows, candidates.rows
        if self.norm is not None and self.node_norm is not None and self.candidate_norm is not None:
            states, rows = self.norm.forward(states), self.node_norm.forward(rows)
            # Weights of what never varied are as they were drawn: on a new rule they would be noise.
            told = told * (self.candidate_norm.scale > 0)
        links_of = links.rows + nodes.begins[links.owners][:, None]
        forth = functional.pad(edges.rows, (0, 1), value=1.0)
        back = functional.pad(edges.rows, (0, 1), value=-1.0)
        both, ends = torch.cat([forth, back]), torch.cat([links_of, links_of.flip(1)])
        hidden = cast(Tensor, self.inputs(rows))
        for layer in self.layers:
            hidden = layer(hidden, both, ends[:, 0], ends[:, 1])
        of_state = Ragged(hidden, nodes.counts)
        size = nodes.counts[:, None].log1p()
        whole = cast(
            Tensor, self.whole(torch.cat([states, of_state.mean(), of_state.greatest(), size], dim=-1))
        )
        owners = members.rows[:, 0] + candidates.begins[members.owners]
        about = hidden[members.rows[:, 1] + nodes.begins[members.owners]]
        # Members come in the order of their candidates, so they are rows of these.
        of_candidate = Ragged(about, torch.bincount(owners, minlength=len(told)))
        each = torch.cat([told, of_candidate.mean(), of_candidate.greatest()], dim=-1)
        return Encoded(whole, cast(Tensor, self.each(each)), candidates.counts)

    def adapt(self, batch: Plain) -> None:
        """Update the input statistics, if inputs are normalised."""
        known = _batch(batch)
        if self.norm is not None and self.node_norm is not None and self.candidate_norm is not None:
            self.norm.adapt(known.states)
            self.node_norm.adapt(known.nodes.rows)
            self.candidate_norm.adapt(known.candidates.rows)

    def hide(self, batch: Plain, share: float, generator: torch.Generator) -> Plain:
        """Return a batch in which each feature of nodes, and of candidates, is 0 in some observations."""
        states, nodes, edges, links, candidates, members = _batch(batch)
        return _plain(
            states,
            _without(nodes, share, generator),
            edges,
            links,
            _without(candidates, share, generator),
            members,
        )


class _Attention(nn.Module):
    """A layer of GATv2 with features of edges."""

    def __init__(self, width: int, edge: int) -> None:
        super().__init__()
        self.source = orthogonal_linear(width, width, gain=1.0)
        self.target = orthogonal_linear(width, width, gain=1.0)
        self.edge = orthogonal_linear(edge, width, gain=1.0)
        self.score = orthogonal_linear(width, 1, gain=1.0)
        self.norm = nn.LayerNorm(width)

    def forward(self, nodes: Tensor, edges: Tensor, sources: Tensor, targets: Tensor) -> Tensor:
        """Return the nodes after one layer, shape [N, width]."""
        sent = cast(Tensor, self.source(nodes))[sources] + self.edge(edges)
        asked = functional.leaky_relu(sent + cast(Tensor, self.target(nodes))[targets], 0.2)
        scores = cast(Tensor, self.score(asked))[:, 0]
        most = scores.new_full((len(nodes),), -torch.inf).scatter_reduce(0, targets, scores.detach(), "amax")
        weights = (scores - most[targets]).exp()
        total = weights.new_zeros(len(nodes)).index_add(0, targets, weights)
        shares = (weights / total[targets])[:, None]
        heard = torch.zeros_like(nodes).index_add(0, targets, shares * sent)
        return nodes + cast(Tensor, self.norm(functional.relu(heard)))


def _without(part: Ragged, share: float, generator: torch.Generator) -> Ragged:
    """Return the rows with each column 0 in some states."""
    shown = torch.rand(len(part.counts), part.rows.shape[1], generator=generator) >= share
    return Ragged(part.rows * shown[part.owners], part.counts)


def _plain(states: Tensor, *parts: Ragged) -> Plain:
    """Return a batch as tuples without names, as checkpoints hold them."""
    return (states, *((part.rows, part.counts) for part in parts))


def _batch(batch: Plain) -> GraphBatch[Tensor, Ragged]:
    """Return the named batch of `_plain`'s tuples."""
    states, *parts = batch
    return GraphBatch(states, *(Ragged(*part) for part in parts))
