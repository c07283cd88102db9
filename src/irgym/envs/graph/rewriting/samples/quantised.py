"""Random quantised arrays, scales and zero points, for samples of rules."""

import numpy as np

from irgym.envs.graph.rewriting.samples.operands import Array, Rng

KINDS = ("int8", "uint8")
"""Types of quantised numbers."""


def kind_of(rng: Rng) -> str:
    """Return a type of quantised numbers."""
    return KINDS[int(rng.integers(2))]


def integers(rng: Rng, kind: str, *shape: int) -> Array:
    """Return integers from the whole range of a type."""
    limits = np.iinfo(kind)
    return np.asarray(rng.integers(limits.min, limits.max + 1, shape), kind)


def scale_of(rng: Rng, *shape: int) -> Array:
    """Return positive scales."""
    return np.asarray(rng.uniform(0.01, 0.1, shape))


def least(kind: str) -> Array:
    """Return the least integer of a type, as a zero point."""
    return np.asarray(np.iinfo(kind).min, kind)
