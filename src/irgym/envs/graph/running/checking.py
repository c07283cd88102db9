"""What rewritten models are checked on: random inputs, and how far rounding may take each result.

That is found out by the original itself, with inputs and weights that differ in their last bits: a fused
operator adds up in another order, which does no more than that.
"""

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.core.cost import Validation
from irgym.core.errors import ProgramError
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.weights import Weight, Weights
from irgym.envs.graph.ir.writing import used_weights
from irgym.envs.graph.programs.extremes import Style, extremes
from irgym.envs.graph.programs.inputs import draw, inputs_of, ranges_of, wrapping
from irgym.envs.graph.running.artefacts import model_at
from irgym.envs.graph.running.sessions import CompileError, Program
from irgym.measure.checking.agreement import Agreement
from irgym.measure.checking.expected import LAST_BITS, Expected, rounded
from irgym.measure.checking.numbers import finite, precision
from irgym.measure.checking.problem import Problem, best_problem, problem, untelling, validation

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

EXTREME = 4.0
"""How many times as much is allowed on unusual inputs: what is wrong there is far off."""

SPREADING = frozenset(
    {
        "AveragePool",
        "Conv",
        "ConvTranspose",
        "Einsum",
        "GRU",
        "Gemm",
        "GlobalAveragePool",
        "GlobalMaxPool",
        "LSTM",
        "LogSoftmax",
        "MatMul",
        "MaxPool",
        "RNN",
        "Softmax",
    }
)
"""Operators whose inputs rules take for finite: they multiply by zeros that were not there, or by masks."""

COMPARISONS = frozenset({"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"})
"""Operators whose results change from one number to the next."""

THRESHOLDS = {"ThresholdedRelu": "alpha", "Shrink": "lambd"}
"""Operators with such a number among their attributes, by its name."""

GREATEST = 1e7
"""The greatest number that is taken for a threshold; masks hold greater ones."""

COMPARED = 8
"""Numbers of a constant that is taken for a threshold, at most."""

ALLOWED = "8 times what changes of the last bits of inputs and weights do, against the model as written"
"""What is allowed, in words."""


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


def _thresholds(graph: Graph) -> dict[str, Weight]:
    """Return the small constants that a graph compares with, by name."""
    used = {name for one in graph.nodes.values() if one.operator in COMPARISONS for name in one.inputs}
    return {
        name: graph.weights[name]
        for name in used
        if name in graph.weights and graph.weights[name].type.size <= COMPARED
    }


def _compared(graph: Graph, weights: Weights) -> list[float]:
    """Return the finite numbers that a graph compares with."""
    found = {float(value) for one in _thresholds(graph).values() for value in weights.array(one).flat}
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
    with _as_written():
        return _ordinary(path, seed, _Runners(path))


@contextmanager
def _as_written() -> Generator[None]:
    """Say that it is the model as written that does not run."""
    try:
        yield
    except CompileError as error:
        raise ProgramError(
            f"the model does not run as it is written ({error}): give its open dimensions sizes that fit, or "
            "export it for this version of ONNX Runtime"
        ) from error


class _Runners:
    """A model as written, and with weights that differ in their last bits.

    Args:
        path: The model as it was read.
    """

    def __init__(self, path: str) -> None:
        loaded = model_at(path)
        self.original = _runner(loaded.graph, loaded.weights)
        # Two that move the same way keep their difference: several ways are tried.
        kept = {one.digest for one in _thresholds(loaded.graph).values()}
        ways = [_Nudged(loaded.weights, SEED + way, kept) for way in range(WAYS)]
        self._moved = [_runner(loaded.graph, weights) for weights in ways]

    def expected(
        self, feeds: Mapping[str, Array], results: Sequence[Array], others: Mapping[str, Array]
    ) -> list[Expected]:
        """Return what results must be.

        Args:
            feeds: The inputs.
            results: The results there.
            others: The inputs, moved by their last bits.
        """
        near = [*self._moved[0](others, feeds), *(one for moved in self._moved[1:] for one in moved(feeds))]
        return [
            # Where sizes depend on numbers, only results of the same size tell how far rounding takes them.
            rounded(one, [close for close in closest if close.shape == one.shape])
            for one, *closest in zip(results, *near, strict=True)
        ]


def _ordinary(path: str, seed: int, runners: _Runners) -> tuple[Problem, Mapping[str, Array]]:
    """Return what results must be on ordinary inputs, and the inputs by name."""
    drawn = feeds_of(path, seed)

    def tried(scale: float) -> Problem:
        feeds = {name: _scaled(array, scale) for name, array in drawn.items()}
        results, other = runners.original(feeds, feeds_of(path, seed + 1))
        others = {name: nudged(one, (seed, place)) for place, (name, one) in enumerate(feeds.items())}
        expected = runners.expected(feeds, results, others)
        return problem(list(feeds.values()), expected, {"what it makes of other inputs": other})

    found = best_problem(tried)
    return found, dict(zip(drawn, found.inputs, strict=True))


@dataclass(frozen=True)
class Extreme:
    """Inputs of an unusual kind, and what a model makes of them.

    Attributes:
        name: What they are, in words.
        feeds: The inputs by name.
        problem: What the results must be; None where the model as written has none there.
        why: Why it has none, in words.
    """

    name: str
    feeds: Mapping[str, Array]
    problem: Problem | None
    why: str = ""


@dataclass(frozen=True)
class Checks:
    """All that a result is checked on.

    Attributes:
        ordinary: Random inputs by name, and what the results must be there.
        extremes: Inputs of unusual kinds.
    """

    ordinary: Sequence[tuple[Problem, Mapping[str, Array]]]
    extremes: Sequence[Extreme]

    def judge(self, run: Callable[[Mapping[str, Array]], Sequence[Array]]) -> Validation:
        """Compare a model with the one as written; it ends at the first difference.

        Args:
            run: Returns the model's results on inputs.
        """
        problems = [one for one, _ in self.ordinary]
        said = list[Agreement]()
        for where, checked, feeds in self._all():
            said.append(checked.judge(run(feeds)))
            if not said[-1].ok:
                said[-1] = replace(said[-1], detail=f"{where}{said[-1].detail}")
                break
        found = validation(problems, said, "; ".join([ALLOWED, *self._left_out()]))
        told = [*problems, *(one.problem for one in self.extremes if one.problem is not None)]
        return replace(found, inputs=len(told), blind=found.blind or untelling(told))

    def _all(self) -> Iterator[tuple[str, Problem, Mapping[str, Array]]]:
        yield from (("", checked, feeds) for checked, feeds in self.ordinary)
        for one in self.extremes:
            if one.problem is not None:
                yield f"on {one.name}: ", one.problem, one.feeds

    def _left_out(self) -> Iterator[str]:
        """Yield the inputs that tell nothing, in words."""
        by_reason: dict[str, list[str]] = {}
        for one in self.extremes:
            if one.problem is None:
                by_reason.setdefault(one.why, []).append(one.name)
        for why, names in by_reason.items():
            yield f"left out: {', '.join(names)}, {why}"


@lru_cache(maxsize=1)
def checks_on(path: str, inputs: int, seed: int) -> Checks:
    """Return all that a result is checked on.

    Args:
        path: The model as it was read.
        inputs: How many ordinary inputs.
        seed: What inputs depend on.

    Raises:
        ProgramError: Nobody can tell which numbers an input may hold, or the model as written does not run.
    """
    with _as_written():
        runners = _Runners(path)
        ordinary = [_ordinary(path, seed + 2 * place, runners) for place in range(inputs)]
    return Checks(ordinary, _extremes(path, seed, runners, ordinary[0][0]) if ordinary else ())


def _extremes(path: str, seed: int, runners: _Runners, ordinary: Problem) -> list[Extreme]:
    """Return what results must be on inputs of unusual kinds."""
    proto, graph, weights = model_at(path)
    inputs, ranges, compared = inputs_of(proto), ranges_of(proto), _compared(graph, weights)
    drawn = extremes(inputs, draw(inputs, ranges, seed), ranges, wrapping(proto), seed, compared)
    finite_only = any("." in one.operator or one.operator in SPREADING for one in graph.nodes.values())
    return [
        _extreme(style, feeds, _moved(feeds, seed, compared), runners, ordinary)
        for style, feeds in drawn
        if not (style.special and finite_only)
    ]


def _moved(feeds: Mapping[str, Array], seed: int, compared: Sequence[float]) -> dict[str, Array]:
    """Return unusual inputs moved by their last bits, but for halves and what the model compares with."""
    return {
        name: nudged(array, (seed, place), 2, compared) for place, (name, array) in enumerate(feeds.items())
    }


def _extreme(
    style: Style, feeds: dict[str, Array], others: dict[str, Array], runners: _Runners, ordinary: Problem
) -> Extreme:
    try:
        [results] = runners.original(feeds)
        expected = runners.expected(feeds, results, others)
    except CompileError as error:
        return Extreme(style.name, feeds, None, f"on which the model as written does not run ({error})")
    if not any(finite(one).any() for one in results):
        return Extreme(style.name, feeds, None, "of which the model as written makes no finite number")
    found = [_loosened(one, usual, style) for one, usual in zip(expected, ordinary.expected, strict=True)]
    return Extreme(style.name, feeds, Problem(list(feeds.values()), found))


def _loosened(expected: Expected, usual: Expected, style: Style) -> Expected:
    """Return what a result must be on unusual inputs.

    Where functions saturate, as a sigmoid does close to 1, a difference from there has lost all its bits,
    whatever moves the inputs by their last bits: on large inputs the last bits of usual results are allowed.
    Nor does a number count there that overflows in the model as written.
    """
    if expected.allowance is None:
        return expected
    allowance = expected.allowance * EXTREME
    if not style.large:
        return replace(expected, allowance=allowance)
    greatest = float(np.abs(usual.values[finite(usual.values)]).max(initial=0.0))
    eps, _ = precision(expected.values.dtype)
    overflown = ~finite(expected.values)
    ignored = overflown if expected.ignored is None else overflown | expected.ignored
    return replace(
        expected,
        allowance=allowance + np.asarray(LAST_BITS * eps * greatest, allowance.dtype),
        ignored=ignored if ignored.any() else None,
    )


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
