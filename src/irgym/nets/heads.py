"""The distribution over structured actions that scores and a mask define.

log p(action) = log p(kind) + the sum over the kind's slots of log p(choice). Sampling is done in numpy,
where small batches are quick and one seeded generator makes it reproducible; what is differentiated
is done in torch.
"""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from irgym.core.actions import BoolArray
from irgym.nets.layout import ActionLayout, IntArray

FloatArray = NDArray[np.float32]

# Finite, so that a segment without any alternative (a slot of a masked kind) gives numbers, not NaN;
# its exponential is exactly 0 beside any score that a network emits.
MASKED = -1e9


class Draw(NamedTuple):
    """Sampled actions.

    Attributes:
        choices: Shape [B, S].
        policy_logp: Shape [B]; log-probability under the policy.
        behaviour_logp: Shape [B]; log-probability under what was sampled from, exploration included.
    """

    choices: IntArray
    policy_logp: FloatArray
    behaviour_logp: FloatArray


class Evaluated(NamedTuple):
    """Differentiable properties of given actions.

    Attributes:
        log_prob: Shape [B].
        entropy: Shape [B]; of the whole distribution: H(kind) + sum over kinds of p(kind) H(its slots).
    """

    log_prob: Tensor
    entropy: Tensor


def evaluate(scores: Tensor, legal: Tensor, choices: Tensor, layout: ActionLayout) -> Evaluated:
    """Return the log-probability of `choices` and the entropy.

    Args:
        scores: Shape [B, S, W].
        legal: Shape [B, S, W], boolean.
        choices: Shape [B, S], int64.
        layout: The meaning of the segments.
    """
    log_p = torch.where(legal, scores, MASKED).log_softmax(-1)
    chosen = log_p.gather(-1, choices.unsqueeze(-1)).squeeze(-1)
    probabilities = log_p.exp()
    entropies = -(probabilities * log_p).sum(-1)
    if layout.segments == 1:
        return Evaluated(chosen[:, 0], entropies[:, 0])
    active = torch.as_tensor(layout.active)[choices[:, 0]]
    owners = probabilities[:, 0, torch.as_tensor(layout.owner)]
    return Evaluated((chosen * active).sum(-1), entropies[:, 0] + (owners * entropies[:, 1:]).sum(-1))


def _pick(weights: NDArray[np.floating], rng: np.random.Generator) -> IntArray:
    """Draw from each segment in proportion to its weights; shape [B, S]."""
    cumulative = weights.cumsum(axis=-1, dtype=np.float64)
    # A float32 below 1 times a float64 stays below it, so the last alternative is never passed.
    threshold = rng.random(weights.shape[:-1], dtype=np.float32) * cumulative[..., -1]
    picked = (cumulative <= threshold[..., None]).sum(axis=-1)
    return np.minimum(picked, weights.shape[-1] - 1)


def _settle(choices: IntArray, layout: ActionLayout) -> tuple[IntArray, BoolArray]:
    """Set the choices of inactive segments to 0; return them and which segments are active."""
    active = layout.active[choices[:, 0]]
    return choices * active, active


def _uniform_weights(
    legal: BoolArray, layout: ActionLayout
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return segment weights that make every legal action equally likely, and the number of those, [B].

    A kind weighs as much as it has legal combinations of parameters.
    """
    weights = legal.astype(np.float64)
    counts = weights[:, None, 1:, :].sum(axis=-1)
    combinations = np.where(layout.active[None, :, 1:], counts, 1.0).prod(axis=-1)
    weights[:, 0, : combinations.shape[1]] *= combinations
    return weights, weights[:, 0].sum(axis=-1)


def sample(
    scores: FloatArray, legal: BoolArray, layout: ActionLayout, rng: np.random.Generator, epsilon: float = 0.0
) -> Draw:
    """Draw an action for each row; with probability `epsilon` any legal one, all being equally likely.

    Args:
        scores: Shape [B, S, W].
        legal: Shape [B, S, W].
        layout: The meaning of the segments.
        rng: Source of randomness.
        epsilon: Share of uniform exploration. The behaviour is then the mixture of both distributions.
    """
    scores = np.where(legal, scores, np.float32(MASKED))
    scores -= scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores)
    totals = weights.sum(axis=-1)
    count: NDArray[np.float64] | None = None
    if epsilon > 0.0:
        uniform, count = _uniform_weights(legal, layout)
        explore = rng.random(len(scores)) < epsilon
        choices = _pick(np.where(explore[:, None, None], uniform, weights), rng)
    else:
        choices = _pick(weights, rng)
    choices, active = _settle(choices, layout)
    chosen = np.take_along_axis(scores, choices[..., None], axis=-1)[..., 0] - np.log(totals)
    policy_logp = (chosen * active).sum(axis=-1)
    if count is None:
        return Draw(choices, policy_logp, policy_logp)
    mixture = np.logaddexp(np.log1p(-epsilon) + policy_logp, np.log(epsilon) - np.log(count))
    return Draw(choices, policy_logp, mixture.astype(np.float32))


def greedy(scores: FloatArray, legal: BoolArray, layout: ActionLayout) -> IntArray:
    """Return the best kind of each row and the best choice in each of its slots; shape [B, S]."""
    return _settle(np.where(legal, scores, np.float32(MASKED)).argmax(axis=-1), layout)[0]


def epsilon_greedy(
    scores: FloatArray, legal: BoolArray, layout: ActionLayout, rng: np.random.Generator, epsilon: float
) -> IntArray:
    """Return `greedy` choices, or with probability `epsilon` any legal action; shape [B, S]."""
    best = greedy(scores, legal, layout)
    explore = rng.random(len(scores)) < epsilon
    other = _settle(_pick(_uniform_weights(legal, layout)[0], rng), layout)[0]
    return np.where(explore[:, None], other, best)


def probabilities(scores: FloatArray, legal: BoolArray) -> NDArray[np.float64]:
    """Return the probabilities within each segment, shape [B, S, W]."""
    masked = np.where(legal, scores.astype(np.float64), MASKED)
    weights = np.exp(masked - masked.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)
