"""REINFORCE (Williams 1992) with the mean return as its baseline."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch

from irgym.agents.episodes.played import Outcomes
from irgym.agents.episodes.rollout import draw_tasks, rollout
from irgym.agents.hyperparameters import Hyperparameters
from irgym.agents.learner import Statistics
from irgym.agents.optimisation import Descent, seeded
from irgym.agents.problem import Problem
from irgym.base.values import Range
from irgym.core.actions import BoolArray
from irgym.networks import likelihood
from irgym.networks.actor_critic import Actor
from irgym.networks.encoders import Batch, spec_for
from irgym.networks.policy import TorchPolicy
from irgym.policies import heads
from irgym.policies.layout import StructuredLayout


@dataclass(frozen=True)
class ReinforceConfig(Hyperparameters):
    """Hyper-parameters; `irgym train --set` changes them by name."""

    name: ClassVar[str] = "REINFORCE"

    iterations: Annotated[int, Range(low=1)] = 100
    episodes: Annotated[int, Range(1, 1_000_000)] = 64
    lr: Annotated[float, Range(above=0, high=10)] = 1e-2
    hidden: Annotated[tuple[int, ...], Range(1, 65_536)] = (64,)
    validate_every: Annotated[int, Range(low=0)] = 0
    checkpoint_every: Annotated[float, Range(0, 86_400)] = 30.0
    seed: Annotated[int, Range(low=0)] = 0
    threads: Annotated[int, Range(1, 1024)] = 1

    def build(self, problem: Problem) -> "Reinforce":
        """Return a learner at the beginning of its training."""
        return Reinforce(self, problem)


class Reinforce:
    """REINFORCE in training."""

    def __init__(self, config: ReinforceConfig, problem: Problem) -> None:
        self.config = config
        self.problem = problem
        self.rng = np.random.default_rng(config.seed)
        task = problem.tasks[0]
        self.layout = StructuredLayout(task.space)
        with seeded(config.seed):
            spec = spec_for(task.observe(task.initial()), config.hidden, "tanh")
            self.actor = Actor(spec, self.layout)
        self.descent = Descent(self.actor.parameters(), config.lr, max_norm=1.0)

    def iterate(self) -> tuple[Outcomes, Statistics]:
        """Collect episodes and take one gradient step."""

        def choose(batch: Batch, legal: BoolArray) -> heads.Draw:
            with torch.inference_mode():
                return heads.sample(self.actor(batch).numpy(), legal, self.layout, self.rng)

        tasks = draw_tasks(self.problem.tasks, self.config.episodes, self.rng)
        steps, outcomes = rollout(tasks, self.problem, self.actor.encoder, self.layout, choose)
        returns = torch.as_tensor(steps.returns(), dtype=torch.float32)
        advantages = (returns - returns.mean())[torch.as_tensor(steps.episode)]
        legal, choices = torch.as_tensor(steps.legal), torch.as_tensor(steps.choices)
        taken = likelihood.evaluate(self.actor(steps.observations), legal, choices, self.layout)
        loss = -(advantages * taken.log_prob).mean()
        self.descent.step(loss)
        entropy, loss = taken.entropy.mean().item(), loss.item()
        return outcomes, Statistics(entropy=entropy, policy_loss=loss)

    def policy(self) -> TorchPolicy:
        """Return the present policy."""
        return TorchPolicy(self.actor)

    def state_dict(self) -> dict[str, Any]:
        """Return all that determines the rest of the training."""
        return {
            "actor": self.actor.state_dict(),
            "descent": self.descent.state_dict(),
            "rng": self.rng.bit_generator.state,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from what `state_dict` returned, exactly."""
        self.actor.load_state_dict(state["actor"])
        self.descent.load_state_dict(state["descent"])
        self.rng.bit_generator.state = state["rng"]
