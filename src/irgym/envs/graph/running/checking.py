"""What rewritten models are checked on: random inputs, and how far rounding may take each result.

That is found out by the original itself, with inputs and weights that differ in their last bits: a fused
operator adds up in another order, which does no more than that.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.core.errors import ProgramError
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.weights import Weight, Weights
from irgym.envs.graph.ir.writing import used_weights
from irgym.envs.graph.programs.inputs import draw, inputs_of, ranges_of
from irgym.envs.graph.running.artefacts import model_at
from irgym.envs.graph.running.original import as_in_file, results_of_file
from irgym.envs.graph.running.sessions import CompileError, Program
from irgym.measure.checking.expected import rounded
from irgym.measure.checking.problem import Problem, best_problem, problem

Array = NDArray[Any]

SEED = 20261122
"""Seed of the inputs on which candidates are checked and timed."""

NUDGE = 4.0
"""How many times their precision inputs and weights are moved by, relatively, to see what that does."""

WAYS = 2
"""How many times weights are moved."""

PART = 1 << 16
"""Elements that are moved at a time, so that nothing but the result is as large as they all are."""

LARGE = 1 << 30
"""Bytes of weights from which on the models that tell how far rounding goes are made one at a time."""

ALLOWED = "8 times what changes of the last bits of inputs and weights do, against the model as written"
"""What is allowed, in words."""


class _Nudged(Weights):
    """Weights that differ from others in their last bits."""

    def __init__(self, weights: Weights, seed: int) -> None:
        super().__init__({})
        self._of = weights
        self._seed = seed

    def array(self, weight: Weight) -> Array:
        """Return a weight's array, moved."""
        return nudged(self._of.array(weight), (self._seed, int(weight.digest, 16)))


def nudged(array: Array, seed: tuple[int, int]) -> Array:
    """Return floating-point numbers moved by a few of their last bits, up or down; whole ones stay.

    Whole numbers are exponents and masks more often than they were rounded. Arrays need seeds of their own:
    those that were moved the same way would hide what rounding does to their difference.
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
        kept = ~np.isfinite(moved) | (part == np.trunc(part))
        moved[kept] = part[kept]
    return found


def feeds_of(path: str, seed: int) -> dict[str, Array]:
    """Return random inputs of a model.

    Raises:
        ProgramError: Nobody can tell which numbers an input may hold.
    """
    proto = model_at(path).proto
    return draw(inputs_of(proto), ranges_of(proto), seed)


@lru_cache(maxsize=4)
def checked_on(path: str, seed: int) -> tuple[Problem, Mapping[str, Array]]:
    """Return what a model's results must be on random inputs, and the inputs by name.

    Raises:
        ProgramError: Nobody can tell which numbers an input may hold, or the model as written does not run.
    """
    drawn = feeds_of(path, seed)
    try:
        return _checked_on(path, seed, drawn)
    except CompileError as error:
        raise ProgramError(
            f"the model does not run as it is written ({error}): give its open dimensions sizes that fit, or "
            "export it for this version of ONNX Runtime"
        ) from error


def _checked_on(path: str, seed: int, drawn: Mapping[str, Array]) -> tuple[Problem, Mapping[str, Array]]:
    loaded = model_at(path)
    original = _runner(loaded.graph, loaded.weights)
    # Two that move the same way keep their difference: several ways are tried.
    moved = [_runner(loaded.graph, _Nudged(loaded.weights, seed + way)) for way in range(WAYS)]

    def tried(scale: float) -> Problem:
        feeds = {name: _scaled(array, scale) for name, array in drawn.items()}
        results, other = results_of_file(path, feeds, feeds_of(path, seed + 1))
        others = {name: nudged(one, (seed, place)) for place, (name, one) in enumerate(feeds.items())}
        near = [*moved[0](others, feeds), *(results for one in moved[1:] for results in one(feeds))]
        expected = [
            # Where sizes depend on numbers, only results of the same size tell how far rounding takes them.
            rounded(one, [close for close in closest if close.shape == one.shape])
            for one, *closest in zip(*original(feeds), *near, strict=True)
        ]
        expected = as_in_file(expected, results)
        return problem(list(feeds.values()), expected, {"what it makes of other inputs": other})

    found = best_problem(tried)
    return found, dict(zip(drawn, found.inputs, strict=True))


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


def _scaled(array: Array, scale: float) -> Array:
    # numpy makes a number, not an array, of what has no dimensions.
    return array if scale == 1.0 or array.dtype.kind != "f" else np.asarray(array * scale, array.dtype)
