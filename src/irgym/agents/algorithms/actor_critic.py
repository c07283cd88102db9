"""Base of the policy-gradient learners: an actor, a critic, and the collection of episodes."""

from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import numpy as np
import torch

from irgym.agents.archive.best import Archive
from irgym.agents.archive.following import Following
from irgym.agents.construction import check_network, spec_of, start_from
from irgym.agents.devices import acting_copy, device_named, refresh
from irgym.agents.episodes.advantages import FloatArray, Normalisation, ReturnScale
from irgym.agents.episodes.played import Outcomes
from irgym.agents.episodes.rollout import draw_tasks, privileged_of, rollout
from irgym.agents.episodes.trajectories import Trajectories, select_episodes
from irgym.agents.hyperparameters import (
    DeviceOptions,
    Positive,
    Share,
    StartOptions,
    TrainingOptions,
    Weight,
)
from irgym.agents.optimisation import seeded
from irgym.agents.problem import Problem
from irgym.base.errors import IrgymError
from irgym.core.actions import BoolArray
from irgym.networks import likelihood
from irgym.networks.actor_critic import ActorCritic, pair_scores_of
from irgym.networks.encoders import Batch
from irgym.networks.policy import TorchPolicy
from irgym.networks.transfer import moved
from irgym.policies import heads
from irgym.policies.layout import LAYOUTS, IntArray


@dataclass(frozen=True)
class ActorCriticConfig(StartOptions, DeviceOptions, TrainingOptions):
    """Hyper-parameters that all policy-gradient learners have."""

    lr: Positive = 1e-3
    """Learning rate at the start."""
    lr_end: Weight = 1e-4
    """Final learning rate."""
    gamma: Share = 1.0
    """Discount."""
    gae_lambda: Share = 0.95
    """Lambda of generalised advantage estimation."""
    advantages: Normalisation = "standard"
    """Normalisation: standard (mean 0, deviation 1), max-abs (greatest absolute value 1) or none."""
    entropy: Weight = 0.01
    """Coefficient of the entropy bonus at the start."""
    entropy_end: Weight = 0.0
    """Coefficient of the entropy bonus at the end."""
    value_coefficient: Weight = 0.5
    """Weight of the value loss in a joint step."""
    max_grad_norm: Positive = 0.5
    """The gradient is scaled down to this norm."""
    actions: Literal["structured", "autoregressive", "flat"] = "structured"
    """structured: kind and parameters independently; autoregressive: each parameter given the previous
    ones; flat: one choice among all combinations."""
    shared: bool = False
    """Whether policy and value share the hidden layers."""
    value_features: bool = False
    """Whether the value function, but not the policy, also sees the task's cost features.

    After arXiv 2308.14364, section 4; see `irgym.core.capabilities.CostFeatures`. A policy needs them
    neither in training nor in use.
    """

    def check(self) -> None:
        """Check that the values are consistent.

        Raises:
            IrgymError: They are not; the message says which.
        """
        check_network(self)
        if self.shared and self.value_features:
            raise IrgymError(
                "value_features need a separate value network: set shared or value_features to false"
            )


C = TypeVar("C", bound=ActorCriticConfig)


class ActorCriticLearner(Generic[C]):
    """An actor and a critic in training, without the gradient steps.

    Attributes:
        config: Hyper-parameters.
        problem: The training problem, whose tasks hold an analysis where it is needed.
        device: Device of the network.
        network: Actor and critic.
        acting: The actor on the CPU; a copy where the device is another.
        encoder: Its encoder, for batches on the CPU.
        iteration: Iterations done.
        rng: Random generator of everything but the initial weights.
        scale: Factor on the rewards that the losses use.
    """

    def __init__(self, config: C, problem: Problem) -> None:
        self.config = config
        self.problem = problem.analysed() if config.value_features or problem.reward.shaped else problem
        self.iteration: int = 0
        self.scale = ReturnScale(config.gamma, config.normalise_rewards)
        self.rng = np.random.default_rng(config.seed)
        task = self.problem.tasks[0]
        self.layout = LAYOUTS[config.actions](task.space)
        state = task.initial()
        privileged = privileged_of([task], [state]).shape[1] if config.value_features else 0
        with seeded(config.seed):
            self.network = ActorCritic(
                spec_of(config, task), self.layout, config.shared, privileged, config.observation
            )
        if config.start:
            start_from(config.start, self.network.actor)
        self.device = device_named(config.device)
        self.acting = acting_copy(self.network.actor, self.device)
        self.encoder = self.acting.encoder
        self.network.to(self.device)

    def collect(
        self, epsilon: float = 0.0, group: int = 1, archive: Archive | None = None, started: int = 0
    ) -> tuple[Trajectories, Outcomes]:
        """Run the episodes of an iteration.

        Args:
            epsilon: Share of uniformly random legal actions.
            group: Consecutive episodes on each drawn program.
            archive: Store of the cheapest episodes.
            started: Number of additional episodes that follow scripts from the archive; only the archive
                learns from them.

        Returns:
            The trajectories, without the episodes that followed scripts, and the outcomes of all episodes.
        """

        def choose(batch: Batch, legal: BoolArray) -> heads.Draw:
            with torch.inference_mode():
                scores = self.acting.forward(batch, torch.as_tensor(legal)).numpy()
            pair_scores = pair_scores_of(self.acting)
            return heads.sample(scores, legal, self.layout, self.rng, epsilon, pair_scores)

        programs = range(len(self.problem.tasks))
        drawn = draw_tasks(programs, self.config.episodes // group, self.rng)
        places = [place for place in drawn for _ in range(group)]
        unscripted = len(places)
        scripts: list[IntArray] = []
        if archive is not None and started:
            others = draw_tasks(programs, started, self.rng)
            scripts = archive.scripts(others, self.rng)
            places += others[: len(scripts)]
        guide = (
            Following(dict(enumerate(scripts, start=unscripted)), self.layout, self.rng) if scripts else None
        )
        trajectories, outcomes = rollout(
            [self.problem.tasks[place] for place in places],
            self.problem,
            self.encoder,
            self.layout,
            choose,
            privileged=self.config.value_features,
            guide=guide,
        )
        if archive is not None:
            archive.add(places, trajectories, outcomes.last)
        if scripts:
            trajectories = select_episodes(trajectories, np.arange(unscripted), self.encoder)
        self.scale.update(trajectories)
        return trajectories, outcomes

    @property
    def share(self) -> float:
        """How much of the training is over, from 0 to 1."""
        return self.problem.deadline.share(self.iteration, self.config.iterations)

    def values(self, trajectories: Trajectories) -> FloatArray:
        """Return the values of all states of the trajectories, shape [M]."""
        with torch.inference_mode():
            seen = trajectories.observations, torch.as_tensor(trajectories.privileged)
            return self.network.values(*moved(seen, self.device)).numpy(force=True)

    def evaluate(self, trajectories: Trajectories) -> likelihood.Evaluated:
        """Return the log-probabilities of the taken actions, shape [M], and the entropies, on the device."""
        taken = torch.as_tensor(trajectories.legal), torch.as_tensor(trajectories.choices)
        seen, legal, choices = moved((trajectories.observations, *taken), self.device)
        actor = self.network.actor
        return likelihood.evaluate(actor.forward(seen), legal, choices, self.layout, actor.pair_scores)

    def end_iteration(self, trajectories: Trajectories) -> None:
        """Update the statistics of inputs with new episodes, and act by the new weights from now on."""
        self.network.adapt(moved(trajectories.observations, self.device))
        refresh(self.acting, self.network.actor)
        self.iteration += 1

    def policy(self) -> TorchPolicy:
        """Return the current policy, on the CPU; it shares the weights of `acting`."""
        return TorchPolicy(self.acting)

    def state_dict(self) -> dict[str, Any]:
        """Return the complete state of the training, as tensors and plain values."""
        return {
            "iteration": self.iteration,
            "network": self.network.state_dict(),
            "scale": self.scale.state_dict(),
            "rng": self.rng.bit_generator.state,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from `state_dict`; training then continues exactly."""
        self.iteration = state["iteration"]
        self.network.load_state_dict(state["network"])
        refresh(self.acting, self.network.actor)
        self.scale.load_state_dict(state["scale"])
        self.rng.bit_generator.state = state["rng"]


def explained_variance(returns: FloatArray, values: FloatArray) -> float:
    """Return the share of the returns' variance that the values explain; 0 where the returns are equal."""
    variance = float(returns.var())
    return 1.0 - float((returns - values).var()) / variance if variance > 0 else 0.0
