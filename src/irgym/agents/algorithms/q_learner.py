"""Base of the Q-learners: a Q-network that learns from a replay.

Double Q-learning (arXiv 1509.06461), dueling (1511.06581), n-step, prioritised replay (1511.05952).
"""

from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from irgym.agents.construction import check_network, spec_of, start_from
from irgym.agents.devices import acting_copy, device_named, refresh
from irgym.agents.episodes.advantages import ReturnScale
from irgym.agents.episodes.replay import Replay, Transitions
from irgym.agents.episodes.rollout import Choose
from irgym.agents.episodes.trajectories import Trajectories
from irgym.agents.hyperparameters import (
    Count,
    CountOrNone,
    DeviceOptions,
    Episodes,
    Positive,
    Share,
    StartOptions,
    TrainingOptions,
    Weight,
)
from irgym.agents.optimisation import Descent, anneal, seeded
from irgym.agents.problem import Problem
from irgym.base.errors import IrgymError
from irgym.base.values import Range
from irgym.core.actions import BoolArray
from irgym.networks.encoders import Batch
from irgym.networks.policy import TorchPolicy
from irgym.networks.q_network import QNetwork
from irgym.networks.transfer import moved
from irgym.policies import heads
from irgym.policies.layout import FlatLayout


@dataclass(frozen=True)
class QLearnerConfig(StartOptions, DeviceOptions, TrainingOptions):
    """Hyper-parameters that all Q-learners have."""

    iterations: Count = 400
    """Length of the training, and of annealing."""
    episodes: Episodes = 32
    """Episodes collected in an iteration."""
    updates: CountOrNone = 64
    """Gradient steps in an iteration."""
    minibatch: Count = 128
    """Transitions in a gradient step."""
    lr: Positive = 5e-4
    """Learning rate of Adam at the start."""
    lr_end: Weight = 5e-5
    """Learning rate at the end."""
    gamma: Share = 0.99
    """Discount."""
    n_step: Count = 3
    """Steps between the two states of a transition."""
    replay: Annotated[int, Range(1, 1_000_000_000)] = 100_000
    """Capacity of the replay, in steps."""
    warmup: CountOrNone = 512
    """Steps collected before learning begins."""
    alpha: Weight = 0.6
    """Exponent of the priorities; 0 draws all transitions alike."""
    beta: Share = 0.4
    """Exponent of the importance weights at the start; it ends at 1."""
    target_every: Count = 128
    """Gradient steps between copies of the network to the target network."""
    max_grad_norm: Positive = 10.0
    """The gradient is scaled down to this norm."""
    activation: str = "relu"
    """tanh or relu."""

    def check(self) -> None:
        """Check that the values are consistent.

        Raises:
            IrgymError: They are not; the message says which.
        """
        if self.replay < max(self.minibatch, self.warmup, self.n_step + 1):
            raise IrgymError(
                f"replay of {self.name} is {self.replay}: choose at least minibatch, warmup and n_step + 1"
            )
        check_network(self)


C = TypeVar("C", bound=QLearnerConfig)


class QLearner(Generic[C]):
    """A Q-network in training; subclasses choose how to act.

    Attributes:
        config: Hyper-parameters.
        problem: The training problem, whose tasks hold an analysis where the reward is shaped.
        device: Device of the networks that learn.
        network: The network that learns.
        target: An older copy of it, which values next states.
        acting: The network on the CPU; a copy where the device is another.
        iteration: Iterations done.
        updates: Gradient steps taken.
        rng: Random generator of everything but the initial weights.
        scale: Factor on the rewards that the losses use.
        replay: The newest steps.
    """

    def __init__(self, config: C, problem: Problem) -> None:
        self.config = config
        self.problem = problem.analysed() if problem.reward.shaped else problem
        self.iteration: int = 0
        self.scale = ReturnScale(config.gamma, config.normalise_rewards)
        self.updates = 0
        self.rng = np.random.default_rng(config.seed)
        task = self.problem.tasks[0]
        self.layout = FlatLayout(task.space)
        spec = spec_of(config, task)
        with seeded(config.seed):
            self.network = QNetwork(spec, self.layout, config.observation)
            self.target = QNetwork(spec, self.layout, config.observation)
        if config.start:
            start_from(config.start, self.network)
        self.target.load_state_dict(self.network.state_dict())
        self.device = device_named(config.device)
        self.acting = acting_copy(self.network, self.device)
        self.network.to(self.device)
        self.target.to(self.device)
        weights = self.network.parameters()
        self.descent = Descent(weights, config.lr, config.max_grad_norm, deadline=problem.deadline)
        self.replay = Replay(config.replay, self.layout.width, self.acting.encoder, config.alpha)

    @property
    def share(self) -> float:
        """How much of the training is over, from 0 to 1."""
        return self.problem.deadline.share(self.iteration, self.config.iterations)

    @property
    def lr(self) -> float:
        """The learning rate of this iteration."""
        return anneal(self.config.lr, self.config.lr_end, self.share)

    def adapt(self, trajectories: Trajectories) -> None:
        """Update the statistics that scale rewards and normalise observations with new trajectories."""
        self.scale.update(trajectories)
        observations = moved(trajectories.observations, self.device)
        for network in (self.network, self.target):
            network.encoder.adapt(observations)

    def learn(self) -> float | None:
        """Take the gradient steps of an iteration; return their mean loss, or None if there were none."""
        self.descent.set_lr(self.lr)
        if self.replay.size < self.config.warmup or not self.config.updates:
            return None
        losses = [self._update() for _ in range(self.config.updates)]
        return float(torch.stack(losses).mean())

    def _update(self) -> Tensor:
        """Take one gradient step and return its loss."""
        config = self.config
        beta = anneal(config.beta, 1.0, self.share)
        transitions = moved(self.replay.sample(config.minibatch, beta, self.rng), self.device)
        targets = self._targets(transitions)
        q = self.network.forward(transitions.observations, transitions.legal)[:, 0]
        taken = q.gather(1, transitions.choices[:, None])[:, 0]
        losses = functional.smooth_l1_loss(taken, targets, reduction="none")
        loss = (transitions.weights * losses).mean()
        self.descent.step(loss)
        self.replay.prioritise(transitions.places, (targets - taken).numpy(force=True))
        self.updates += 1
        if self.updates % config.target_every == 0:
            self.target.load_state_dict(self.network.state_dict())
        return loss.detach()

    def _targets(self, transitions: Transitions) -> Tensor:
        """Return targets: the network picks the best legal next action, the target network values it."""
        with torch.no_grad():
            following, legal = transitions.next_observations, transitions.next_legal
            ahead = self.network.forward(following, legal)
            best = torch.where(legal, ahead, heads.MASKED).argmax(dim=-1, keepdim=True)
            value = self.target.forward(following, legal).gather(-1, best)[:, 0, 0]
            return self.scale.factor * transitions.rewards + transitions.discounts * value

    def end_iteration(self) -> None:
        """Act by the new weights from now on."""
        refresh(self.acting, self.network)
        self.iteration += 1

    def policy(self) -> TorchPolicy:
        """Return the current policy, on the CPU; it shares the weights of `acting`."""
        return TorchPolicy(self.acting)

    def state_dict(self) -> dict[str, Any]:
        """Return the complete state of the training, as tensors and plain values."""
        return {
            "iteration": self.iteration,
            "updates": self.updates,
            "network": self.network.state_dict(),
            "target": self.target.state_dict(),
            "descent": self.descent.state_dict(),
            "scale": self.scale.state_dict(),
            "rng": self.rng.bit_generator.state,
            "replay": self.replay.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from `state_dict`; training then continues exactly."""
        self.iteration, self.updates = state["iteration"], state["updates"]
        self.network.load_state_dict(state["network"])
        refresh(self.acting, self.network)
        self.target.load_state_dict(state["target"])
        self.descent.load_state_dict(state["descent"])
        self.scale.load_state_dict(state["scale"])
        self.rng.bit_generator.state = state["rng"]
        self.replay.load_state_dict(state["replay"])


def exploring(network: QNetwork, rng: np.random.Generator, epsilon: float) -> Choose:
    """Return an epsilon-greedy choice: the network's best legal action, or any with probability `epsilon`."""

    def choose(batch: Batch, legal: BoolArray) -> heads.Draw:
        with torch.inference_mode():
            q = network.forward(batch, torch.as_tensor(legal)).numpy()
        choices = heads.epsilon_greedy(q, legal, network.layout, rng, epsilon)
        unused = np.zeros(len(choices), dtype=np.float32)
        return heads.Draw(choices, unused, unused)

    return choose
