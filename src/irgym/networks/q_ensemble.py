"""An ensemble of Q-networks, whose value is the mean of theirs."""

from collections.abc import Sequence
from functools import cached_property
from typing import cast

import torch
from torch import Tensor, nn

from irgym.networks.candidates import Candidates
from irgym.networks.encoders import Batch, Encoder, EncoderSpec
from irgym.networks.q_network import QNetwork
from irgym.policies.encoders import CandidateBatch, CandidateLayers
from irgym.policies.layout import ActionLayout
from irgym.policies.scorers import ValueHead, members_of


class QEnsemble(nn.Module):
    """The mean of the values of separately trained networks; for acting, not for training.

    Their individual errors, such as overfitting to few data, average out (Anschel et al., Averaged-DQN, arXiv
    1611.01929). With candidates, numpy computes all networks at once: for layers as small as these, torch's
    time is mostly overhead.

    Args:
        spec: The encoder of each.
        layout: A layout of one segment.
        observation: Name of what the encoders read.
        members: How many networks.

    Attributes:
        members: The networks. Their weights must not change after the first use.
        layout: The layout.
    """

    kind = "q-ensemble"

    def __init__(
        self, spec: EncoderSpec, layout: ActionLayout, observation: str = "", members: int = 1
    ) -> None:
        super().__init__()
        self.spec = spec
        self.layout = layout
        self.members = nn.ModuleList(QNetwork(spec, layout, observation) for _ in range(members))

    @property
    def encoder(self) -> Encoder:
        """The first network's encoder; all of them collate alike."""
        return self._networks[0].encoder

    @property
    def _networks(self) -> Sequence[QNetwork]:
        return cast(Sequence[QNetwork], self.members)

    @torch.inference_mode()
    def forward(self, batch: Batch, legal: Tensor | None = None) -> Tensor:
        """Return the values of all actions, shape [B, 1, W + K]; see `QNetwork.forward`."""
        if legal is None or not isinstance(self.encoder, Candidates):
            return torch.stack([network.forward(batch, legal) for network in self._networks]).mean(dim=0)
        encoder, head = self._plain
        encoded = encoder.encode(CandidateBatch(*(part.numpy() for part in batch)))
        return torch.as_tensor(head(encoded, legal.numpy()))

    @cached_property
    def _plain(self) -> tuple[CandidateLayers, ValueHead]:
        weights = {name: value.numpy() for name, value in self.state_dict().items()}
        networks = members_of(weights, len(self.members))
        return CandidateLayers(networks, self.spec.to_dict()), ValueHead(networks, self.layout)
