"""A policy without a search: evaluate the most probable episode."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from irgym.search.rollouts import candidates, most_probable, outcome, policy_of
from irgym.search.session import Session


@dataclass(frozen=True)
class Rollout:
    """The most probable episode of the policy, its `candidates` evaluated: the policy without a search."""

    needs_policy: ClassVar[bool] = True

    def run(self, session: Session, rng: np.random.Generator) -> None:
        """Roll out and evaluate.

        Raises:
            IrgymError: The session has no policy.
        """
        del rng
        path = most_probable(session.task, policy_of(session), lambda: session.progress >= 1.0)
        session.begun.append(outcome(session.task, path))
        session.costs(candidates(session.task, path))
