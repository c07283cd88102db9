"""Results without a search: of the compiler's schedules, of a policy's episode, and of a few sketches."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from irgym.core import capabilities
from irgym.core.environment import DEFAULT, Environment
from irgym.core.task import Task
from irgym.search.choosing import ChosenSearch
from irgym.search.policies import can_lead, policy_for
from irgym.search.session import Session
from irgym.search.strategies.rollout import Rollout
from irgym.search.walks import alone, follow

NAME = "quick"
"""Name of the search in results."""


@dataclass(frozen=True)
class Quick:
    """The known schedules, the most probable episode of the policy if there is one, and some sketches.

    Attributes:
        sketches: Number of sketches, where the task has some.
    """

    sketches: int = 4

    def run(self, session: Session, rng: np.random.Generator) -> None:
        """Evaluate them one after the other: all that there is time for."""
        if session.policy is not None:
            Rollout().run(session, rng)
        for _ in range(self.sketches):
            sketch = None if session.progress >= 1.0 else capabilities.sketch(session.task, rng)
            if sketch is None:
                return
            session.costs(alone(session, follow(session, session.root, sketch))[-1:])


def quick_search(environment: Environment, task: Task[Any]) -> ChosenSearch:
    """Return the quick search, with the policy that ships if there is one that can lead here.

    Raises:
        StorageError: The policy cannot be read.
    """
    if not can_lead(environment, task):
        return ChosenSearch(NAME, Quick(), None, None)
    return ChosenSearch(NAME, Quick(), DEFAULT, policy_for(environment, DEFAULT, task))
