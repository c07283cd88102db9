"""Base of policies that score actions."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.base.errors import IrgymError
from irgym.core.actions import Action, ActionSpace, BoolArray, Mask
from irgym.core.limits import UNLIMITED, Limits
from irgym.policies import heads
from irgym.policies.layout import ActionLayout, IntArray

NAMED = 5
"""Actions that a message names."""


class ScoringPolicy(ABC):
    """Implements `irgym.policies.policy.Policy` by scores of actions.

    Attributes:
        environment: Name of the environment that it was trained on.
        targets: Names of the targets that it was trained on; none where they are unknown, or where costs
            depend on no target.
        limits: The limits of the episodes that it was trained in.
    """

    def __init__(
        self, environment: str = "", targets: tuple[str, ...] = (), limits: Limits = UNLIMITED
    ) -> None:
        self.environment = environment
        self.targets = targets
        self.limits = limits

    @property
    @abstractmethod
    def layout(self) -> ActionLayout:
        """The meaning of the scores."""

    @property
    @abstractmethod
    def observation(self) -> str:
        """Name of the observation that it reads; empty: the task's default."""

    @property
    def pair_scores(self) -> NDArray[np.float32] | None:
        """Scores that link slots, see `irgym.networks.actor_critic.Actor`; None if there are none."""
        return None

    @property
    def space(self) -> ActionSpace:
        """The actions that it chooses among."""
        return self.layout.space

    @abstractmethod
    def check_observation(self, observation: Any) -> None:
        """Check that the policy can read an observation.

        Raises:
            IrgymError: It differs in shape from those of the training.
        """

    @abstractmethod
    def scores(
        self, observations: Sequence[Any], masks: Sequence[Mask]
    ) -> tuple[NDArray[np.float32], BoolArray]:
        """Return the scores of B states and what is legal there, both of shape [B, S, W + K].

        Raises:
            IrgymError: An observation differs in shape from those of the training.
        """

    def best(self, scores: NDArray[np.float32], legal: BoolArray) -> IntArray:
        """Return the best choices by scores, shape [B, S]; see `act`."""
        return heads.likeliest(scores, legal, self.layout, self.pair_scores)

    def act(
        self,
        observations: Sequence[Any],
        masks: Sequence[Mask],
        rng: np.random.Generator | None,
        temperature: float = 1.0,
    ) -> list[Action]:
        """Return an action for each state: sampled with `rng`, or the best kind and parameters if None.

        Without `rng`, an actor ends an episode with candidates only if that is likelier than going on.

        Scores are divided by the temperature before sampling.

        Raises:
            IrgymError: An observation differs in shape from those of the training.
        """
        if not observations:
            return []
        scores, legal = self.scores(observations, masks)
        if rng is None:
            return self.layout.actions(self.best(scores, legal), masks)
        heated = scores / np.float32(temperature)
        pairs = None if self.pair_scores is None else self.pair_scores / np.float32(temperature)
        draw = heads.sample(heated, legal, self.layout, rng, pair_scores=pairs)
        return self.layout.actions(draw.choices, masks)

    def check(self, space: ActionSpace, observation: Any) -> None:
        """Check that the policy suits a task.

        Args:
            space: The task's actions.
            observation: Any observation of the task.

        Raises:
            IrgymError: The actions or the shape of the observation differ from those of the training.
        """
        if space != self.space:
            raise IrgymError(
                "the policy was trained on other actions than the task has "
                f"({_difference(self.space, space)}): choose a policy trained on this environment"
            )
        self.check_observation(observation)


def _difference(trained: ActionSpace, present: ActionSpace) -> str:
    """Return how the actions of a policy differ from those of a task, in words."""
    known, found = ([kind.name for kind in space.kinds] for space in (trained, present))
    parts = [
        f"only the {owner} has {_few(alone)}"
        for owner, own, other in (("policy", known, found), ("task", found, known))
        if (alone := [name for name in own if name not in other])
    ]
    return "; ".join(parts) or "their order or parameters differ"


def _few(names: Sequence[str]) -> str:
    """Return some names, and how many others there are."""
    rest = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {rest} others" if rest > 0 else "")
