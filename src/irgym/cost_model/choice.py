"""Choice of the candidates to measure: those predicted to be best, and some at random."""

import numpy as np
from numpy.typing import NDArray

EXPLORED = 0.1
"""Share of random candidates among the measured ones, so that the model also learns about bad candidates."""


def promising(
    predicted: NDArray[np.float64], count: int, rng: np.random.Generator, explored: float = EXPLORED
) -> NDArray[np.intp]:
    """Choose candidates to measure epsilon-greedily, as AutoTVM does (arXiv 1805.08166).

    Args:
        predicted: Shape [N]; costs, or any increasing function of them.
        count: Number of candidates to measure, at most N.
        rng: Random generator.
        explored: Share of random ones, rounded up; at least one is the best predicted.

    Returns:
        Distinct places, the best predicted first, then the random ones.
    """
    order = np.argsort(predicted, kind="stable")
    if count >= len(order):
        return order
    best = max(1, count - int(np.ceil(explored * count)))
    return np.concatenate([order[:best], rng.choice(order[best:], count - best, replace=False)])
