"""Samples of the operators of opsets 7 to 12, and what they are drawn by."""

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
        operator: Its name.
        inputs: Inputs in order; None for one that is left out.
        attributes: Attributes.
        opsets: Opsets in which it has this form.
        outputs: How many results it makes.
        constant: Places of the inputs that are weights.
        label: What tells it from other samples of the operator.
    """

    operator: str
    inputs: Sequence[Array | None]
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])
    opsets: range = range(FIRST, LAST + 1)
    outputs: int = 1
    constant: Sequence[int] = ()
    label: str = ""


class Draw:
    """Draws inputs."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def floats(self, *shape: int) -> Array:
        """Return numbers of the standard normal distribution."""
        return np.asarray(self._random.standard_normal(shape), np.float32)

    def shares(self, *shape: int) -> Array:
        """Return numbers from 0.1 to 0.9."""
        return np.asarray(self._random.uniform(0.1, 0.9, shape), np.float32)

    def whole(self, low: int, high: int, *shape: int, kind: Any = np.int64) -> Array:
        """Return whole numbers from `low` on, below `high`."""
        return np.asarray(self._random.integers(low, high, shape), kind)

    def truths(self, *shape: int) -> Array:
        """Return truth values."""
        return np.asarray(self._random.integers(0, 2, shape), np.bool_)


def numbers(*values: int) -> Array:
    """Return whole numbers as an array of one dimension."""
    return np.array(values, np.int64)


def since(first: int) -> range:
    """Return the opsets from one on."""
    return range(first, LAST + 1)


def until(last: int, first: int = FIRST) -> range:
    """Return the opsets up to one."""
    return range(first, last + 1)
