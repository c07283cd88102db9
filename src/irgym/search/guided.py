"""Search led by a policy: rollouts find good regions, random changes of the best schedules refine them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.core.errors import IrgymError
from irgym.core.policy import Policy
from irgym.core.schedule import Schedule
from irgym.core.task import Task
from irgym.search.evolutionary import select
from irgym.search.mutation import mutate, pick
from irgym.search.session import Node, Session


@dataclass(frozen=True)
class Guided:
    """First the most probable episode, then sampled episodes by turns with changes of the best schedules.

    Every state of an episode is evaluated: a policy tends to pass through its best states. The sampling
    temperature rises from round to round, from 1 (the policy itself) to `hottest`, and falls back to 1.

    Attributes:
        rollouts: Episodes sampled in a round, in lockstep.
        mutations: Changed schedules evaluated in a round.
        elite: Number of schedules that changes start from.
        heating: Factor by which the temperature rises in a round.
        hottest: Greatest temperature.
    """

    rollouts: int = 4
    mutations: int = 24
    elite: int = 8
    heating: float = 1.25
    hottest: float = 4.0

    def run(self, session: Session, rng: np.random.Generator) -> None:
        """Search until the budget is spent.

        Raises:
            IrgymError: The session has no policy.
        """
        policy = _policy(session)
        [greedy] = rollout(session.task, policy, 1, None)
        elite = select(session, greedy, self.elite)
        temperature = 1.0
        while True:
            paths = rollout(session.task, policy, self.rollouts, rng, temperature)
            elite = select(session, [*elite, *(node for path in paths for node in path)], self.elite)
            changed = [mutate(session, pick(elite, rng), rng) for _ in range(self.mutations)]
            elite = select(session, [*elite, *changed], self.elite)
            temperature *= self.heating
            if temperature > self.hottest:
                temperature = 1.0


@dataclass(frozen=True)
class Rollout:
    """The most probable episode of the policy, all its states evaluated: the policy without a search."""

    def run(self, session: Session, rng: np.random.Generator) -> None:
        """Roll out and evaluate.

        Raises:
            IrgymError: The session has no policy.
        """
        del rng
        [path] = rollout(session.task, _policy(session), 1, None)
        session.costs(path)


def _policy(session: Session) -> Policy:
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

    Args:
        task: The program.
        policy: Chooses the actions.
        episodes: Number of episodes.
        rng: Samples the actions.
        temperature: Probabilities are raised to 1 / temperature and scaled to a sum of 1.
    """
    root = Node(task.initial(), Schedule())
    paths = [[root] for _ in range(episodes)]
    while live := [path for path in paths if len(path) <= task.horizon and not task.terminal(path[-1].state)]:
        observations = [task.observe(path[-1].state) for path in live]
        masks = [task.mask(path[-1].state) for path in live]
        if rng is None:
            actions = policy.act(observations, masks, None)
        else:
            actions = [
                task.space.flat[int(rng.choice(len(task.space.flat), p=_heated(row, temperature)))]
                for row in policy.probabilities(observations, masks)
            ]
        states = task.step_batch([path[-1].state for path in live], actions)
        for path, action, state in zip(live, actions, states, strict=True):
            path.append(Node(state, path[-1].schedule.then(action)))
    return paths


def _heated(probabilities: NDArray[np.float64], temperature: float) -> NDArray[np.float64]:
    """Return probabilities raised to 1 / temperature, scaled to a sum of 1; zeros stay zero."""
    heated = np.power(probabilities, 1.0 / temperature)
    return heated / heated.sum()
