"""Advantages and value targets of whole episodes, and the scale of their returns."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from irgym.agents.episodes.trajectories import Trajectories

FloatArray = NDArray[np.float32]
Normalisation = Literal["standard", "max-abs", "none"]


def advantages_and_returns(
    rewards: FloatArray,
    values: FloatArray,
    ratios: FloatArray,
    gamma: float,
    lam: float,
    n_step: int | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Estimate advantages and value targets, corrected off-policy with truncated importance weights.

    Generalised advantage estimation (arXiv 1506.02438) whose traces are cut as in V-trace (arXiv
    1802.01561, equation 1, with both limits 1): with w = min(1, ratio),
    A_t = r_t + gamma V_{t+1} - V_t + gamma lambda w_{t+1} A_{t+1}; the target is V_t + w_t A_t.
    On policy all weights are 1, and this is GAE.

    With `n_step` an advantage ends with the value so many steps later; with a lambda of 1 it is the n-step
    return of A3C (arXiv 1602.01783) less the value.

    Args:
        rewards: Shape [T, N], 0 after an episode's end, as in the others.
        values: Shape [T, N].
        ratios: Shape [T, N]; probability under the policy over that under the behaviour.
        gamma: Discount.
        lam: Lambda.
        n_step: Steps that an advantage looks ahead; None for all. Only on policy.

    Returns:
        Advantages and value targets, both of shape [T, N].
    """
    advantages = np.zeros_like(rewards)
    weights = np.minimum(ratios, 1.0)
    trace = np.zeros_like(rewards[0])
    next_values = np.zeros_like(rewards[0])
    for t in reversed(range(len(rewards))):
        advantages[t] = rewards[t] + gamma * next_values - values[t] + gamma * lam * trace
        trace = weights[t] * advantages[t]
        next_values = values[t]
    if n_step is not None and n_step < len(rewards):
        advantages[:-n_step] -= (gamma * lam) ** n_step * advantages[n_step:].copy()
    return advantages, values + weights * advantages


def group_advantages(returns: NDArray[np.float64], group: int) -> FloatArray:
    """Return each episode's return less the mean of its group (GRPO, arXiv 2402.03300, without its division).

    The mean over episodes on one program is a baseline that needs no value function.

    Args:
        returns: Shape [N]; each `group` consecutive ones are on one program.
        group: Episodes on a program; it divides N.

    Returns:
        Shape [N].
    """
    groups = returns.reshape(-1, group)
    return (groups - groups.mean(axis=1, keepdims=True)).reshape(-1).astype(np.float32)


def risk_seeking_advantages(returns: NDArray[np.float64], group: int, share: float) -> FloatArray:
    """Return the excess of each return over the (1 - `share`) quantile of its group; 0 below it.

    The risk-seeking policy gradient (Petersen et al., arXiv 1912.04871) optimises the best episodes, not the
    mean.

    Args:
        returns: Shape [N]; each `group` consecutive ones are on one program.
        group: Episodes on a program; it divides N.
        share: Share of the episodes to learn from, above 0.

    Returns:
        Shape [N].
    """
    groups = returns.reshape(-1, group)
    threshold = np.quantile(groups, 1 - share, axis=1, keepdims=True)
    return np.maximum(groups - threshold, 0).reshape(-1).astype(np.float32)


def normalise(advantages: FloatArray, how: Normalisation) -> FloatArray:
    """Return the advantages with mean 0 and deviation 1, a greatest absolute value of 1, or as they are."""
    if how == "standard":
        return (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    if how == "max-abs":
        return advantages / (np.abs(advantages).max() + 1e-8)
    return advantages


class ReturnScale:
    """Scale of rewards: one over the standard deviation of the returns from all steps so far.

    Relative improvements of a few per cent and costs in the thousands then train alike: initial weights, the
    optimiser's epsilon and the entropy bonus all assume returns of about 1.

    Attributes:
        gamma: Discount of the returns.
        enabled: Whether to scale at all; otherwise the factor stays 1.
    """

    def __init__(self, gamma: float, enabled: bool = True) -> None:
        self.gamma = gamma
        self.enabled = enabled
        self._count = 0
        self._mean = 0.0
        self._variance = 0.0

    @property
    def factor(self) -> float:
        """Factor on the rewards; 1 as long as all returns are equal."""
        return self._variance**-0.5 if self.enabled and self._variance > 1e-12 else 1.0

    def update(self, trajectories: Trajectories) -> None:
        """Update the statistics with the returns of new episodes."""
        returns = trajectories.returns_to_go(self.gamma).astype(np.float64)
        self._count += len(returns)
        share = len(returns) / self._count
        distance = float(returns.mean()) - self._mean
        self._mean += share * distance
        self._variance += share * (float(returns.var()) - self._variance + (1 - share) * distance**2)

    def state_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {"count": self._count, "mean": self._mean, "variance": self._variance}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from `state_dict`, exactly."""
        self._count, self._mean, self._variance = state["count"], state["mean"], state["variance"]
