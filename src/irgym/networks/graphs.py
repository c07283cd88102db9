"""A graph network, for graphs with and without candidates: attention over edges.

X-RLflow (MLSys 2023) encodes every candidate's graph; here the observation is encoded once, and a candidate
by the nodes that it is about.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias, cast

import torch
from torch import Tensor

from irgym.base.errors import IrgymError
from irgym.core.graph_observation import GraphObservation, as_graph
from irgym.networks import ragged
from irgym.networks.attention import ATTENTIONS
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
        attention: One of `ATTENTIONS`.
        no_op: Whether the unchanged graph is encoded like a candidate, as X-RLflow's no-op is.
        kind: Name in `ENCODERS`.

    Raises:
        IrgymError: There is no such attention.
    """

    node: int
    edge: int
    state: int
    candidate: int
    hidden: tuple[int, ...] = (64, 64, 64)
    activation: str = "tanh"
    normalise: bool = False
    attention: str = "gatv2"
    no_op: bool = False
    kind: str = "graph"

    def __post_init__(self) -> None:
        """Check the attention."""
        if self.attention not in ATTENTIONS:
            raise IrgymError(
                f"there is no attention {self.attention!r}: choose among {', '.join(ATTENTIONS)}"
            )

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
        """Return the specification that `to_dict` wrote; the first files have neither attention nor no-op."""
        widths = values["node"], values["edge"], values["state"], values["candidate"]
        return cls(
            *widths,
            tuple(values["hidden"]),
            values["activation"],
            values["normalise"],
            values.get("attention", "gatv2"),
            values.get("no_op", False),
        )


Plain: TypeAlias = tuple[Any, ...]
"""A batch as tuples without names."""


class GraphNetwork(CandidateEncoder):
    """Encodes nodes by attention to their neighbours, the state by all nodes, a candidate by its nodes."""

    def __init__(self, spec: GraphSpec) -> None:
        super().__init__()
        width = spec.hidden[0]
        self.features = self.candidate_features = width
        self.no_op = spec.no_op
        self._widths = spec.node, spec.edge, spec.state, spec.candidate
        self.norm = RunningNorm(spec.state) if spec.normalise else None
        self.node_norm = RunningNorm(spec.node) if spec.normalise else None
        self.candidate_norm = RunningNorm(spec.candidate) if spec.normalise else None
        self.inputs = orthogonal_linear(spec.node, width, gain=1.0)
        self.layers = ATTENTIONS[spec.attention](width, spec.edge, len(spec.hidden))
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
        nodes, edges, links, candidates, members, own = (
            [part_rows.numpy() for part_rows in part.separate()] for part in parts
        )
        rows = zip(nodes, edges, links, states.numpy(), candidates, members, map(len, own), strict=True)
        return [GraphObservation(*row) for row in rows]

    def join(self, batches: Sequence[Plain]) -> Plain:
        """Return the observations of all batches as one."""
        known = [_batch(batch) for batch in batches]
        states = torch.cat([batch.states for batch in known])
        parts = [ragged.join([cast(Ragged, batch[place]) for batch in known]) for place in range(1, 7)]
        return _plain(states, *parts)

    def select(self, batch: Plain, rows: Tensor | slice) -> Plain:
        """Return some observations."""
        states, *parts = _batch(batch)
        return _plain(states[rows], *(part.select(rows) for part in parts))

    def encode(self, batch: Plain) -> Encoded:
        """Return the features of the states and of their candidates."""
        states, nodes, edges, links, candidates, members, own = _batch(batch)
        rows, told = nodes.rows, candidates.rows
        if self.norm is not None and self.node_norm is not None and self.candidate_norm is not None:
            states, rows = self.norm.forward(states), self.node_norm.forward(rows)
            # Weights of what never varied are as they were drawn: on a new rule they would be noise.
            told = told * (self.candidate_norm.scale > 0)
        links_of = links.rows + nodes.begins[links.owners][:, None]
        hidden = cast(Tensor, self.layers(self.inputs(rows), edges.rows, links_of))
        of_state = Ragged(hidden, nodes.counts)
        size = nodes.counts[:, None].log1p()
        whole = cast(
            Tensor, self.whole(torch.cat([states, of_state.mean(), of_state.greatest(), size], dim=-1))
        )
        owners = members.rows[:, 0] + candidates.begins[members.owners]
        about = hidden[members.rows[:, 1] + nodes.begins[members.owners]]
        # Members come in the order of their candidates, so they are rows of these.
        of_candidate = Ragged(about, torch.bincount(owners, minlength=len(told)))
        each = cast(
            Tensor, self.each(torch.cat([told, of_candidate.mean(), of_candidate.greatest()], dim=-1))
        )
        unchanged = self._unchanged(hidden, nodes, own, told.shape[-1]) if self.no_op else None
        return Encoded(whole, each, candidates.counts, unchanged)

    def _unchanged(self, hidden: Tensor, nodes: Ragged, own: Ragged, told: int) -> Tensor:
        """Return each state's own graph, encoded like a candidate without features; shape [B, width]."""
        present = Ragged(hidden[own.rows + nodes.begins[own.owners]], own.counts)
        features = [hidden.new_zeros(len(own.counts), told), present.mean(), present.greatest()]
        return cast(Tensor, self.each(torch.cat(features, dim=-1)))

    def adapt(self, batch: Plain) -> None:
        """Update the input statistics, if inputs are normalised."""
        known = _batch(batch)
        if self.norm is not None and self.node_norm is not None and self.candidate_norm is not None:
            self.norm.adapt(known.states)
            self.node_norm.adapt(known.nodes.rows)
            self.candidate_norm.adapt(known.candidates.rows)

    def hide(self, batch: Plain, share: float, generator: torch.Generator) -> Plain:
        """Return a batch in which each feature of nodes, and of candidates, is 0 in some observations."""
        states, nodes, edges, links, candidates, members, own = _batch(batch)
        shown = _without(nodes, share, generator), _without(candidates, share, generator)
        return _plain(states, shown[0], edges, links, shown[1], members, own)


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
