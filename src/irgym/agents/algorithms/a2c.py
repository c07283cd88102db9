"""Advantage actor-critic: one gradient step on each batch of new episodes.

The synchronous form of A3C (Mnih et al., arXiv 1602.01783), with whole episodes instead of pieces, and with
generalised advantage estimation or n-step returns.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch

from irgym.agents.algorithms.actor_critic import ActorCriticConfig, ActorCriticLearner, explained_variance
from irgym.agents.episodes.advantages import advantages_and_returns, normalise
from irgym.agents.episodes.played import Outcomes
from irgym.agents.episodes.trajectories import Trajectories
from irgym.agents.hyperparameters import Count, Episodes
from irgym.agents.learner import Statistics
from irgym.agents.optimisation import Descent, Optimiser, anneal
from irgym.agents.problem import Problem
from irgym.base.values import Range
from irgym.networks import likelihood
from irgym.networks.transfer import moved


@dataclass(frozen=True)
class A2CConfig(ActorCriticConfig):
    """Hyper-parameters of A2C."""

    name: ClassVar[str] = "A2C"
    iterations: Count = 1000
    """Length of the training, and of annealing."""
    episodes: Episodes = 16
    """Episodes collected in an iteration, which is one gradient step."""
    n_step: Annotated[int | None, Range(low=1)] = None
    """Steps of reward in an advantage before it bootstraps from the value; None for the whole episode.

    With gae_lambda = 1 these are the n-step returns of A3C.
    """
    optimiser: Optimiser = "rmsprop"
    """rmsprop, as in A3C, or adam."""

    def build(self, problem: Problem) -> "A2C":
        """Return a learner at the beginning of its training.

        Raises:
            IrgymError: A value is invalid; the message says which.
        """
        self.check()
        return A2C(self, problem)


class A2C(ActorCriticLearner[A2CConfig]):
    """A2C in training. The main path is `iterate`."""

    def __init__(self, config: A2CConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        parameters = self.network.parameters()
        self.descent = Descent(
            parameters, config.lr, config.max_grad_norm, config.optimiser, problem.deadline
        )

    def iterate(self) -> tuple[Outcomes, Statistics]:
        """Collect episodes and take one gradient step on them."""
        config = self.config
        trajectories, outcomes = self.collect()
        lr = anneal(config.lr, config.lr_end, self.share)
        self.descent.set_lr(lr)
        statistics = self._learn(trajectories, lr)
        self.end_iteration(trajectories)
        return outcomes, statistics

    def _learn(self, trajectories: Trajectories, lr: float) -> Statistics:
        """Take the gradient step."""
        config = self.config
        seen = trajectories.observations, torch.as_tensor(trajectories.privileged)
        scores, values = self.network.forward(*moved(seen, self.device))
        old_values = values.numpy(force=True)
        rewards = trajectories.grid(trajectories.rewards) * np.float32(self.scale.factor)
        on_policy = np.ones_like(rewards)
        place = (trajectories.step, trajectories.episode)
        advantages, returns = (
            array[place]
            for array in advantages_and_returns(
                rewards,
                trajectories.grid(old_values),
                on_policy,
                config.gamma,
                config.gae_lambda,
                config.n_step,
            )
        )
        known = trajectories.legal, trajectories.choices, normalise(advantages, config.advantages), returns
        legal, choices, gains, wanted = moved(tuple(map(torch.as_tensor, known)), self.device)
        taken = likelihood.evaluate(scores, legal, choices, self.layout, self.network.actor.pair_scores)
        policy_loss = -(gains * taken.log_prob).mean()
        value_loss = (values - wanted).square().mean()
        entropy = taken.entropy.mean()
        weight = anneal(config.entropy, config.entropy_end, self.share)
        self.descent.step(policy_loss + config.value_coefficient * value_loss - weight * entropy)
        return Statistics(
            entropy=entropy.item(),
            policy_loss=policy_loss.item(),
            value_loss=value_loss.item(),
            explained_variance=explained_variance(returns, old_values),
            lr=lr,
            grad_norm=self.descent.mean_norm(),
        )

    def state_dict(self) -> dict[str, Any]:
        """Return the complete state of the training, as tensors and plain values."""
        return {**super().state_dict(), "descent": self.descent.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from `state_dict`; training then continues exactly."""
        super().load_state_dict(state)
        self.descent.load_state_dict(state["descent"])
