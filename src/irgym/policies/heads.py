"""The distribution over structured actions that scores and a mask define.

log p(action) = log p(kind) + the sum over the kind's slots of log p(choice). Where the layout links slots,
the scores of a later one grow by a learnt number for each choice made before it. Sampling is done in numpy,
where small batches are quick and one seeded generator makes it reproducible; what is differentiated,
`irgym.networks.likelihood` does in torch.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from irgym.core.actions import BoolArray
from irgym.policies.layout import ActionLayout, IntArray

FloatArray = NDArray[np.float32]


# Finite, so that a segment without any alternative (a slot of a masked kind) gives numbers, not NaN;
# its exponential is exactly 0 beside any score that a network emits.
MASKED = -1e9

LEAST = np.finfo(np.float32).tiny
"""Least probability whose logarithm is taken."""

PairScores = NDArray[np.float32]
Choose = Callable[[FloatArray], IntArray]


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


def _in_turn(scores: FloatArray, layout: ActionLayout, pair_scores: PairScores, choose: Choose) -> IntArray:
    """Choose in the linked slots one after the other; return the choices of all segments, shape [B, S].

    Args:
        scores: Shape [B, S, W]; illegal ones are `MASKED`.
        layout: The meaning of the segments.
        pair_scores: Shape [P, W, W], see `Actor`.
        choose: Makes choices of shape [B, s] of scores of shape [B, s, W].
    """
    scores = scores.copy()
    choices = np.zeros(scores.shape[:2], dtype=np.int64)
    choices[:, :1] = choose(scores[:, :1])
    for segments, pairs in layout.ranks:
        for pair in pairs:
            scores[:, layout.later[pair], : layout.width] += pair_scores[
                pair, choices[:, layout.earlier[pair]]
            ]
        choices[:, segments] = choose(scores[:, segments])
    return choices


def _given(
    scores: FloatArray, layout: ActionLayout, pair_scores: PairScores, choices: IntArray
) -> FloatArray:
    """Return the scores of all segments given the choices in those before them."""
    scores = scores.copy()
    for pair, (earlier, later) in enumerate(zip(layout.earlier, layout.later, strict=True)):
        scores[:, later, : layout.width] += pair_scores[pair, choices[:, earlier]]
    return scores


def _pick(weights: NDArray[np.floating], rng: np.random.Generator) -> IntArray:
    """Draw from each segment in proportion to its weights; shape [B, S]."""
    cumulative = weights.cumsum(axis=-1, dtype=np.float64)
    # A float32 below 1 times a float64 stays below it, so the last alternative is never passed.
    threshold = rng.random(weights.shape[:-1], dtype=np.float32) * cumulative[..., -1]
    picked = (cumulative <= threshold[..., None]).sum(axis=-1)
    return np.minimum(picked, weights.shape[-1] - 1)


def _settle(choices: IntArray, layout: ActionLayout) -> tuple[IntArray, BoolArray]:
    """Set the choices of inactive segments to 0; return them and which segments are active."""
    active = layout.chosen(choices)
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
    combinations = combinations[:, : layout.width]  # a candidate is one alternative
    weights[:, 0, : combinations.shape[1]] *= combinations
    return weights, weights[:, 0].sum(axis=-1)


def uniform_kind(legal: BoolArray, layout: ActionLayout, rng: np.random.Generator) -> IntArray:
    """Draw legal actions, shape [B, S]; kinds and candidates are equally likely, with any parameters.

    Half of the parameters that can be omitted are: of many loops, most are not to be tiled at once.
    """
    weights = legal.astype(np.float64)
    segments = np.flatnonzero(layout.omitted >= 0)
    left_out = segments, layout.omitted[segments]
    weights[:, *left_out] *= np.maximum(weights[:, segments].sum(axis=-1) - 1, 1)
    return _settle(_pick(weights, rng), layout)[0]


def _explored(
    choices: IntArray, legal: BoolArray, layout: ActionLayout, rng: np.random.Generator, epsilon: float
) -> tuple[IntArray, NDArray[np.float64] | None]:
    """Exchange a share of the choices for uniform ones; return them, and the number of legal actions, [B].

    Without any exploration the number is not needed, and None.
    """
    if epsilon <= 0.0:
        return choices, None
    uniform, count = _uniform_weights(legal, layout)
    explore = rng.random(len(choices)) < epsilon
    return np.where(explore[:, None], _pick(uniform, rng), choices), count


def sample(
    scores: FloatArray,
    legal: BoolArray,
    layout: ActionLayout,
    rng: np.random.Generator,
    epsilon: float = 0.0,
    pair_scores: PairScores | None = None,
) -> Draw:
    """Draw an action for each row; with probability `epsilon` any legal one, all being equally likely.

    Args:
        scores: Shape [B, S, W], or [B, S, W + K] with candidates.
        legal: Of the same shape.
        layout: The meaning of the segments.
        rng: Source of randomness.
        epsilon: Share of uniform exploration. The behaviour is then the mixture of both distributions.
        pair_scores: Shape [P, W, W], see `Actor`.
    """
    scores = np.where(legal, scores, np.float32(MASKED))
    if pair_scores is None:
        weights = _weights(scores)
        choices, count = _explored(_pick(weights, rng), legal, layout, rng, epsilon)
    else:
        choices = _in_turn(scores, layout, pair_scores, lambda some: _pick(_weights(some), rng))
        choices, count = _explored(choices, legal, layout, rng, epsilon)
        weights = _weights(_given(scores, layout, pair_scores, choices))
    choices, active = _settle(choices, layout)
    likely = np.take_along_axis(weights, choices[..., None], axis=-1)[..., 0] / weights.sum(axis=-1)
    policy_logp = (np.log(np.maximum(likely, LEAST)) * active).sum(axis=-1)
    if count is None:
        return Draw(choices, policy_logp, policy_logp)
    mixture = np.logaddexp(np.log1p(-epsilon) + policy_logp, np.log(epsilon) - np.log(count))
    return Draw(choices, policy_logp, mixture.astype(np.float32))


def _weights(scores: FloatArray) -> FloatArray:
    """Return the exponentials of scores, the greatest of each segment being 1."""
    return np.exp(scores - scores.max(axis=-1, keepdims=True))


def greedy(
    scores: FloatArray, legal: BoolArray, layout: ActionLayout, pair_scores: PairScores | None = None
) -> IntArray:
    """Return the best kind of each row and the best choice in each of its slots; shape [B, S].

    Where slots are linked, the best of each given those before it.
    """
    masked = np.where(legal, scores, np.float32(MASKED))
    if pair_scores is None:
        return _settle(masked.argmax(axis=-1), layout)[0]
    return _settle(_in_turn(masked, layout, pair_scores, lambda some: some.argmax(axis=-1)), layout)[0]


def likeliest(
    scores: FloatArray, legal: BoolArray, layout: ActionLayout, pair_scores: PairScores | None = None
) -> IntArray:
    """Return the choices that `greedy` makes of a policy's scores, but for ends that come too early; [B, S].

    Where candidates share what is left between them, to end the episode may be more likely than each of them,
    and less than all. Then the best of these is chosen.
    """
    choices = greedy(scores, legal, layout, pair_scores)
    if not layout.pointed:
        return choices
    weights = _weights(np.where(legal[:, 0], scores[:, 0], np.float32(MASKED)))
    ending = weights[:, : layout.width] @ layout.ends / weights.sum(axis=-1)
    onward = layout.onward(legal)
    early = (ending < 0.5) & onward[:, 0].any(axis=-1)
    return np.where(early[:, None], greedy(scores, onward, layout, pair_scores), choices)


def epsilon_greedy(
    scores: FloatArray, legal: BoolArray, layout: ActionLayout, rng: np.random.Generator, epsilon: float
) -> IntArray:
    """Return `greedy` choices, or with probability `epsilon` any legal action; shape [B, S]."""
    best = greedy(scores, legal, layout)
    explore = rng.random(len(scores)) < epsilon
    other = _settle(_pick(_uniform_weights(legal, layout)[0], rng), layout)[0]
    return np.where(explore[:, None], other, best)
