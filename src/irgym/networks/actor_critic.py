"""The networks of a policy-gradient learner: scores of actions, and the value of a state."""

from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from irgym.networks.candidates import CandidateEncoder, pointer_for
from irgym.networks.encoders import Batch, Encoder, EncoderSpec, orthogonal_linear
from irgym.policies.layout import ActionLayout


class Actor(nn.Module):
    """An encoder and a linear head that scores every alternative of every segment.

    Attributes:
        encoder: From observations to features.
        layout: The meaning of the scores.
        pointer: Head that scores candidates; None if there are none.
        pair_scores: Shape [P, W, W]; bonus of a choice in the first segment of a pair of `layout` on the
            scores of the second segment; None if the layout has no pairs.
    """

    kind = "actor"

    def __init__(self, spec: EncoderSpec, layout: ActionLayout, observation: str = "") -> None:
        super().__init__()
        self.spec = spec
        self.layout = layout
        self.encoder: Encoder = spec.build()
        self.encoder.observation = observation
        # A small gain makes the first policy almost independent of the state; the bias makes it try a
        # kind with many choices more often than one without parameters, such as an early stop.
        self.scores = orthogonal_linear(self.encoder.features, layout.segments * layout.width, gain=0.01)
        with torch.no_grad():
            self.scores.bias[: len(layout.prior)] = torch.as_tensor(np.log(layout.prior))
        self.pointer = pointer_for(self.encoder, layout)
        pairs = len(layout.earlier)
        zeros = torch.zeros(pairs, layout.width, layout.width)
        self.pair_scores: nn.Parameter | None = nn.Parameter(zeros) if pairs else None

    def encode(self, batch: Batch, legal: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return features of shape [B, features] and scores of shape [B, S, W + K]; see `forward`."""
        if self.pointer is None:
            features = cast(Tensor, self.encoder(batch))
            return features, self._fixed(features)
        encoded = cast(CandidateEncoder, self.encoder).encode(batch)
        return encoded.states, self.pointer.beside(self._fixed(encoded.states), encoded, legal)

    def _fixed(self, features: Tensor) -> Tensor:
        """Return the scores of the alternatives that all states share, shape [B, S, W]."""
        scores = cast(Tensor, self.scores(features))
        return scores.view(-1, self.layout.segments, self.layout.width)

    def forward(self, batch: Batch, legal: Tensor | None = None) -> Tensor:
        """Return scores of shape [B, S, W + K].

        Args:
            batch: Observations.
            legal: Of the same shape. It changes no score: candidates are checked against it.
        """
        return self.encode(batch, legal)[1]


def pair_scores_of(network: nn.Module) -> NDArray[np.float32] | None:
    """Return the pair scores of a network as an array; None if it has none."""
    pair_scores = getattr(network, "pair_scores", None)
    return None if pair_scores is None else pair_scores.detach().numpy()


class ActorCritic(nn.Module):
    """An actor and a value head, on the actor's encoder or on a separate one.

    The value may have K more inputs than the policy, such as a cheap estimate of the state's cost. A hidden
    layer combines them with the critic's features, since the value is not linear in both.

    Attributes:
        actor: The policy's network.
        critic: The encoder of the value; None if it shares the actor's.
        privileged: K, the number of additional inputs of the value.
    """

    def __init__(
        self,
        spec: EncoderSpec,
        layout: ActionLayout,
        shared: bool,
        privileged: int = 0,
        observation: str = "",
    ) -> None:
        super().__init__()
        self.actor = Actor(spec, layout, observation)
        self.critic: Encoder | None = None if shared else spec.build()
        self.privileged = privileged
        features = self.actor.encoder.features
        self.value: nn.Module = orthogonal_linear(features, 1, gain=1.0)
        if privileged > 0:
            meeting = orthogonal_linear(features + privileged, features, gain=2**0.5)
            self.value = nn.Sequential(meeting, nn.Tanh(), self.value)

    def critic_parameters(self) -> list[nn.Parameter]:
        """Return the parameters that only the value depends on."""
        encoder = [] if self.critic is None else list(self.critic.parameters())
        return [*encoder, *self.value.parameters()]

    def adapt(self, batch: Batch) -> None:
        """Update the input statistics of both encoders, if they normalise their inputs."""
        self.actor.encoder.adapt(batch)
        if self.critic is not None:
            self.critic.adapt(batch)

    def _value(self, features: Tensor, privileged: Tensor | None) -> Tensor:
        if self.privileged > 0:
            if privileged is None or privileged.shape[-1] != self.privileged:
                raise ValueError(f"the value needs {self.privileged} numbers beside the observation")
            features = torch.cat([features, privileged], dim=-1)
        return cast(Tensor, self.value(features)).squeeze(-1)

    def values(self, batch: Batch, privileged: Tensor | None = None) -> Tensor:
        """Return the values of states, shape [B]; `privileged` has shape [B, K]."""
        encoder = self.actor.encoder if self.critic is None else self.critic
        return self._value(cast(Tensor, encoder(batch)), privileged)

    def forward(self, batch: Batch, privileged: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return scores as the actor does, and values of shape [B]; `privileged` has shape [B, K]."""
        if self.critic is not None:
            return self.actor.forward(batch), self.values(batch, privileged)
        features, scores = self.actor.encode(batch)
        return scores, self._value(features, privileged)
