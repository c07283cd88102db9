"""Policies without torch: they load fast and only need numpy."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.core.actions import BoolArray, Mask
from irgym.policies import heads
from irgym.policies.encoders import PlainEncoder
from irgym.policies.files import Content, Head, checked, read_arrays, restored
from irgym.policies.layers import FloatArray, IntArray
from irgym.policies.layout import ActionLayout
from irgym.policies.sb3 import SB3, Sb3Network, Sb3Policy
from irgym.policies.scorers import ENCODERS, HEADS, ScoringHead, members_of
from irgym.policies.scoring import ScoringPolicy


class PlainPolicy(ScoringPolicy):
    """The policy of a file: the same scores as torch's but for rounding.

    Args:
        head: The actions and where the policy comes from.
        encoder: From observations to features.
        scoring: From features to scores.
        finite: Whether all weights are finite numbers.
        pair_scores: Scores that link slots; None if there are none.
        actor: Whether scores are an actor's; else they are values.
    """

    def __init__(
        self,
        head: Head,
        encoder: PlainEncoder,
        scoring: ScoringHead,
        *,
        finite: bool,
        pair_scores: NDArray[np.float32] | None = None,
        actor: bool = True,
    ) -> None:
        super().__init__(head.environment, head.targets, head.limits)
        self.finite = finite
        self._head = head
        self._encoder = encoder
        self._scoring = scoring
        self._pairs = pair_scores
        self._actor = actor

    @staticmethod
    def load(path: Path) -> "PlainPolicy | Sb3Policy | None":
        """Return the policy of a file; None for one of a network that only torch computes.

        Raises:
            StorageError: The file is missing, damaged, no policy, or of another format.
        """
        return restored(path, checked(path, "policy", read_arrays), _built)

    @property
    def layout(self) -> ActionLayout:
        """The meaning of the scores."""
        return self._head.layout

    @property
    def observation(self) -> str:
        """Name of the observation that it reads; empty: the task's default."""
        return self._head.observation

    @property
    def pair_scores(self) -> FloatArray | None:
        """Scores that link slots; None if there are none."""
        return self._pairs

    def check_observation(self, observation: Any) -> None:
        """Check that an observation has the shape of those of the training.

        Raises:
            IrgymError: It differs.
        """
        self._encoder.collate([observation])

    def scores(self, observations: Sequence[Any], masks: Sequence[Mask]) -> tuple[FloatArray, BoolArray]:
        """Return the scores of B states and what is legal there, both of shape [B, S, W + K].

        Raises:
            IrgymError: An observation differs in shape from those of the training.
        """
        legal = self.layout.legal(masks)
        encoded = self._encoder.encode(self._encoder.collate(observations))
        return self._scoring(encoded, legal), legal

    def best(self, scores: FloatArray, legal: BoolArray) -> IntArray:
        """Return the best choices by scores, shape [B, S]; see `act`."""
        if self._actor:
            return super().best(scores, legal)
        return heads.greedy(scores, legal, self.layout, self._pairs)


def _built(content: Content) -> PlainPolicy | Sb3Policy | None:
    """Return the policy of a file's content; None for one of a network that only torch computes."""
    weights, network = content["weights"], content["network"]
    if network == SB3:
        head = Head.of(content)
        model = Sb3Network(weights, content["activation"])
        return Sb3Policy(
            model, head.layout.space, head.observation, head.environment, head.targets, head.limits
        )
    settings = content["encoder"]
    if settings["kind"] not in ENCODERS:
        return None
    head = Head.of(content)
    networks = members_of(weights, content["members"]) if network == "q-ensemble" else [weights]
    return PlainPolicy(
        head,
        ENCODERS[settings["kind"]](networks, settings),
        HEADS[network](networks, head.layout),
        finite=all(np.isfinite(value).all() for value in weights.values()),
        pair_scores=weights.get("pair_scores"),
        actor=network == "actor",
    )
