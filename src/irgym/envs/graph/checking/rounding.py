"""Allowances for rounding errors: how much results vary with the last bits of inputs, weights and gates.

A fused operator sums in another order, which has no larger effect.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.envs.graph.checking.changes import change_bodies, shift_gates, truncate_softmaxes
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.weights import Weight, Weights
from irgym.envs.graph.ir.writing import arrays_apart, model_of, used_weights
from irgym.envs.graph.running.artefacts import model_at
from irgym.envs.graph.running.sessions import Opened, Program
from irgym.measure.checking.expected import Expected, rounded

Array = NDArray[Any]

SEED = 20261122
"""Seed of the perturbations of weights."""

NUDGE = 4.0
"""Relative size of the perturbations of inputs and weights, as a multiple of their precision."""

WAYS = 2
"""Number of perturbations of the weights."""

PART = 1 << 16
"""Elements in a chunk, so that no temporary array is as large as the result."""

LARGE = 1 << 30
"""Bytes of weights from which on only one of the perturbed models is in memory at a time."""

COMPARISONS = frozenset({"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"})
"""Operators whose results jump at a threshold."""

THRESHOLDS = {"ThresholdedRelu": "alpha", "Shrink": "lambd"}
"""Operators with a threshold attribute, and its name."""

GREATEST = 1e7
"""Largest number that counts as a threshold; masks contain larger ones."""

COMPARED = 8
"""Largest constant, in elements, that counts as thresholds."""


class _Nudged(Weights):
    """Weights with changed last bits.

    Args:
        weights: The original weights.
        seed: Seed of the changes.
        kept: Digests of the weights that stay unchanged.
    """

    def __init__(self, weights: Weights, seed: int, kept: Collection[str]) -> None:
        super().__init__({})
        self._of = weights
        self._seed = seed
        self._kept = kept

    def array(self, weight: Weight) -> Array:
        """Return a weight's array with changed last bits."""
        if weight.digest in self._kept:
            return self._of.array(weight)
        return nudged(self._of.array(weight), (self._seed, int(weight.digest, 16)))


def thresholds(graph: Graph) -> dict[str, Weight]:
    """Return the small constants that a graph compares with, by name."""
    used = {name for node in graph.nodes.values() if node.operator in COMPARISONS for name in node.inputs}
    return {
        name: graph.weights[name]
        for name in used
        if name in graph.weights and graph.weights[name].type.size <= COMPARED
    }


def compared_with(graph: Graph, weights: Weights) -> list[float]:
    """Return the finite thresholds of a graph, in order."""
    found = {
        float(value) for weight in thresholds(graph.measured).values() for value in weights.array(weight).flat
    }
    for node in graph.nodes.values():
        value = node.attribute(THRESHOLDS.get(node.operator, ""))
        found |= {value, -value} if isinstance(value, float) else set()
    return sorted(value for value in found if np.isfinite(value) and abs(value) <= GREATEST)


def nudged(array: Array, seed: tuple[int, int], parts: int = 1, fixed: Sequence[float] = ()) -> Array:
    """Return floating-point numbers with their last bits changed, up or down; whole numbers stay.

    Whole numbers are usually exponents and masks, which were never rounded. Each array needs another seed:
    equal changes of two arrays would hide the effect of rounding on their difference.

    Args:
        array: The numbers.
        seed: Seed of the changes.
        parts: Multiples of 1 / parts stay unchanged.
        fixed: Other numbers that stay unchanged.
    """
    if array.dtype.kind != "f":
        return array
    random = np.random.default_rng(seed)
    step = NUDGE * float(np.finfo(array.dtype).eps)
    factors = np.array([1 - step, 1 + step], array.dtype)
    found = np.empty(array.shape, array.dtype)
    flat, into = array.reshape(-1), found.reshape(-1)
    for begin in range(0, array.size, PART):
        part, moved = flat[begin : begin + PART], into[begin : begin + PART]
        up = random.integers(0, 2, part.shape, np.bool_)
        with np.errstate(over="ignore"):
            np.multiply(part, factors.take(up.view(np.uint8)), moved)
        # Masks contain the largest finite number, which must not become infinite.
        with np.errstate(over="ignore", invalid="ignore"):
            kept = ~np.isfinite(moved) | (part * parts == np.trunc(part * parts))
        if fixed:
            kept |= np.isin(part, np.array(fixed, array.dtype))
        moved[kept] = part[kept]
    return found


class Runners:
    """Sessions of the original model, and of copies with changed last bits in their weights.

    Args:
        path: The cached model.
    """

    def __init__(self, path: str) -> None:
        loaded = model_at(path)
        self._original = _runner(loaded.graph, loaded.weights)
        # A change that moves two weights the same way does not show in their difference: try several.
        self._moved = [_runner(loaded.graph, loaded.weights, way) for way in range(WAYS)]

    def expected(self, feeds: Mapping[str, Array], others: Mapping[str, Array]) -> list[Expected]:
        """Return the results on some inputs, with their allowances for rounding.

        Args:
            feeds: The inputs.
            others: The inputs with changed last bits.

        Raises:
            CompileError: The model does not run on them.
        """
        [results] = self._original(feeds)
        near = [*self._moved[0](others, feeds)]
        for moved in self._moved[1:]:
            near += moved(feeds)
        return [
            # Shapes may depend on values; only results of the same shape can be compared.
            rounded(result, [close for close in closest if close.shape == result.shape])
            for result, *closest in zip(results, *near, strict=True)
        ]


@lru_cache(maxsize=1)
def runners_of(path: str) -> Runners:
    """Return the sessions of the model at a path: a validation and the comparisons after it share them."""
    return Runners(path)


def _runner(graph: Graph, weights: Weights, way: int | None = None) -> Callable[..., list[list[Array]]]:
    """Return a function that runs a graph on each of some inputs and returns the results.

    A session copies the weights, and changed weights are another copy. Sessions of large models are therefore
    created for each call and closed after it.

    Args:
        graph: The graph.
        weights: Its weights.
        way: The way of changing last bits; None for none.
    """
    size = sum(graph.weights[name].type.bytes for name in used_weights(graph))

    def opened() -> Opened:
        return Program(graph, weights, threads=1) if way is None else _changed(graph, weights, way)

    ready = opened() if size < LARGE else None

    def run(*feeds: Mapping[str, Array]) -> list[list[Array]]:
        program = ready or opened()
        return [program.run(inputs) for inputs in feeds]

    return run


def _changed(graph: Graph, weights: Weights, way: int) -> Opened:
    """Return a graph with other rounding of its weights, bodies' constants, gates and quantised softmaxes."""
    seed = SEED + way
    moved = _Nudged(weights, seed, {weight.digest for weight in thresholds(graph).values()})
    model = model_of(graph, moved, whole=False)
    change_bodies(model, lambda array, place: nudged(array, (seed, place)), COMPARISONS)
    shift_gates(model, way)
    if way % 2:
        truncate_softmaxes(model, {name: kind.dtype for name, kind in graph.types.items()})
    return Opened(model, arrays_apart(graph, moved), threads=1)
