"""Interface of policies, without any tensor library, for searches, evaluation and the command line."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from irgym.core.actions import Action, Mask


class Policy(Protocol):
    """Chooses actions for a batch of states.

    Attributes:
        observation: Name of the observation that it reads, as `Task.observe` takes it; empty: the default.
    """

    @property
    def observation(self) -> str:
        """Name of the observation that it reads."""
        ...

    def act(
        self,
        observations: Sequence[Any],
        masks: Sequence[Mask],
        rng: np.random.Generator | None,
        temperature: float = 1.0,
    ) -> list[Action]:
        """Return an action for each state: sampled with `rng`, or the most probable where it is None.

        Args:
            observations: One for each state.
            masks: One for each state.
            rng: Samples the actions.
            temperature: Divisor of the scores before sampling; above 1 explores more.
        """
        ...


class Playing(Protocol):
    """A policy with a memory of the episodes that it plays from their start, as recurrent ones have."""

    def act(
        self,
        episodes: Sequence[int],
        observations: Sequence[Any],
        masks: Sequence[Mask],
        rng: np.random.Generator | None,
        temperature: float = 1.0,
    ) -> list[Action]:
        """Return the next action of each of some episodes, told by their numbers; see `Policy.act`."""
        ...


def playing(policy: Policy) -> Playing | None:
    """Return a policy with a memory for new episodes; None where it remembers nothing."""
    remember = getattr(policy, "playing", None)
    return None if remember is None else remember()
