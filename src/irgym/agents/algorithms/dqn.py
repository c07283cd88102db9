"""Deep Q-learning, with the extensions that `q_learner` lists."""

from dataclasses import dataclass
from typing import ClassVar

from irgym.agents.algorithms.q_learner import QLearner, QLearnerConfig, exploring
from irgym.agents.episodes.played import Outcomes
from irgym.agents.episodes.rollout import draw_tasks, rollout
from irgym.agents.hyperparameters import Share
from irgym.agents.learner import Statistics
from irgym.agents.optimisation import anneal
from irgym.agents.problem import Problem


@dataclass(frozen=True)
class DQNConfig(QLearnerConfig):
    """Hyper-parameters of DQN."""

    name: ClassVar[str] = "DQN"
    epsilon: Share = 1.0
    """Share of uniformly random legal actions at the start."""
    epsilon_end: Share = 0.02
    """Share of uniformly random legal actions after exploration."""
    exploration: Share = 0.5
    """Share of the iterations over which epsilon falls."""

    def build(self, problem: Problem) -> "DQN":
        """Return a learner at the beginning of its training.

        Raises:
            IrgymError: A value is invalid; the message says which.
        """
        self.check()
        return DQN(self, problem)


class DQN(QLearner[DQNConfig]):
    """DQN in training. The main path is `iterate`."""

    def iterate(self) -> tuple[Outcomes, Statistics]:
        """Collect episodes and learn from the replay."""
        config = self.config
        explored = self.share / config.exploration if config.exploration else 1.0
        epsilon = anneal(config.epsilon, config.epsilon_end, explored)
        tasks = draw_tasks(self.problem.tasks, config.episodes, self.rng)
        choose = exploring(self.acting, self.rng, epsilon)
        trajectories, outcomes = rollout(tasks, self.problem, self.acting.encoder, self.layout, choose)
        self.adapt(trajectories)
        self.replay.add(trajectories, config.n_step, config.gamma)
        lr, loss = self.lr, self.learn()
        self.end_iteration()
        return outcomes, Statistics(
            value_loss=loss, epsilon=epsilon, lr=lr, grad_norm=self.descent.mean_norm()
        )
