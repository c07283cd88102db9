"""Rewards of steps: some of no task in particular, and one that sees states and actions."""

from dataclasses import dataclass
from typing import Any, cast

from irgym.core.actions import Action
from irgym.core.reward import EpisodeCosts, Reward, Transition


def paid(reward: Reward, costs: EpisodeCosts, final: bool) -> float:
    """Return the reward of a step of no task in particular."""
    return reward(Transition(cast(Any, None), (None, None), 0, Action(0), costs, final))


@dataclass(frozen=True)
class Discouraging:
    """Minus 1 for an action of the first kind, and what the sum of the values rises by."""

    every: int = 0
    shaped: bool = False

    def __call__(self, transition: Transition) -> float:
        assert transition.task.accepts(transition.state, transition.action)
        rise = sum(transition.next_state[0]) - sum(transition.state[0])
        return rise - float(transition.action.kind == 0)
