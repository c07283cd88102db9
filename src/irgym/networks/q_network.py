"""The network of a Q-learner: dueling heads over flat actions (Wang et al., arXiv 1511.06581)."""

from typing import cast

import torch
from torch import Tensor, nn

from irgym.networks.candidates import CandidateEncoder, pointer_for
from irgym.networks.encoders import Batch, Encoder, EncoderSpec, orthogonal_linear
from irgym.policies.layout import ActionLayout


class QNetwork(nn.Module):
    """Q(s, a) = V(s) + A(s, a) - mean over a of A(s, a), equation 9 of the paper.

    Where states have candidates, the mean is over the legal actions: their number differs.

    Args:
        spec: The encoder.
        layout: A layout of one segment.
        observation: Name of what the encoder reads.

    Attributes:
        encoder: From observations to features.
        layout: A layout of one segment.
        pointer: The advantages of candidates; None where there are none.
    """

    kind = "q"

    def __init__(self, spec: EncoderSpec, layout: ActionLayout, observation: str = "") -> None:
        super().__init__()
        self.spec = spec
        self.layout = layout
        self.encoder: Encoder = spec.build()
        self.encoder.observation = observation
        self.value = orthogonal_linear(self.encoder.features, 1, gain=1.0)
        self.advantage = orthogonal_linear(self.encoder.features, layout.width, gain=0.01)
        self.pointer = pointer_for(self.encoder, layout)

    def forward(self, batch: Batch, legal: Tensor | None = None) -> Tensor:
        """Return the values of all actions, shape [B, 1, W + K].

        Args:
            batch: Observations.
            legal: Shape [B, 1, W + K], or wider; needed where there are candidates.
        """
        if self.pointer is None:
            features = cast(Tensor, self.encoder(batch))
            advantage = cast(Tensor, self.advantage(features))
            q = cast(Tensor, self.value(features)) + advantage - advantage.mean(dim=-1, keepdim=True)
            return q.unsqueeze(1)
        if legal is None:
            raise ValueError("a mean over legal actions needs to know which are legal")
        encoded = cast(CandidateEncoder, self.encoder).encode(batch)
        fixed = cast(Tensor, self.advantage(encoded.states)).unsqueeze(1)
        advantages = self.pointer.beside(fixed, encoded, legal)
        there = legal[..., : advantages.shape[-1]]
        total = torch.where(there, advantages, 0.0).sum(dim=-1, keepdim=True)
        mean = total / there.sum(dim=-1, keepdim=True).clamp(min=1)
        return cast(Tensor, self.value(encoded.states)).unsqueeze(1) + advantages - mean
