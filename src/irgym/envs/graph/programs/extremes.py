"""Extreme inputs of a model: large, small and equal numbers, zeros, masked rows, negative indices, NaN.

Ordinary inputs stay below 5 in magnitude, contain no equal numbers, and mask no row entirely. A softmax that
forgets to subtract the maximum would pass on all of them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.envs.graph.programs.inputs import MASK, Input

Array = NDArray[Any]
Random = np.random.Generator

INFINITIES = (np.inf, -np.inf, 1e30, 1e-30)
"""Infinities, and floats whose squares overflow or underflow."""

NO_NUMBERS = (np.nan, -0.0, 0.0)
"""Floats with special comparisons: NaN equals nothing, and the two zeros are equal."""

SHARE = 8
"""One in this many floats is special, in styles with special floats."""


@dataclass(frozen=True)
class Style:
    """A way to draw inputs.

    Attributes:
        name: A description of the inputs, for messages.
        floats: Changes ordinary floats, given the model's thresholds; None leaves them unchanged.
        wholes: Changes ordinary integers, given the values at the ends of their range.
        masks: Changes ordinary masks of 0 and 1.
        large: Whether floats are large enough for a model to overflow or to saturate.
        special: Whether infinities or NaN are among the floats.
    """

    name: str
    floats: Callable[[Array, Sequence[float], Random], Array] | None = None
    wholes: Callable[[Array, Sequence[int], Random], Array] | None = None
    masks: Callable[[Array, Random], Array] | None = None
    large: bool = False
    special: bool = False

    def concerns(self, given: Input, ranges: Mapping[str, tuple[int, int]]) -> bool:
        """Say whether this style changes an input."""
        return self._changes(given, ranges) is not None

    def _changes(self, given: Input, ranges: Mapping[str, tuple[int, int]]) -> object:
        if given.dtype == np.bool_ or ranges.get(given.name) == MASK:
            return self.masks
        return self.wholes if given.name in ranges else self.floats

    def drawn(
        self,
        given: Input,
        ordinary: Array,
        ranges: Mapping[str, tuple[int, int]],
        wrapping: bool,
        compared: Sequence[float],
        random: Random,
    ) -> Array:
        """Return an input of this style.

        Args:
            given: The input.
            ordinary: Its ordinary values.
            ranges: The half-open range of each integer input.
            wrapping: Whether it is an index that may be negative, counting from the end.
            compared: The model's thresholds.
            random: Generator of the values.
        """
        changes = self._changes(given, ranges)
        if changes is None:
            return ordinary
        if changes is self.wholes:
            assert self.wholes is not None
            low, high = ranges[given.name]
            known = [int(value) for value in compared if low <= value < high]
            ends = (low, high - 1, *((-1, -high) if wrapping else ()), *known)
            made = self.wholes(ordinary, ends, random)
        elif changes is self.masks:
            assert self.masks is not None
            made = self.masks(ordinary, random)
        else:
            assert self.floats is not None
            with np.errstate(over="ignore"):
                made = self.floats(ordinary, compared, random)
        return np.asarray(made).astype(given.dtype)


def _times(factor: float) -> Callable[[Array, Sequence[float], Random], Array]:
    # The range of half precision is small: squares overflow from 256 on.
    return lambda values, compared, random: (
        values * (min(factor, 10.0) if values.dtype == np.float16 else factor)
    )


def _tied(values: Array, compared: Sequence[float], random: Random) -> Array:
    """Replace half of the numbers by multiples of 0.5, so that equal numbers, halves and zeros are common.

    A quarter of the numbers become thresholds of the model.
    """
    kinds = random.integers(0, 4, values.shape)
    found = np.where(kinds < 2, random.integers(-4, 5, values.shape) / 2.0, np.clip(values, -1.9, 1.9))
    return np.where(kinds == 3, random.choice(compared, values.shape), found) if compared else found


def _with(special: Sequence[float]) -> Callable[[Array, Sequence[float], Random], Array]:
    """Return a function that replaces some numbers, at least one, by special ones."""

    def made(values: Array, compared: Sequence[float], random: Random) -> Array:
        found = values.copy()
        flat = found.reshape(-1)
        places = random.permutation(flat.size)[: max(1, flat.size // SHARE)]
        flat[places] = random.permutation(np.resize(special, len(places)))
        return found

    return made


def _rows(values: Array) -> tuple[int, int]:
    """Return the number of rows in an array, and their length."""
    length = values.shape[-1] if values.ndim else 1
    return values.size // max(length, 1), length


def _closed(values: Array, random: Random) -> Array:
    """Mask a random row entirely, and the others at random."""
    rows = random.integers(0, 2, _rows(values))
    if rows.size:
        rows[int(random.integers(len(rows)))] = 0
    return rows.reshape(values.shape)


def _narrow(values: Array, random: Random) -> Array:
    """Mask all but one element of each row."""
    rows = np.zeros(_rows(values))
    if rows.size:
        rows[np.arange(len(rows)), random.integers(0, rows.shape[1], len(rows))] = 1
    return rows.reshape(values.shape)


def _opened(values: Array, random: Random) -> Array:
    return np.ones(values.shape)


def _ends(values: Array, ends: Sequence[int], random: Random) -> Array:
    """Replace half of the numbers by the ends of their range."""
    return np.where(random.integers(0, 2, values.shape) == 1, random.choice(ends, values.shape), values)


def _repeated(values: Array, ends: Sequence[int], random: Random) -> Array:
    """Draw all numbers from two of them, so that most occur several times."""
    return random.choice(random.choice(values.reshape(-1), 2), values.shape) if values.size else values


STYLES = (
    Style("inputs of ten times the usual size", _times(10.0), masks=_closed, large=True),
    Style("inputs of a hundred times the usual size", _times(100.0), masks=_narrow, large=True),
    Style("inputs of a millionth of the usual size", _times(1e-6), masks=_opened),
    Style("positive inputs", lambda values, compared, random: np.abs(values), _ends),
    Style("inputs with equal numbers", _tied, _repeated, _closed),
    Style("inputs of zeros", lambda values, compared, random: np.zeros(values.shape)),
    Style("inputs with infinities", _with(INFINITIES), special=True),
    Style("inputs with NaN", _with(NO_NUMBERS), special=True),
)
"""The styles of extreme inputs."""


def extremes(
    inputs: Sequence[Input],
    ordinary: Mapping[str, Array],
    ranges: Mapping[str, tuple[int, int]],
    wrapping: frozenset[str],
    seed: int,
    compared: Sequence[float] = (),
) -> list[tuple[Style, dict[str, Array]]]:
    """Return inputs in each style that changes any of them, deterministic in the seed.

    Args:
        inputs: The inputs of a model.
        ordinary: Ordinary values of each.
        ranges: The half-open range of each integer input.
        wrapping: Indices that may be negative, counting from the end.
        seed: The seed.
        compared: The model's thresholds.
    """
    return [
        (
            style,
            {
                given.name: style.drawn(
                    given,
                    ordinary[given.name],
                    ranges,
                    given.name in wrapping,
                    compared,
                    np.random.default_rng((seed, number, place)),
                )
                for place, given in enumerate(inputs)
            },
        )
        for number, style in enumerate(STYLES)
        if any(style.concerns(given, ranges) for given in inputs)
    ]
