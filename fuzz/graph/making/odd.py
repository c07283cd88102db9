"""Odd samples of rules, and helpers for the changes that make them odd."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.envs.graph.rewriting.rule import Rule, Sample
from irgym.envs.graph.rewriting.verification import Instance

Array = NDArray[Any]
Rng = np.random.Generator


@dataclass(frozen=True)
class Odd:
    """A sample with the settings of its graph.

    Attributes:
        sample: The sample.
        precision: Floating-point type.
        opset: Version of ONNX's operator set.
        steps: Odd changes so far, in words.
        extreme: Whether constants are at the edges of their type.
        after: Changes to apply to the finished graph.
    """

    sample: Sample
    precision: str = "float32"
    opset: int = 20
    steps: tuple[str, ...] = ()
    extreme: bool = False
    after: tuple[Callable[[Instance], Instance], ...] = ()


def plain(rule: Rule, rng: Rng) -> Odd:
    """Return a random sample of a rule, with a random floating-point type."""
    precision = str(rng.choice(["float32"] * 8 + ["float16", "float64"]))
    opset = int(rng.choice([13, 14, 15, 17, 18, 20, 23, 23, 26]))
    sample = mapped(rule.sample(rng), lambda _, array: cast(array, precision))
    return Odd(sample, precision, opset)


def cast(array: Array, precision: str) -> Array:
    """Return floating-point numbers in another type."""
    with np.errstate(all="ignore"):
        return array.astype(precision) if array.dtype.kind == "f" else array


def mapped(sample: Sample, change: Callable[[str, Array], Any]) -> Sample:
    values: dict[str, Any] = {}
    for name, value in sample.values.items():
        if isinstance(value, list | tuple) and all(isinstance(array, np.ndarray | list) for array in value):
            values[name] = [change(name, np.asarray(array)) for array in value]
        else:
            values[name] = None if value is None else change(name, np.asarray(value))
    return replace(sample, values=values)


def arrays_of(sample: Sample) -> list[tuple[str, int, Array]]:
    """Return the arrays of a sample with their names, and their indices in lists."""
    found: list[tuple[str, int, Array]] = []
    for name, value in sample.values.items():
        many = value if isinstance(value, list) else [] if value is None else [value]
        found += [(name, place, np.asarray(array)) for place, array in enumerate(many)]
    return found


def with_array(odd: Odd, name: str, place: int, array: Array, what: str, **more: Any) -> Odd:
    values = dict(odd.sample.values)
    if isinstance(values[name], list):
        values[name] = [array if at == place else kept for at, kept in enumerate(values[name])]
    else:
        values[name] = array
    step = f"{what} of {name}: {array.dtype}{list(array.shape)}"
    return replace(odd, sample=replace(odd.sample, values=values), steps=(*odd.steps, step), **more)


def pick(odd: Odd, rng: Rng, *, least: int = 0) -> tuple[str, int, Array] | None:
    choices = [
        choice for choice in arrays_of(odd.sample) if choice[2].dtype.kind in "fb" and choice[2].ndim >= least
    ]
    return choices[int(rng.integers(len(choices)))] if choices else None
