"""A policy without a search: its episodes, and the strategy that evaluates the most probable one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from irgym.core.actions import Mask
from irgym.core.errors import IrgymError
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
    root = Node(task.initial(), Schedule())
    mask = _mask_onward if task.job(root.state).known else _mask
    paths = [[root] for _ in range(episodes)]
    while live := [path for path in paths if len(path) <= task.horizon and not task.terminal(path[-1].state)]:
        observations = [task.observe(path[-1].state) for path in live]
        masks = [mask(task, path[-1].state) for path in live]
        actions = policy.act(observations, masks, rng, temperature)
        states = task.step_batch([path[-1].state for path in live], actions)
        for path, action, state in zip(live, actions, states, strict=True):
            path.append(Node(state, path[-1].schedule.then(action)))
    return paths


def candidates(task: Task[Any], path: Sequence[Node]) -> Sequence[Node]:
    """Return the nodes of an episode that are worth evaluating.

    A policy tends to pass through its best states, and where an action ends the episode, it could have ended
    in any of them. Where an episode ends of itself, only its end is what the policy means.
    """
    return path if task.space.stops.any() or task.job(path[0].state).known else path[-1:]


def outcome(task: Task[Any], path: Sequence[Node]) -> Node:
    """Return what an episode comes to: its last state; the cheapest one where states know their costs."""
    known = [task.job(node.state).known for node in path]
    costs = [measurement.cost for measurement in known if measurement is not None]
    return path[int(np.argmin(costs))] if len(costs) == len(path) else path[-1]


def _mask(task: Task[Any], state: Any) -> Mask:
    return task.mask(state)


def _mask_onward(task: Task[Any], state: Any) -> Mask:
    """Return the mask without what ends the episode, unless nothing else applies."""
    mask = task.mask(state)
    others = task.space.onward(mask)
    return others if task.space.takeable(others) else mask
