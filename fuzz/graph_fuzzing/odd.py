"""Samples of rules with something odd about them, and what all that makes them odd has in common."""

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
    """A sample, and what its graph is made with.

    Attributes:
        sample: The sample.
        precision: Type of floating-point numbers.
        opset: Version of ONNX's own operators.
        steps: What was done to it, in words.
        extreme: Whether constants are at the edges of their type.
        after: Changes of the finished graph.
    """

    sample: Sample
    precision: str = "float32"
    opset: int = 20
    steps: tuple[str, ...] = ()
    extreme: bool = False
    after: tuple[Callable[[Instance], Instance], ...] = ()


def plain(rule: Rule, rng: Rng) -> Odd:
    """Return a random sample of a rule, of a random type."""
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
        if isinstance(value, list | tuple) and all(isinstance(one, np.ndarray | list) for one in value):
            values[name] = [change(name, np.asarray(one)) for one in value]
        else:
            values[name] = None if value is None else change(name, np.asarray(value))
    return replace(sample, values=values)


def arrays_of(sample: Sample) -> list[tuple[str, int, Array]]:
    """Return the arrays of a sample with their names, and their places among several."""
    found: list[tuple[str, int, Array]] = []
    for name, value in sample.values.items():
        many = value if isinstance(value, list) else [] if value is None else [value]
        found += [(name, place, np.asarray(one)) for place, one in enumerate(many)]
    return found


def with_array(odd: Odd, name: str, place: int, array: Array, what: str, **more: Any) -> Odd:
    values = dict(odd.sample.values)
    if isinstance(values[name], list):
        values[name] = [array if at == place else one for at, one in enumerate(values[name])]
    else:
        values[name] = array
    step = f"{what} of {name}: {array.dtype}{list(array.shape)}"
    return replace(odd, sample=replace(odd.sample, values=values), steps=(*odd.steps, step), **more)


def pick(odd: Odd, rng: Rng, *, least: int = 0) -> tuple[str, int, Array] | None:
    choices = [one for one in arrays_of(odd.sample) if one[2].dtype.kind in "fb" and one[2].ndim >= least]
    return choices[int(rng.integers(len(choices)))] if choices else None
