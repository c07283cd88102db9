"""Quality of predictions."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Quality(NamedTuple):
    """Agreement of predicted and measured costs.

    Attributes:
        rank_correlation: Spearman's; 1 is a perfect order.
        error: Root-mean-square error of the costs' natural logarithms; 0.1 is about 10 %.
    """

    rank_correlation: float
    error: float


def quality_of(predicted: NDArray[np.float64], measured: NDArray[np.float64]) -> Quality | None:
    """Return the agreement of N predictions with N measurements, both logarithms.

    None for N below three, or if all values of either are equal, since they then have no order.
    """
    if min(len(np.unique(predicted)), len(np.unique(measured))) < 2 or len(measured) < 3:
        return None
    correlation = np.corrcoef(_ranks(predicted), _ranks(measured))[0, 1]
    return Quality(float(correlation), float(np.sqrt(np.mean((predicted - measured) ** 2))))


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the place of each value among all, from 1; equal ones share the mean of theirs."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[places]
