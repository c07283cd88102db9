"""The interface of search strategies, and the properties that they may declare."""

from typing import Any, Protocol

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


def factory_fault(factory: Any) -> str:
    """Return in words how another package's search is wrong; empty where it is right."""
    if not callable(factory):
        return "cannot be called to make a strategy"
    try:
        strategy = factory()
    except Exception as error:  # noqa: BLE001  (nothing is known of that package)
        return f"makes no strategy without arguments, but a {type(error).__name__} ({error})"
    return "" if callable(getattr(strategy, "run", None)) else "makes a strategy without a method `run`"


def needs_policy(strategy: Strategy) -> bool:
    """Say whether a strategy must be guided by a policy: whether it declares `needs_policy`."""
    return bool(getattr(strategy, "needs_policy", False))


def takes_policy(strategy: Strategy) -> bool:
    """Say whether a policy may lead a strategy: whether it needs one, or declares `takes_policy`."""
    return needs_policy(strategy) or bool(getattr(strategy, "takes_policy", False))


def is_complete(strategy: Strategy) -> bool:
    """Say whether a strategy has evaluated every program once it ends: whether it declares `complete`."""
    return bool(getattr(strategy, "complete", False))
