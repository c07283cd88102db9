"""Interfaces between training and algorithms: a configuration, and the learner that it builds."""

from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Protocol, cast

from irgym.agents.episodes.played import Outcomes
from irgym.agents.problem import Problem
from irgym.core.limits import Limits
from irgym.policies.policy import Policy


@dataclass(frozen=True)
class Statistics:
    """Means over the gradient steps of one iteration; None where an algorithm has no such quantity.

    Attributes:
        entropy: Entropy of the policy, nats.
        policy_loss: The loss of the policy.
        value_loss: The loss of the value function; for a Q-learner its temporal-difference loss.
        kl: Approximate divergence of the new policy from the old, nats.
        clip_fraction: Share of probability ratios outside the clip range.
        explained_variance: Share of the returns' variance that the values explain; 1 is perfect.
        epsilon: Share of uniform exploration.
        lr: Learning rate.
        grad_norm: Norm of the gradient before it is clipped.
        value_grad_norm: The same for the values, if they are learnt separately.
        values_s: Seconds for learning the values, if they are learnt separately; a sum.
    """

    entropy: float | None = None
    policy_loss: float | None = None
    value_loss: float | None = None
    kl: float | None = None
    clip_fraction: float | None = None
    explained_variance: float | None = None
    epsilon: float | None = None
    lr: float | None = None
    grad_norm: float | None = None
    value_grad_norm: float | None = None
    values_s: float | None = None


class Trained(Policy, Protocol):
    """A policy that can be written as a file.

    Attributes:
        environment: Name of the environment that it was trained on.
        targets: Names of the targets that it was trained on.
        limits: The limits of the episodes that it was trained in.
    """

    environment: str
    targets: tuple[str, ...]
    limits: Limits

    @property
    def finite(self) -> bool:
        """Whether all weights are finite numbers."""
        ...

    def save(self, path: Path) -> None:
        """Write the policy.

        Raises:
            IrgymError: A weight is not finite.
            StorageError: The file cannot be written.
        """
        ...


class Learner(Protocol):
    """An algorithm in training."""

    @property
    def config(self) -> "AgentConfig":
        """Its hyper-parameters, with all defaults resolved."""
        ...

    def iterate(self) -> tuple[Outcomes, Statistics]:
        """Collect episodes and learn from them."""
        ...

    def policy(self) -> Trained:
        """Return the current policy, a `TorchPolicy` for irgym's networks; it may share weights."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Return the complete state of the training, as tensors and plain values."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from `state_dict`; training then continues exactly."""
        ...


class AgentConfig(Protocol):
    """The hyper-parameters of an algorithm: a frozen dataclass of plain values, `seed` among them."""

    @property
    def iterations(self) -> int:
        """Default length of the training, and length of annealing."""
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
            IrgymError: A value is invalid; the message says which.
        """
        ...


NEEDED = ("iterations", "seed", "threads", "validate_every", "checkpoint_every")
"""Fields of a configuration that `irgym train` reads."""


def config_fault(kind: object) -> str:
    """Return in words how a configuration's class is wrong; empty where it is right."""
    if not isinstance(kind, type) or not is_dataclass(kind):
        return "is no dataclass"
    if not cast(Any, kind).__dataclass_params__.frozen:
        return "is a dataclass that is not frozen"
    if not callable(getattr(kind, "build", None)):
        return "has no method `build`"
    known = {field.name: field for field in fields(kind)}
    for name in NEEDED:
        if name not in known:
            return f"has no field {name!r}"
    for name, field in known.items():
        if field.default is MISSING and field.default_factory is MISSING:
            return f"has no default for its field {name!r}"
    return ""
