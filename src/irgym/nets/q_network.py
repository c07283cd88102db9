"""The network of a Q-learner: dueling heads over flat actions (Wang et al., arXiv 1511.06581)."""

from typing import cast

from torch import Tensor, nn

from irgym.nets.encoders import Batch, Encoder, EncoderSpec, orthogonal_linear
from irgym.nets.layout import ActionLayout


class QNetwork(nn.Module):
    """Q(s, a) = V(s) + A(s, a) - mean over a of A(s, a), equation 9 of the paper.

    Attributes:
        encoder: From observations to features.
        layout: A layout of one segment.
    """

    kind = "q"

    def __init__(self, spec: EncoderSpec, layout: ActionLayout) -> None:
        super().__init__()
        self.spec = spec
        self.layout = layout
        self.encoder: Encoder = spec.build()
        self.value = orthogonal_linear(self.encoder.features, 1, gain=1.0)
        self.advantage = orthogonal_linear(self.encoder.features, layout.width, gain=0.01)

    def forward(self, batch: Batch) -> Tensor:
        """Return the values of all actions, shape [B, 1, number of actions]."""
        features = cast(Tensor, self.encoder(batch))
        advantage = cast(Tensor, self.advantage(features))
        q = cast(Tensor, self.value(features)) + advantage - advantage.mean(dim=-1, keepdim=True)
        return q.unsqueeze(1)
