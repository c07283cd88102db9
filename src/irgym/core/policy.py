"""What searches, evaluation and the command line need of a policy, without naming a tensor library."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from irgym.core.actions import Action, Mask


class Policy(Protocol):
    """Chooses actions for a batch of states."""

    def act(
        self, observations: Sequence[Any], masks: Sequence[Mask], rng: np.random.Generator | None
    ) -> list[Action]:
        """Return an action for each state: sampled with `rng`, or the most probable where it is None."""
        ...

    def probabilities(self, observations: Sequence[Any], masks: Sequence[Mask]) -> list[NDArray[np.float64]]:
        """Return for each state the probability of every action of the space's `flat` order."""
        ...
