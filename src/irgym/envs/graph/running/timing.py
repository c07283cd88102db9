"""How models are timed."""

from irgym.measure.timing import Timing

ONE = Timing(budget_ns=300_000_000, slow_ns=200_000_000)
"""How models on one thread are timed: they take from one to hundreds of milliseconds."""

SEVERAL = Timing(budget_ns=300_000_000, slow_ns=200_000_000, clock="process")
"""The same on several threads."""


def timing_of(threads: int) -> Timing:
    """Return how models are timed."""
    return ONE if threads == 1 else SEVERAL
