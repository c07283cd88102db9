"""Wrong results, made of right ones: what a check has to refuse."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Mutation = Callable[[Array, np.random.Generator], Array]


def _place(values: Array, rng: np.random.Generator) -> tuple[int, ...]:
    """Return the place of a number that is not 0, where there is one."""
    places = np.argwhere(values != 0)
    return tuple(places[rng.integers(len(places))]) if len(places) else (0,) * values.ndim


def _opposite(values: Array, rng: np.random.Generator) -> Array:
    return ~values if values.dtype.kind == "b" else -values


def _one_element(values: Array, rng: np.random.Generator) -> Array:
    wrong = values.copy()
    place = _place(values, rng)
    if values.dtype.kind == "b":
        wrong[place] = ~wrong[place]
    elif values.dtype.kind in "iu":
        wrong[place] += 1
    else:
        wrong[place] = wrong[place] * 1.01
    return wrong


def _one_row(values: Array, rng: np.random.Generator) -> Array:
    wrong = values.copy()
    if values.ndim:
        wrong[int(rng.integers(len(values)))] = 0
    return wrong if values.ndim else np.zeros_like(values)


def _neighbours(values: Array, rng: np.random.Generator) -> Array:
    wrong = values.reshape(-1).copy()
    if len(wrong) > 1:
        place = int(rng.integers(len(wrong) - 1))
        wrong[[place, place + 1]] = wrong[[place + 1, place]]
    return wrong.reshape(values.shape)


def _slightly_larger(values: Array, rng: np.random.Generator) -> Array:
    return values + 1 if values.dtype.kind in "iu" else _scaled(values, 1.001)


def _scaled(values: Array, factor: float) -> Array:
    if values.dtype.kind == "b":
        return values.copy()
    return (values * factor).astype(values.dtype)


def _fewer_bits(values: Array, rng: np.random.Generator) -> Array:
    """Round to the 8 bits of bfloat16."""
    if values.dtype != np.float32:
        return _one_element(values, rng)
    return (values.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


def _unwritten(values: Array, rng: np.random.Generator) -> Array:
    wrong = values.copy()
    wrong.reshape(-1)[-1:] = np.nan if values.dtype.kind in "fc" else ~values.reshape(-1)[-1:]
    return wrong


MUTATIONS: Mapping[str, Mutation] = {
    "zeros": lambda values, rng: np.zeros_like(values),
    "the opposite": _opposite,
    "times -0.5": lambda values, rng: _scaled(values, -0.5),
    "0.1 % more": _slightly_larger,
    "one place on": lambda values, rng: np.roll(values, 1),
    "reversed": lambda values, rng: values.reshape(-1)[::-1].reshape(values.shape).copy(),
    "two neighbours exchanged": _neighbours,
    "one number 1 % off": _one_element,
    "one row left out": _one_row,
    "8 bits": _fewer_bits,
    "the last number unwritten": _unwritten,
}
"""Ways to be wrong, by name; each returns an array of the same shape and type."""
