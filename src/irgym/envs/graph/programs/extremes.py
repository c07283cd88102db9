"""Unusual inputs of a model: large, small and equal numbers, zeros, masked rows, negative indices, NaN.

Ordinary draws stay within 3 to 5 in size, hold no two equal numbers, and leave something open in each row of
a mask. A softmax that forgets to subtract the maximum is right on all of them.
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
"""Floats that overflowed, or whose squares do."""

NO_NUMBERS = (np.nan, -0.0, 0.0)
"""Floats that compare unlike others: NaN with nothing, the two zeros as equals."""

SHARE = 8
"""One in so many floats is special where special ones are drawn."""


@dataclass(frozen=True)
class Style:
    """A way to draw inputs.

    Attributes:
        name: What the inputs are, as messages say it.
        floats: Makes floats of ordinary ones, given those that the model compares with; None: they stay.
        wholes: Makes whole numbers of ordinary ones, given the values at the ends of their range.
        masks: Makes masks, which hold 0 and 1, of ordinary ones.
        large: Whether floats are large enough for a model to overflow or to saturate.
        special: Whether infinities or NaN are among the floats.
    """

    name: str
    floats: Callable[[Array, Sequence[float], Random], Array] | None = None
    wholes: Callable[[Array, Sequence[int], Random], Array] | None = None
    masks: Callable[[Array, Random], Array] | None = None
    large: bool = False
    special: bool = False

    def concerns(self, one: Input, ranges: Mapping[str, tuple[int, int]]) -> bool:
        """Say whether an input differs from an ordinary one."""
        return self._changes(one, ranges) is not None

    def _changes(self, one: Input, ranges: Mapping[str, tuple[int, int]]) -> object:
        if one.dtype == np.bool_ or ranges.get(one.name) == MASK:
            return self.masks
        return self.wholes if one.name in ranges else self.floats

    def drawn(
        self,
        one: Input,
        ordinary: Array,
        ranges: Mapping[str, tuple[int, int]],
        wrapping: bool,
        compared: Sequence[float],
        random: Random,
    ) -> Array:
        """Return an input of this style.

        Args:
            one: The input.
            ordinary: Ordinary values of it.
            ranges: Least value, and the one after the greatest, of each input of whole numbers.
            wrapping: Whether it is an index of which negative values count from the end.
            compared: Numbers that the model compares with.
            random: What the values depend on.
        """
        changes = self._changes(one, ranges)
        if changes is None:
            return ordinary
        if changes is self.wholes:
            assert self.wholes is not None
            low, high = ranges[one.name]
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
        return np.asarray(made).astype(one.dtype)


def _times(factor: float) -> Callable[[Array, Sequence[float], Random], Array]:
    # A number of half precision has little room: its square overflows from 256 on.
    return lambda values, compared, random: (
        values * (min(factor, 10.0) if values.dtype == np.float16 else factor)
    )


def _tied(values: Array, compared: Sequence[float], random: Random) -> Array:
    """Replace half of the numbers by multiples of 1/2, so that equal ones, halves and zeros are common.

    A quarter become numbers that the model compares with.
    """
    kinds = random.integers(0, 4, values.shape)
    found = np.where(kinds < 2, random.integers(-4, 5, values.shape) / 2.0, np.clip(values, -1.9, 1.9))
    return np.where(kinds == 3, random.choice(compared, values.shape), found) if compared else found


def _with(special: Sequence[float]) -> Callable[[Array, Sequence[float], Random], Array]:
    """Put special numbers in the place of some, and of at least one."""

    def made(values: Array, compared: Sequence[float], random: Random) -> Array:
        found = values.copy()
        flat = found.reshape(-1)
        places = random.permutation(flat.size)[: max(1, flat.size // SHARE)]
        flat[places] = random.permutation(np.resize(special, len(places)))
        return found

    return made


def _rows(values: Array) -> tuple[int, int]:
    """Return the shape of values as rows: how many there are, and how long they are."""
    length = values.shape[-1] if values.ndim else 1
    return values.size // max(length, 1), length


def _closed(values: Array, random: Random) -> Array:
    """Close one whole row, and let the others begin with anything."""
    rows = random.integers(0, 2, _rows(values))
    if rows.size:
        rows[int(random.integers(len(rows)))] = 0
    return rows.reshape(values.shape)


def _narrow(values: Array, random: Random) -> Array:
    """Leave one place of each row open."""
    rows = np.zeros(_rows(values))
    if rows.size:
        rows[np.arange(len(rows)), random.integers(0, rows.shape[1], len(rows))] = 1
    return rows.reshape(values.shape)


def _opened(values: Array, random: Random) -> Array:
    return np.ones(values.shape)


def _ends(values: Array, ends: Sequence[int], random: Random) -> Array:
    """Replace half of the numbers by those at the ends of their range."""
    return np.where(random.integers(0, 2, values.shape) == 1, random.choice(ends, values.shape), values)


def _repeated(values: Array, ends: Sequence[int], random: Random) -> Array:
    """Keep two of the numbers, so that most are there several times."""
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
"""The styles in which inputs are drawn besides the ordinary one."""


def extremes(
    inputs: Sequence[Input],
    ordinary: Mapping[str, Array],
    ranges: Mapping[str, tuple[int, int]],
    wrapping: frozenset[str],
    seed: int,
    compared: Sequence[float] = (),
) -> list[tuple[Style, dict[str, Array]]]:
    """Return inputs in each style that changes one of them; the same seed gives the same.

    Args:
        inputs: The inputs of a model.
        ordinary: Ordinary values of each.
        ranges: Least value, and the one after the greatest, of each input of whole numbers.
        wrapping: Indices of which negative values count from the end.
        seed: What the values depend on.
        compared: Numbers that the model compares with.
    """
    return [
        (
            style,
            {
                one.name: style.drawn(
                    one,
                    ordinary[one.name],
                    ranges,
                    one.name in wrapping,
                    compared,
                    np.random.default_rng((seed, number, place)),
                )
                for place, one in enumerate(inputs)
            },
        )
        for number, style in enumerate(STYLES)
        if any(style.concerns(one, ranges) for one in inputs)
    ]
