"""Ape-X DQN (Horgan et al., arXiv 1803.00933): actors on a farm, one learner with a prioritised replay.

Acting and learning overlap: while the actors play the episodes of an iteration, the learner takes gradient
steps on the episodes of earlier iterations. Both start from the same weights and finish within the iteration,
so nothing is in flight between iterations and the result does not depend on timing.
"""

import logging
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from irgym.agents.algorithms.apex_actor import Assignment, Experience, pack
from irgym.agents.algorithms.q_learner import QLearner, QLearnerConfig
from irgym.agents.episodes.played import Outcomes, add_up, lost, settle
from irgym.agents.episodes.replay import first_errors
from irgym.agents.episodes.rollout import draw_tasks, ideal_costs
from irgym.agents.episodes.trajectories import Trajectories
from irgym.agents.hyperparameters import CountOrNone, Share, Weight
from irgym.agents.learner import Statistics
from irgym.agents.problem import Problem
from irgym.base.errors import IrgymError
from irgym.core.cost import Call
from irgym.measure.evaluators import Measured
from irgym.measure.isolation.protocol import Raised, Reply, Returned
from irgym.measure.replies import error_of, failure_of

FEWEST = 8
"""Least default number of actors: with fewer, their epsilons hardly differ."""

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class ApexConfig(QLearnerConfig):
    """Hyper-parameters of Ape-X DQN.

    In Python, `Problem.makers` says how the workers make the tasks, and the evaluator must be `Measured`, as
    every bench's is.
    """

    name: ClassVar[str] = "Ape-X"
    actors: CountOrNone = 0
    """Actors that share the episodes of an iteration. The result depends on it, not on the number of workers.

    0 for the number of the farm's workers at the start of the training, and at least 8.
    """
    epsilon: Share = 0.4
    """Share of uniformly random legal actions of the first actor."""
    epsilon_exponent: Weight = 7.0
    """Actor i of N, from 0, explores with epsilon ** (1 + epsilon_exponent * i / (N - 1))."""

    def check(self) -> None:
        """Check that the values are consistent.

        Raises:
            IrgymError: They are not; the message says which.
        """
        super().check()
        if self.actors > self.episodes:
            raise IrgymError(
                f"actors of {self.name} is {self.actors}: choose at most as many as episodes, or 0"
            )

    def build(self, problem: Problem) -> "Apex":
        """Return a learner at the beginning of its training.

        Raises:
            IrgymError: A value is invalid, or other processes cannot play the problem.
        """
        self.check()
        farm = problem.evaluator
        if not isinstance(farm, Measured):
            raise IrgymError(
                "Ape-X acts on a farm and measures all that its actors play, which this problem does not "
                "allow: use dqn, or train without a screen"
            )
        if len(problem.makers) != len(problem.tasks):
            raise IrgymError("Ape-X acts in other processes: give the problem a maker for each task")
        actors = self.actors or min(self.episodes, max(FEWEST, farm.workers))
        return Apex(replace(self, actors=actors), problem, farm)


def epsilons(config: ApexConfig) -> list[float]:
    """Return the epsilon of each actor (section 4.1 of the paper); a single actor has the first one's."""
    last = max(1, config.actors - 1)
    return [config.epsilon ** (1 + config.epsilon_exponent * actor / last) for actor in range(config.actors)]


class Apex(QLearner[ApexConfig]):
    """Ape-X DQN in training. The main path is `iterate`."""

    def __init__(self, config: ApexConfig, problem: Problem, farm: Measured) -> None:
        super().__init__(config, problem)
        self._farm = farm
        self._epsilons = epsilons(config)

    def iterate(self) -> tuple[Outcomes, Statistics]:
        """Let the actors play while the learner trains; then add their episodes to the replay."""
        shares = self._shares()
        calls = [assignment.call for assignment in self._assignments(shares)]
        # The gradient steps run in the thread: an interrupt ends the calls at once, and the steps end soon.
        started = time.perf_counter()
        with ThreadPoolExecutor(1, thread_name_prefix="learner") as background:
            learning = background.submit(self.learn)
            replies = self._farm.run(calls)
            lr, loss = self.lr, learning.result()
        played_s = time.perf_counter() - started
        outcomes: list[Outcomes] = []
        brought: list[tuple[Trajectories, Experience]] = []
        for share, call, reply in zip(shares, calls, replies, strict=True):
            experience = _experience(call, reply)
            if experience is None:
                outcomes.append(lost(len(share)))
                continue
            trajectories, outcome = self._settle(share, experience)
            outcomes.append(outcome)
            brought.append((trajectories, experience))
        self._remember(brought)
        self.end_iteration()
        epsilon = float(np.mean(self._epsilons))
        return replace(add_up(outcomes), collecting_s=played_s), Statistics(
            value_loss=loss, epsilon=epsilon, lr=lr, grad_norm=self.descent.mean_norm()
        )

    def _shares(self) -> list[list[int]]:
        """Draw the tasks of an iteration; return the places of each actor's share."""
        drawn = draw_tasks(range(len(self.problem.tasks)), self.config.episodes, self.rng)
        return [share.tolist() for share in np.array_split(drawn, self.config.actors)]

    def _assignments(self, shares: Sequence[Sequence[int]]) -> list[Assignment]:
        """Return the actors' assignments, with the current weights."""
        network = pack(self.acting)
        return [
            Assignment(
                makers=tuple(self.problem.makers[place] for place in share),
                network=network,
                reward=self.problem.reward,
                epsilon=epsilon,
                seed=(self.config.seed, self.iteration, actor),
            )
            for actor, (share, epsilon) in enumerate(zip(shares, self._epsilons, strict=True))
        ]

    def _settle(self, share: Sequence[int], experience: Experience) -> tuple[Trajectories, Outcomes]:
        """Record an actor's measurements and reward its episodes."""
        problem, episodes = self.problem, experience.episodes
        measurements = self._farm.record(episodes.jobs, experience.measurements)
        tasks = [problem.tasks[place] for place in share]
        ideals = ideal_costs(tasks, problem.peaks)
        return settle(episodes, tasks, measurements, problem.reward, ideals)

    def _remember(self, brought: Sequence[tuple[Trajectories, Experience]]) -> None:
        """Add the actors' episodes to the replay, with priorities from the actors' values."""
        n, gamma = self.config.n_step, self.config.gamma
        for trajectories, _ in brought:
            self.adapt(trajectories)
        for trajectories, seen in brought:
            errors = first_errors(trajectories, seen.taken, seen.best, n, gamma, self.scale.factor)
            self.replay.add(trajectories, n, gamma, errors)


def _experience(call: Call, reply: Reply) -> Experience | None:
    """Return an actor's experience; None if its process died.

    Raises:
        IrgymError: The actor reported an error that the user must fix.
        RuntimeError: The actor has a bug.
    """
    if isinstance(reply, Returned):
        return reply.value
    if isinstance(reply, Raised):
        raise error_of(call, reply)
    _LOG.warning("the episodes of an actor are lost (%s)", failure_of(reply).failure)
    return None
