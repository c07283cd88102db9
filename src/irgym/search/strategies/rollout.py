"""A policy without a search: its episodes, and the strategy that evaluates the most probable one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from irgym.core.actions import Action, ActionSpace, Mask
from irgym.core.errors import IrgymError
from irgym.core.lockstep import Turn, play
from irgym.core.policy import Policy
from irgym.core.schedule import Schedule
from irgym.core.task import Task
from irgym.search.session import Node, Session


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
        [path] = rollout(session.task, policy_of(session), 1, None)
        session.costs(candidates(session.task, path))


def policy_of(session: Session) -> Policy:
    """Return the policy of a session.

    Raises:
        IrgymError: It has none.
    """
    if session.policy is None:
        raise IrgymError("this search needs a policy: name one that ships, or a folder with a run")
    return session.policy


def rollout(
    task: Task[Any],
    policy: Policy,
    episodes: int,
    rng: np.random.Generator | None,
    temperature: float = 1.0,
) -> list[list[Node]]:
    """Return the nodes of episodes of a policy, in lockstep; the most probable one where `rng` is None.

    Where states know their costs, as with op counts, episodes go on to the horizon: an action that ends one
    is taken only if nothing else applies, for `outcome` takes the best state of the way at no cost.

    Args:
        task: The program.
        policy: Chooses the actions.
        episodes: Number of episodes.
        rng: Samples the actions.
        temperature: Scores are divided by it before sampling.
    """
    known = task.job(task.initial()).known is not None

    def choose(turn: Turn) -> list[Action]:
        masks = [_onward(task.space, mask) for mask in turn.masks] if known else turn.masks
        return policy.act(turn.observations(policy.observation), masks, rng, temperature)

    return [
        [Node(state, Schedule(tuple(actions[:steps]))) for steps, state in enumerate(states)]
        for states, actions in play([task] * episodes, choose)
    ]


def candidates(task: Task[Any], path: Sequence[Node]) -> Sequence[Node]:
    """Return the nodes of an episode that are worth evaluating.

    A policy tends to pass through its best states, and where an action ends the episode, it could have ended
    in any of them. Where an episode ends of itself, or is not `gradual`, only its end is what the policy
    means.
    """
    if task.job(path[0].state).known or (task.gradual and task.space.stops.any()):
        return path
    return path[-1:]


def outcome(task: Task[Any], path: Sequence[Node]) -> Node:
    """Return what an episode comes to: its last state; the cheapest one where states know their costs."""
    known = [task.job(node.state).known for node in path]
    costs = [measurement.cost for measurement in known if measurement is not None]
    return path[int(np.argmin(costs))] if len(costs) == len(path) else path[-1]


def _onward(space: ActionSpace, mask: Mask) -> Mask:
    """Return the mask without what ends the episode, unless nothing else applies."""
    others = space.onward(mask)
    return others if space.takeable(others) else mask
