"""REINFORCE (Williams 1992) with the mean return as its baseline."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from irgym.agents.construction import check_network, spec_of
from irgym.agents.episodes.advantages import ReturnScale
from irgym.agents.episodes.played import Outcomes
from irgym.agents.episodes.rollout import draw_tasks, rollout
from irgym.agents.hyperparameters import Count, Positive, TrainingOptions
from irgym.agents.learner import Statistics
from irgym.agents.optimisation import Descent, seeded
from irgym.agents.problem import Problem
from irgym.core.actions import BoolArray
from irgym.networks import likelihood
from irgym.networks.actor_critic import Actor
from irgym.networks.encoders import Batch
from irgym.networks.policy import TorchPolicy
from irgym.policies import heads
from irgym.policies.layout import StructuredLayout


@dataclass(frozen=True)
class ReinforceConfig(TrainingOptions):
    """Hyper-parameters of REINFORCE, beside those of every learner."""

    name: ClassVar[str] = "REINFORCE"

    iterations: Count = 100
    lr: Positive = 1e-2

    def build(self, problem: Problem) -> "Reinforce":
        """Return a learner at the beginning of its training."""
        check_network(self)
        return Reinforce(self, problem)


class Reinforce:
    """REINFORCE in training."""

    def __init__(self, config: ReinforceConfig, problem: Problem) -> None:
        self.config = config
        self.problem = problem
        self.rng = np.random.default_rng(config.seed)
        self.scale = ReturnScale(gamma=1.0, enabled=config.normalise_rewards)
        task = problem.tasks[0]
        self.layout = StructuredLayout(task.space)
        with seeded(config.seed):
            self.actor = Actor(spec_of(config, task), self.layout, config.observation)
        self.descent = Descent(self.actor.parameters(), config.lr, max_norm=1.0, deadline=problem.deadline)

    def iterate(self) -> tuple[Outcomes, Statistics]:
        """Collect episodes and take one gradient step."""

        def choose(batch: Batch, legal: BoolArray) -> heads.Draw:
            with torch.inference_mode():
                scores = self.actor(batch, torch.as_tensor(legal)).numpy()
            return heads.sample(scores, legal, self.layout, self.rng)

        tasks = draw_tasks(self.problem.tasks, self.config.episodes, self.rng)
        steps, outcomes = rollout(tasks, self.problem, self.actor.encoder, self.layout, choose)
        self.scale.update(steps)
        returns = torch.as_tensor(steps.returns() * self.scale.factor, dtype=torch.float32)
        advantages = (returns - returns.mean())[torch.as_tensor(steps.episode)]
        legal, choices = torch.as_tensor(steps.legal), torch.as_tensor(steps.choices)
        taken = likelihood.evaluate(self.actor(steps.observations, legal), legal, choices, self.layout)
        loss = -(advantages * taken.log_prob).mean()
        self.descent.step(loss)
        self.actor.encoder.adapt(steps.observations)
        return outcomes, Statistics(entropy=taken.entropy.mean().item(), policy_loss=loss.item())

    def policy(self) -> TorchPolicy:
        """Return the current policy."""
        return TorchPolicy(self.actor)

    def state_dict(self) -> dict[str, Any]:
        """Return all that determines the rest of the training."""
        return {
            "actor": self.actor.state_dict(),
            "descent": self.descent.state_dict(),
            "scale": self.scale.state_dict(),
            "rng": self.rng.bit_generator.state,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state of `state_dict`, exactly."""
        self.actor.load_state_dict(state["actor"])
        self.descent.load_state_dict(state["descent"])
        self.scale.load_state_dict(state["scale"])
        self.rng.bit_generator.state = state["rng"]
