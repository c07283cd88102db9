"""Estimators of the divergence of the old policy from the new one, by their names in Schulman's note.

"Approximating KL divergence" (2020), http://joschu.net/blog/kl-approx.html.
"""

from collections.abc import Callable
from typing import Literal

from torch import Tensor

Estimator = Literal["k1", "k2", "k3"]

ESTIMATORS: dict[Estimator, Callable[[Tensor], Tensor]] = {
    "k1": lambda log_ratio: -log_ratio,
    "k2": lambda log_ratio: log_ratio.square() / 2,
    "k3": lambda log_ratio: log_ratio.exp() - 1 - log_ratio,
}
"""From the log ratio of new to old probability of each step, shape [B], to terms of a mean, in nats."""
