"""A trained policy: a network that chooses actions, and the small file that holds it."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from irgym.base.errors import IrgymError
from irgym.core.actions import Action, BoolArray, Mask
from irgym.core.limits import UNLIMITED, Limits
from irgym.networks import likelihood, storage
from irgym.networks.actor_critic import Actor, pair_scores_of
from irgym.networks.encoders import spec_from_dict
from irgym.networks.q_ensemble import QEnsemble
from irgym.networks.q_network import QNetwork
from irgym.policies import heads
from irgym.policies.files import Head, restored
from irgym.policies.layout import ActionLayout, IntArray
from irgym.policies.scoring import ScoringPolicy


class TorchPolicy(ScoringPolicy):
    """A policy of an actor, a Q-network, or several; of Q-networks, probabilities are the softmax of values.

    Attributes:
        network: Scores actions.
    """

    def __init__(
        self,
        network: Actor | QNetwork | QEnsemble,
        environment: str = "",
        targets: tuple[str, ...] = (),
        limits: Limits = UNLIMITED,
    ) -> None:
        super().__init__(environment, targets, limits)
        self.network = network

    @property
    def layout(self) -> ActionLayout:
        """The meaning of the scores."""
        return self.network.layout

    @property
    def observation(self) -> str:
        """Name of the observation that it reads; empty: the task's default."""
        return self.network.encoder.observation

    @property
    def finite(self) -> bool:
        """Whether all weights, and the statistics that normalise inputs, are finite numbers."""
        return all(
            bool(value.isfinite().all())
            for value in self.network.state_dict().values()
            if value.is_floating_point()
        )

    @property
    def pair_scores(self) -> NDArray[np.float32] | None:
        """Scores that link slots; None if there are none."""
        return pair_scores_of(self.network)

    def check_observation(self, observation: Any) -> None:
        """Make sure that the encoder can read an observation.

        Raises:
            IrgymError: It cannot.
        """
        self.network.encoder.collate([observation])

    def scores(
        self, observations: Sequence[Any], masks: Sequence[Mask]
    ) -> tuple[NDArray[np.float32], BoolArray]:
        """Return the scores of B states and what is legal there, both of shape [B, S, W + K].

        Raises:
            IrgymError: An observation differs in shape from those of the training.
        """
        legal = self.layout.legal(masks)
        with torch.inference_mode():
            batch = self.network.encoder.collate(observations)
            scores = self.network.forward(batch, torch.as_tensor(legal)).numpy()
        return scores, legal

    def best(self, scores: NDArray[np.float32], legal: BoolArray) -> IntArray:
        """Return the best choices by the network's scores, shape [B, S]; see `act`."""
        if isinstance(self.network, Actor):
            return super().best(scores, legal)
        return heads.greedy(scores, legal, self.layout, self.pair_scores)

    def log_probability(
        self, observations: Sequence[Any], masks: Sequence[Mask], actions: Sequence[Action]
    ) -> NDArray[np.float64]:
        """Return the log-probability of one action for each of B states, shape [B].

        Raises:
            IrgymError: An observation differs in shape from those of the training.
        """
        scores, legal = self.scores(observations, masks)
        layout = self.layout
        choices = torch.as_tensor(layout.choices(actions, masks))
        pair_scores = None if self.pair_scores is None else torch.as_tensor(self.pair_scores)
        evaluated = likelihood.evaluate(
            torch.as_tensor(scores), torch.as_tensor(legal), choices, layout, pair_scores
        )
        return evaluated.log_prob.numpy().astype(np.float64)

    def save(self, path: Path) -> None:
        """Write the weights and all data needed to use them.

        Raises:
            IrgymError: A weight is not finite.
            StorageError: The file cannot be written.
        """
        if not self.finite:
            raise IrgymError(f"the policy for {path} has weights that are not finite: train with a lower lr")
        head = Head(self.environment, self.targets, self.layout, self.observation, self.limits)
        content = head.content() | {
            "network": self.network.kind,
            "encoder": self.network.spec.to_dict(),
            "members": len(self.network.members) if isinstance(self.network, QEnsemble) else 1,
            # Copies: a learner's weights are views of one vector, which would be stored as a whole.
            "weights": {name: value.clone() for name, value in self.network.state_dict().items()},
        }
        storage.write(path, content)

    @staticmethod
    def load(path: Path) -> "TorchPolicy":
        """Read what `save` wrote.

        Raises:
            StorageError: The file is missing, damaged, no policy, or of a newer format.
        """
        return restored(path, storage.read(path, "policy"), _restore)


def _restore(content: dict[str, Any]) -> TorchPolicy:
    head = Head.of(content)
    spec = spec_from_dict(cast(dict[str, Any], content["encoder"]))
    ensemble = partial(QEnsemble, members=content.get("members", 1))
    networks = {Actor.kind: Actor, QNetwork.kind: QNetwork, QEnsemble.kind: ensemble}
    build = partial(networks[content["network"]], spec, head.layout, head.observation)
    with torch.device("meta"):  # sizes that are told, and not those of the weights, might fill the memory
        shapes = {name: value.shape for name, value in build().state_dict().items()}
    if shapes != {name: value.shape for name, value in content["weights"].items()}:
        raise ValueError("weights of other sizes than the network's")
    network = build()
    network.load_state_dict(content["weights"])
    return TorchPolicy(network, head.environment, head.targets, head.limits)
