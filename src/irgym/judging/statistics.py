"""Geometric means with confidence intervals, and what may be called faster."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

NOISE = 0.05
"""Relative difference below which a single measured ratio says nothing."""

LARGEST = 700.0
"""Logarithm of what an interval may reach: two ratios far apart bound hardly anything."""


class Verdict(Enum):
    """Verdict on a ratio of costs; the value is the word in tables."""

    FASTER = "faster"
    TIE = "tie"
    SLOWER = "slower"


@dataclass(frozen=True)
class Interval:
    """A geometric mean and its confidence interval.

    Attributes:
        mean: Geometric mean.
        low: Lower end; 0 where there are fewer than two values, which bound nothing.
        high: Upper end; infinite where there are fewer than two values.
        n: Number of values.
        noise: Relative difference below which a single value says nothing.
    """

    mean: float
    low: float
    high: float
    n: int
    noise: float = NOISE

    @property
    def verdict(self) -> Verdict:
        """Verdict on the mean: a tie if the interval contains 1, or a single value is within the noise."""
        if self.n < 2:
            return decide(self.mean, self.noise)
        if self.low > 1.0:
            return Verdict.FASTER
        return Verdict.SLOWER if self.high < 1.0 else Verdict.TIE


def decide(ratio: float, noise: float = NOISE) -> Verdict:
    """Return what a single ratio, the other's cost over ours, shows."""
    if ratio > 1.0 + noise:
        return Verdict.FASTER
    return Verdict.SLOWER if ratio < 1.0 / (1.0 + noise) else Verdict.TIE


def median_interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """Return a confidence interval of the median of what some values are drawn from.

    Its ends are two of the values, so that nothing is assumed of their distribution. Fewer than six values
    give 95 % for no two of them: then the least and the greatest.
    """
    ordered, n = sorted(values), len(values)
    place, outside = 0, 2 * 0.5**n
    while 2 * (place + 1) < n:
        outside += 2 * math.comb(n, place + 1) * 0.5**n
        if outside > 1 - confidence:
            break
        place += 1
    return ordered[place], ordered[n - 1 - place]


def geometric_interval(ratios: Sequence[float], confidence: float = 0.95, noise: float = NOISE) -> Interval:
    """Return the geometric mean of positive ratios with Student's interval on their logarithms.

    Args:
        ratios: The ratios.
        confidence: Probability that the interval covers the truth.
        noise: Relative difference below which a single ratio says nothing.

    Raises:
        ValueError: There are no ratios, or one is not positive and finite.
    """
    if not ratios or not all(0.0 < ratio < math.inf for ratio in ratios):
        raise ValueError("a geometric mean needs positive, finite ratios")
    n = len(ratios)
    logs = [math.log(ratio) for ratio in ratios]
    mean = math.fsum(logs) / n
    if n < 2:
        return Interval(math.exp(mean), 0.0, math.inf, n, noise)
    deviation = math.sqrt(math.fsum((log - mean) ** 2 for log in logs) / (n - 1))
    half = t_quantile(0.5 + confidence / 2, n - 1) * deviation / math.sqrt(n)
    return Interval(math.exp(mean), math.exp(mean - half), math.exp(min(mean + half, LARGEST)), n, noise)


def t_probability(t: float, degrees: int) -> float:
    """Return P(|T| <= t) of Student's t (Abramowitz and Stegun 26.7.3 and 26.7.4).

    Args:
        t: Bound, at least 0.
        degrees: Degrees of freedom, at least 1.
    """
    theta = math.atan2(t, math.sqrt(degrees))
    cosine = math.cos(theta)
    odd = degrees % 2 == 1
    term, total = (cosine, 0.0) if odd else (1.0, 0.0)
    for power in range(1 if odd else 0, degrees - 1, 2):
        total += term
        term *= cosine * cosine * (power + 1) / (power + 2)
    return 2.0 / math.pi * (theta + math.sin(theta) * total) if odd else math.sin(theta) * total


def t_quantile(probability: float, degrees: int) -> float:
    """Return the t with P(T <= t) = `probability`, which must lie in [0.5, 1)."""
    low, high = 0.0, 1.0
    while (1.0 + t_probability(high, degrees)) / 2 < probability:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        below = (1.0 + t_probability(middle, degrees)) / 2 < probability
        low, high = (middle, high) if below else (low, middle)
    return (low + high) / 2
