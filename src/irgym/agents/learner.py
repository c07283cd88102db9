"""What training needs of an algorithm: a configuration that builds a learner, and the learner."""

from dataclasses import dataclass
from typing import Any, Protocol

from irgym.agents.episodes.played import Outcomes
from irgym.agents.problem import Problem
from irgym.networks.policy import TorchPolicy


@dataclass(frozen=True)
class Statistics:
    """Means over the gradient steps of one iteration; None where an algorithm has no such quantity.

    Attributes:
        entropy: Of the policy, nats.
        policy_loss: The loss of the policy.
        value_loss: Of the value function; for a Q-learner its temporal-difference loss.
        kl: Approximate divergence of the new policy from the old, nats.
        clip_fraction: Share of probability ratios outside the clip range.
        explained_variance: Of the returns by the values; 1 is perfect.
        epsilon: Share of uniform exploration.
        lr: Learning rate.
    """

    entropy: float | None = None
    policy_loss: float | None = None
    value_loss: float | None = None
    kl: float | None = None
    clip_fraction: float | None = None
    explained_variance: float | None = None
    epsilon: float | None = None
    lr: float | None = None


class Learner(Protocol):
    """An algorithm in training."""

    @property
    def config(self) -> "AgentConfig":
        """Its hyper-parameters, those that were left open included."""
        ...

    def iterate(self) -> tuple[Outcomes, Statistics]:
        """Collect episodes and learn from them."""
        ...

    def policy(self) -> TorchPolicy:
        """Return the present policy; it shares its weights with the learner."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Return all that determines the rest of the training, as tensors and plain values."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from what `state_dict` returned, exactly."""
        ...


class AgentConfig(Protocol):
    """The hyper-parameters of an algorithm: a frozen dataclass of plain values, `seed` among them."""

    @property
    def iterations(self) -> int:
        """Iterations of a training by default, at whose end annealed quantities have reached theirs."""
        ...

    @property
    def threads(self) -> int:
        """Threads of torch."""
        ...

    @property
    def validate_every(self) -> int:
        """Iterations between greedy evaluations; 0 for none."""
        ...

    @property
    def checkpoint_every(self) -> float:
        """Seconds between checkpoints."""
        ...

    def build(self, problem: Problem) -> Learner:
        """Return a learner at the beginning of its training.

        Raises:
            IrgymError: A value makes no sense; the message says which.
        """
        ...
