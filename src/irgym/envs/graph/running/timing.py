"""Settings for timing models."""

from irgym.measure.timing import Timing

SINGLE = Timing(budget_ns=100_000_000, fewest=3, slow_ns=200_000_000)
"""Timing on one thread; runs take from one to hundreds of milliseconds.

Few samples do for a search, whose best are measured again and then timed in turn: more candidates gain more.
"""

SEVERAL = Timing(budget_ns=100_000_000, fewest=3, slow_ns=200_000_000, clock="process")
"""Timing on several threads."""


def timing_of(threads: int) -> Timing:
    """Return the settings for a number of threads."""
    return SINGLE if threads == 1 else SEVERAL
