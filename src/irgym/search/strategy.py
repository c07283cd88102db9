"""The interface of search strategies, and the properties that they may declare."""

from typing import Protocol

import numpy as np

from irgym.search.session import Session


class Strategy(Protocol):
    """Search strategy: proposes nodes to a session until it has no more to propose."""

    def run(self, session: Session, rng: np.random.Generator) -> None:
        """Search; `Session.costs` ends the search by raising `Exhausted` when the budget is spent."""
        ...


class StrategyFactory(Protocol):
    """Factory of a strategy with its default parameters."""

    def __call__(self) -> Strategy:
        """Return the strategy."""
        ...


def needs_policy(strategy: Strategy) -> bool:
    """Say whether a strategy must be guided by a policy: whether it declares `needs_policy`."""
    return bool(getattr(strategy, "needs_policy", False))


def is_complete(strategy: Strategy) -> bool:
    """Say whether a strategy has evaluated every program once it ends: whether it declares `complete`."""
    return bool(getattr(strategy, "complete", False))
