"""Random shapes, arrays, attributes and operators, for samples of rules."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.envs.graph.ir.node import Attribute
from irgym.envs.graph.rewriting.rule import Sample

Array = NDArray[Any]
Rng = np.random.Generator


def shape_of(rng: Rng, low: int = 1, high: int = 4) -> tuple[int, ...]:
    """Return a shape with `low` to `high` axes of 1 to 4 elements."""
    return tuple(int(size) for size in rng.integers(1, 5, int(rng.integers(low, high + 1))))


def array(rng: Rng, *shape: int) -> Array:
    """Return an array of normally distributed numbers."""
    return np.asarray(rng.standard_normal(shape))


def random_sizes(rng: Rng, count: int, least: int = 1) -> list[int]:
    """Return random sizes from `least` to `least + 3`."""
    return [int(size) for size in rng.integers(least, least + 4, count)]


def order_of(rng: Rng, rank: int) -> tuple[int, ...]:
    """Return a random order of axes."""
    return tuple(int(axis) for axis in rng.permutation(rank))


def pick(rng: Rng, *choices: Any) -> Any:
    """Return a random choice."""
    return choices[int(rng.integers(len(choices)))]


def parts_of(rng: Rng, count: int | None = None) -> list[int]:
    """Return the sizes of two to four parts, or of `count` parts."""
    return [int(size) for size in rng.integers(1, 4, count or int(rng.integers(2, 5)))]


def either(rng: Rng, axis: int, rank: int) -> int:
    """Return an axis, at random counted from the front or from the end."""
    return axis - rank if rng.integers(2) else axis


def axis_of(sample: Sample, rank: int, name: str = "k") -> int:
    """Return the axis in an attribute of a sample, counted from the front."""
    axis = sample.attributes[name]
    assert isinstance(axis, int)
    return axis % rank


def index_array(rng: Rng, low: int, high: int, shape: tuple[int, ...] = ()) -> Array:
    """Return an int64 array of random integers from `low` to below `high`."""
    return np.asarray(rng.integers(low, high, shape), np.int64)


def resized(shape: tuple[int, ...], axis: int, size: int) -> tuple[int, ...]:
    """Return a shape with another size along an axis."""
    return (*shape[:axis], size, *shape[axis + 1 :])


def regrouped(rng: Rng, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return another shape with the same number of elements: axes merged, split, or of size 1 inserted."""
    sizes: list[int] = []
    for size in shape:
        kind = int(rng.integers(4))
        if kind == 0 and sizes:
            sizes[-1] *= size
        elif kind == 1:
            sizes += [1, size]
        elif kind == 2 and size % 2 == 0:
            sizes += [2, size // 2]
        else:
            sizes.append(size)
    return tuple(sizes)


def broadcastable(rng: Rng, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a random shape that broadcasts to another, with at most as many axes."""
    cut = shape[int(rng.integers(len(shape) + 1)) :]
    return tuple(1 if rng.integers(3) == 0 else size for size in cut)


def unary(rng: Rng) -> tuple[str, dict[str, Attribute], list[Array]]:
    """Return an operator of class `Unary`, its attributes, and its operands after the first."""
    kind = pick(rng, "Relu", "Sigmoid", "Tanh", "Exp", "Neg", "LeakyRelu", "Clip")
    if kind == "LeakyRelu":
        return kind, {"alpha": float(rng.uniform(0.01, 0.5))}, []
    return kind, {}, [np.asarray(-0.5), np.asarray(0.5)] if kind == "Clip" else []


def plain_unary(rng: Rng) -> str:
    """Return an operator of class `Unary` with one operand and no attributes."""
    return str(pick(rng, "Relu", "Sigmoid", "Tanh", "Exp", "Neg", "Abs"))


def binary(rng: Rng) -> str:
    """Return an operator of class `Binary` for floating-point numbers."""
    return str(pick(rng, "Add", "Sub", "Mul", "Max", "Greater"))


def sample(values: dict[str, Any], weights: str = "", **more: Any) -> Sample:
    """Return a sample; `weights` are names separated by spaces."""
    return Sample(values, frozenset(weights.split()), **more)
