"""How good predictions were."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Quality(NamedTuple):
    """How well predicted and measured costs agree.

    Attributes:
        rank_correlation: Spearman's; 1 is a perfect order.
        error: Root of the mean square of the error of the costs' natural logarithms; 0.1 is about 10 %.
    """

    rank_correlation: float
    error: float


def quality_of(predicted: NDArray[np.float64], measured: NDArray[np.float64]) -> Quality | None:
    """Return how well N predictions agree with N measurements, both logarithms.

    None for fewer than three, and where all of either are equal: there is no order then.
    """
    if min(len(np.unique(predicted)), len(np.unique(measured))) < 2 or len(measured) < 3:
        return None
    correlation = np.corrcoef(_ranks(predicted), _ranks(measured))[0, 1]
    return Quality(float(correlation), float(np.sqrt(np.mean((predicted - measured) ** 2))))


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the place of each value among all, from 1; equal ones share the mean of theirs."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[places]
