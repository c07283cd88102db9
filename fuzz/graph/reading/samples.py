"""Samples of the operators of opsets 7 to 12, and random inputs for them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

FIRST, LAST = 7, 12


@dataclass(frozen=True)
class Sample:
    """An operator with inputs and attributes.

    Attributes:
        operator: Name of the operator.
        inputs: Inputs in order; None for a missing one.
        attributes: Attributes.
        opsets: Opsets in which the operator has this form.
        outputs: Number of results.
        constant: Indices of the inputs that are weights.
        label: Distinguishes the sample from others of the operator.
    """

    operator: str
    inputs: Sequence[Array | None]
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])
    opsets: range = range(FIRST, LAST + 1)
    outputs: int = 1
    constant: Sequence[int] = ()
    label: str = ""


class Draw:
    """Random inputs."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def floats(self, *shape: int) -> Array:
        """Return normally distributed numbers."""
        return np.asarray(self._random.standard_normal(shape), np.float32)

    def shares(self, *shape: int) -> Array:
        """Return numbers from 0.1 to 0.9."""
        return np.asarray(self._random.uniform(0.1, 0.9, shape), np.float32)

    def whole(self, low: int, high: int, *shape: int, kind: Any = np.int64) -> Array:
        """Return integers from `low` to below `high`."""
        return np.asarray(self._random.integers(low, high, shape), kind)

    def truths(self, *shape: int) -> Array:
        """Return booleans."""
        return np.asarray(self._random.integers(0, 2, shape), np.bool_)


def numbers(*values: int) -> Array:
    """Return integers as an array of one dimension."""
    return np.array(values, np.int64)


def since(first: int) -> range:
    """Return all opsets from a version on."""
    return range(first, LAST + 1)


def until(last: int, first: int = FIRST) -> range:
    """Return all opsets up to a version."""
    return range(first, last + 1)
