"""How far rounding may take each result of a model: what it makes of inputs and weights moved by last bits.

A fused operator adds up in another order, which does no more than that.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.weights import Weight, Weights
from irgym.envs.graph.ir.writing import used_weights
from irgym.envs.graph.running.artefacts import model_at
from irgym.envs.graph.running.sessions import Program
from irgym.measure.checking.expected import Expected, rounded

Array = NDArray[Any]

SEED = 20261122
"""Seed of the ways in which weights are moved."""

NUDGE = 4.0
"""How many times their precision inputs and weights are moved by, relatively, to see what that does."""

WAYS = 2
"""How many times weights are moved."""

PART = 1 << 16
"""Elements that are moved at a time, so that nothing but the result is as large as they all are."""

LARGE = 1 << 30
"""Bytes of weights from which on the models that tell how far rounding goes are made one at a time."""

COMPARISONS = frozenset({"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"})
"""Operators whose results change from one number to the next."""

THRESHOLDS = {"ThresholdedRelu": "alpha", "Shrink": "lambd"}
"""Operators with such a number among their attributes, by its name."""

GREATEST = 1e7
"""The greatest number that is taken for a threshold; masks hold greater ones."""

COMPARED = 8
"""Numbers of a constant that is taken for a threshold, at most."""


class _Nudged(Weights):
    """Weights that differ from others in their last bits.

    Args:
        weights: The others.
        seed: What their ways depend on.
        kept: Digests of those that stay.
    """

    def __init__(self, weights: Weights, seed: int, kept: Collection[str]) -> None:
        super().__init__({})
        self._of = weights
        self._seed = seed
        self._kept = kept

    def array(self, weight: Weight) -> Array:
        """Return a weight's array, moved."""
        if weight.digest in self._kept:
            return self._of.array(weight)
        return nudged(self._of.array(weight), (self._seed, int(weight.digest, 16)))


def thresholds(graph: Graph) -> dict[str, Weight]:
    """Return the small constants that a graph compares with, by name."""
    used = {name for one in graph.nodes.values() if one.operator in COMPARISONS for name in one.inputs}
    return {
        name: graph.weights[name]
        for name in used
        if name in graph.weights and graph.weights[name].type.size <= COMPARED
    }


def compared_with(graph: Graph, weights: Weights) -> list[float]:
    """Return the finite numbers that a graph compares with."""
    found = {float(value) for one in thresholds(graph).values() for value in weights.array(one).flat}
    for one in graph.nodes.values():
        value = one.attribute(THRESHOLDS.get(one.operator, ""))
        found |= {value, -value} if isinstance(value, float) else set()
    return sorted(value for value in found if np.isfinite(value) and abs(value) <= GREATEST)


def nudged(array: Array, seed: tuple[int, int], parts: int = 1, fixed: Sequence[float] = ()) -> Array:
    """Return floating-point numbers moved by a few of their last bits, up or down; whole ones stay.

    Whole numbers are exponents and masks more often than they were rounded. Arrays need seeds of their own:
    those that were moved the same way would hide what rounding does to their difference.

    Args:
        array: The numbers.
        seed: What their ways depend on.
        parts: Of 1; multiples of one stay too.
        fixed: Other numbers that stay.
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
        # Masks hold the greatest number there is: one that became infinite would say nothing.
        with np.errstate(over="ignore", invalid="ignore"):
            kept = ~np.isfinite(moved) | (part * parts == np.trunc(part * parts))
        if fixed:
            kept |= np.isin(part, np.array(fixed, array.dtype))
        moved[kept] = part[kept]
    return found


class Runners:
    """A model as written, and with weights that differ in their last bits.

    Args:
        path: The model as it was read.
    """

    def __init__(self, path: str) -> None:
        loaded = model_at(path)
        self._original = _runner(loaded.graph, loaded.weights)
        # Two that move the same way keep their difference: several ways are tried.
        kept = {one.digest for one in thresholds(loaded.graph).values()}
        ways = [_Nudged(loaded.weights, SEED + way, kept) for way in range(WAYS)]
        self._moved = [_runner(loaded.graph, weights) for weights in ways]

    def expected(self, feeds: Mapping[str, Array], others: Mapping[str, Array]) -> list[Expected]:
        """Return the results on some inputs, and how far rounding may take them.

        Args:
            feeds: The inputs.
            others: The inputs, moved by their last bits.

        Raises:
            CompileError: The model does not run there.
        """
        [own] = self._original(feeds)
        near = [*self._moved[0](others, feeds), *(one for moved in self._moved[1:] for one in moved(feeds))]
        return [
            # Where sizes depend on numbers, only results of the same size tell how far rounding takes them.
            rounded(one, [close for close in closest if close.shape == one.shape])
            for one, *closest in zip(own, *near, strict=True)
        ]


def _runner(graph: Graph, weights: Weights) -> Callable[..., list[list[Array]]]:
    """Return what runs a graph on each of some inputs, and returns the results of each.

    A session has a copy of the weights, and nudged ones are another: those of large models are made anew each
    time, and let go of.
    """
    size = sum(graph.weights[name].type.bytes for name in used_weights(graph))
    ready = Program(graph, weights, threads=1) if size < LARGE else None

    def run(*feeds: Mapping[str, Array]) -> list[list[Array]]:
        program = ready or Program(graph, weights, threads=1)
        return [program.run(one) for one in feeds]

    return run
