"""Which candidates to measure: those predicted to be best, and some at random."""

import numpy as np
from numpy.typing import NDArray

EXPLORED = 0.1
"""Share of those measured that is chosen at random: a model learns nothing of what it thinks little of."""


def promising(
    predicted: NDArray[np.float64], count: int, rng: np.random.Generator, explored: float = EXPLORED
) -> NDArray[np.intp]:
    """Return the places of those candidates to measure, epsilon-greedily as AutoTVM (arXiv 1805.08166).

    Args:
        predicted: Shape [N]; costs in any increasing unit.
        count: How many to measure; all where that is at least N.
        rng: Chooses the random ones.
        explored: Share of those measured that is random, rounded up; but one is always the best predicted.

    Returns:
        Distinct places, the best predicted first, then the random ones.
    """
    order = np.argsort(predicted, kind="stable")
    if count >= len(order):
        return order
    best = max(1, count - int(np.ceil(explored * count)))
    return np.concatenate([order[:best], rng.choice(order[best:], count - best, replace=False)])
