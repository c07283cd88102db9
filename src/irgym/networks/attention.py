"""Layers of attention of a graph's nodes to their neighbours, and of which nodes these are."""

from collections.abc import Mapping
from typing import TypeAlias, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from irgym.networks.encoders import orthogonal_linear


class BothWays(nn.ModuleList):
    """Layers of GATv2 (Brody et al., arXiv 2105.14491) with features of edges, which are read both ways.

    Each has one head, a residual connection and a normalisation.

    Args:
        width: Length of a node's features.
        edge: G, the length of an edge's features.
        count: Number of layers.
    """

    def __init__(self, width: int, edge: int, count: int) -> None:
        # An edge and the same edge read backwards are told apart by one more feature.
        super().__init__(_EdgeAttention(width, edge + 1) for _ in range(count))

    def forward(self, nodes: Tensor, edges: Tensor, links: Tensor) -> Tensor:
        """Return the nodes after all layers, shape [N, width].

        Args:
            nodes: Shape [N, width].
            edges: Shape [E, G].
            links: Shape [E, 2]; the nodes that each edge leads from and to.
        """
        forth = functional.pad(edges, (0, 1), value=1.0)
        back = functional.pad(edges, (0, 1), value=-1.0)
        both, ends = torch.cat([forth, back]), torch.cat([links, links.flip(1)])
        for layer in self:
            nodes = layer(nodes, both, ends[:, 0], ends[:, 1])
        return nodes


class OneWay(nn.ModuleList):
    """X-RLflow's layers (He et al., MLSys 2023): features of edges change nodes once, then layers of GAT.

    A node first gets the sum of the features of the edges that lead to it. In each layer (Velickovic et al.,
    arXiv 1710.10903) it attends to the nodes that these edges come from, and to itself.

    Args:
        width: Length of a node's features.
        edge: G, the length of an edge's features.
        count: Number of layers.
    """

    def __init__(self, width: int, edge: int, count: int) -> None:
        super().__init__([_EdgeUpdate(width, edge), *(_NodeAttention(width) for _ in range(count))])

    def forward(self, nodes: Tensor, edges: Tensor, links: Tensor) -> Tensor:
        """Return the nodes after all layers; see `BothWays.forward`."""
        update, *layers = self
        nodes = update(nodes, edges, links[:, 1])
        itself = torch.arange(len(nodes), device=nodes.device)
        others = links[links[:, 0] != links[:, 1]]
        ends = torch.cat([others, torch.stack([itself, itself], dim=1)])
        for layer in layers:
            nodes = layer(nodes, ends[:, 0], ends[:, 1])
        return nodes


Attention: TypeAlias = BothWays | OneWay

ATTENTIONS: Mapping[str, type[Attention]] = {"gatv2": BothWays, "gat": OneWay}
"""Kinds of attention by name."""


class _EdgeAttention(nn.Module):
    """A layer of GATv2 with features of edges."""

    def __init__(self, width: int, edge: int) -> None:
        super().__init__()
        self.source = orthogonal_linear(width, width, gain=1.0)
        self.target = orthogonal_linear(width, width, gain=1.0)
        self.edge = orthogonal_linear(edge, width, gain=1.0)
        self.score = orthogonal_linear(width, 1, gain=1.0)
        self.norm = nn.LayerNorm(width)

    def forward(self, nodes: Tensor, edges: Tensor, sources: Tensor, targets: Tensor) -> Tensor:
        sent = cast(Tensor, self.source(nodes))[sources] + self.edge(edges)
        asked = functional.leaky_relu(sent + cast(Tensor, self.target(nodes))[targets], 0.2)
        scores = cast(Tensor, self.score(asked))[:, 0]
        heard = _heard(sent, scores, targets, len(nodes))
        return nodes + cast(Tensor, self.norm(functional.relu(heard)))


class _EdgeUpdate(nn.Module):
    """Adds the features of the edges that lead to a node."""

    def __init__(self, width: int, edge: int) -> None:
        super().__init__()
        self.edge = orthogonal_linear(edge, width, gain=1.0)

    def forward(self, nodes: Tensor, edges: Tensor, targets: Tensor) -> Tensor:
        received = edges.new_zeros(len(nodes), edges.shape[1]).index_add(0, targets, edges)
        return functional.relu(nodes + cast(Tensor, self.edge(received)))


class _NodeAttention(nn.Module):
    """A layer of GAT with one head; the sum of both scores is a^T [W h_i || W h_j] of the paper."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.sent = orthogonal_linear(width, width, gain=1.0)
        self.source = orthogonal_linear(width, 1, gain=1.0)
        self.target = orthogonal_linear(width, 1, gain=1.0)

    def forward(self, nodes: Tensor, sources: Tensor, targets: Tensor) -> Tensor:
        sent = cast(Tensor, self.sent(nodes))
        asked = cast(Tensor, self.source(sent))[sources] + cast(Tensor, self.target(sent))[targets]
        scores = functional.leaky_relu(asked, 0.2)[:, 0]
        return functional.elu(_heard(sent[sources], scores, targets, len(nodes)))


def _heard(sent: Tensor, scores: Tensor, targets: Tensor, nodes: int) -> Tensor:
    """Return for each node the mean of what its edges send, weighted by the softmax of their scores.

    Args:
        sent: Shape [E, width].
        scores: Shape [E].
        targets: Shape [E]; the node that each edge leads to.
        nodes: N.

    Returns:
        Shape [N, width]; 0 for nodes without edges.
    """
    most = scores.new_full((nodes,), -torch.inf).scatter_reduce(0, targets, scores.detach(), "amax")
    weights = (scores - most[targets]).exp()
    total = weights.new_zeros(nodes).index_add(0, targets, weights)
    shares = (weights / total[targets])[:, None]
    return sent.new_zeros(nodes, sent.shape[1]).index_add(0, targets, shares * sent)
