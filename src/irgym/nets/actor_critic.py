"""The networks of a policy-gradient learner: scores of actions, and the value of a state."""

from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from irgym.nets.encoders import Batch, Encoder, EncoderSpec, orthogonal_linear
from irgym.nets.layout import ActionLayout


class Actor(nn.Module):
    """An encoder and a linear head that scores every alternative of every segment.

    Attributes:
        encoder: From observations to features.
        layout: The meaning of the scores.
    """

    sort = "actor"

    def __init__(self, spec: EncoderSpec, layout: ActionLayout) -> None:
        super().__init__()
        self.spec = spec
        self.layout = layout
        self.encoder: Encoder = spec.build()
        # A small gain makes the first policy almost independent of the state; the bias makes it try a
        # kind with many choices more often than one without parameters, such as an early stop.
        self.scores = orthogonal_linear(self.encoder.features, layout.segments * layout.width, gain=0.01)
        with torch.no_grad():
            self.scores.bias[: len(layout.prior)] = torch.as_tensor(np.log(layout.prior))

    def score(self, features: Tensor) -> Tensor:
        """Return scores of shape [B, S, W] from features of shape [B, features]."""
        scores = cast(Tensor, self.scores(features))
        return scores.view(-1, self.layout.segments, self.layout.width)

    def forward(self, batch: Batch) -> Tensor:
        """Return scores of shape [B, S, W]."""
        return self.score(cast(Tensor, self.encoder(batch)))


class ActorCritic(nn.Module):
    """An actor and a value head, on the actor's encoder or on one of its own.

    Attributes:
        actor: The policy's network.
        critic: The value's own encoder, or None where the actor's is shared.
    """

    def __init__(self, spec: EncoderSpec, layout: ActionLayout, shared: bool) -> None:
        super().__init__()
        self.actor = Actor(spec, layout)
        self.critic: Encoder | None = None if shared else spec.build()
        self.value = orthogonal_linear(self.actor.encoder.features, 1, gain=1.0)

    def critic_parameters(self) -> list[nn.Parameter]:
        """Return the parameters that only the value depends on."""
        own = [] if self.critic is None else list(self.critic.parameters())
        return [*own, *self.value.parameters()]

    def values(self, batch: Batch) -> Tensor:
        """Return the values of states, shape [B]."""
        encoder = self.actor.encoder if self.critic is None else self.critic
        return cast(Tensor, self.value(encoder(batch))).squeeze(-1)

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return scores of shape [B, S, W] and values of shape [B]."""
        if self.critic is not None:
            return self.actor.forward(batch), self.values(batch)
        features = cast(Tensor, self.actor.encoder(batch))
        return self.actor.score(features), cast(Tensor, self.value(features)).squeeze(-1)
