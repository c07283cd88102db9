"""What rewritten models are checked on: random inputs, ordinary and unusual ones, and the results there.

The results are those of the program's file; how far rounding may take each, what is read of it tells.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.base.errors import ProgramError
from irgym.core.cost import Validation
from irgym.envs.graph.checking.original import as_in_file, results_of_file
from irgym.envs.graph.checking.rounding import Runners, compared_with, nudged
from irgym.envs.graph.programs.extremes import Style, extremes
from irgym.envs.graph.programs.inputs import draw, inputs_of, ranges_of, wrapping
from irgym.envs.graph.running.artefacts import model_at
from irgym.envs.graph.running.sessions import CompileError
from irgym.measure.checking.agreement import Agreement
from irgym.measure.checking.expected import LAST_BITS, Expected
from irgym.measure.checking.numbers import finite, precision
from irgym.measure.checking.problem import Problem, best_problem, problem, untelling, validation

Array = NDArray[Any]

SEED = 20261122
"""Seed of the inputs on which candidates are checked and timed."""

EXTREME = 4.0
"""How many times as much is allowed on unusual inputs: what is wrong there is far off."""

SPREADING = frozenset(
    {
        "Attention",
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

ALLOWED = "8 times what changes of the last bits of inputs and weights do, against the model as written"
"""What is allowed, in words."""


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
        return _ordinary(path, seed, Runners(path))


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


def _ordinary(path: str, seed: int, runners: Runners) -> tuple[Problem, Mapping[str, Array]]:
    """Return what results must be on ordinary inputs, and the inputs by name."""
    drawn = feeds_of(path, seed)

    def tried(scale: float) -> Problem:
        feeds = {name: _scaled(array, scale) for name, array in drawn.items()}
        results, other = results_of_file(path, feeds, feeds_of(path, seed + 1))
        others = {name: nudged(one, (seed, place)) for place, (name, one) in enumerate(feeds.items())}
        expected = as_in_file(runners.expected(feeds, others), results)
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
        runners = Runners(path)
        ordinary = [_ordinary(path, seed + 2 * place, runners) for place in range(inputs)]
        return Checks(ordinary, _extremes(path, seed, runners, ordinary[0][0]) if ordinary else ())


def _extremes(path: str, seed: int, runners: Runners, ordinary: Problem) -> list[Extreme]:
    """Return what results must be on inputs of unusual kinds."""
    proto, graph, weights = model_at(path)
    inputs, ranges, compared = inputs_of(proto), ranges_of(proto), compared_with(graph, weights)
    drawn = extremes(inputs, draw(inputs, ranges, seed), ranges, wrapping(proto), seed, compared)
    finite_only = any("." in one.operator or one.operator in SPREADING for one in graph.nodes.values())
    return [
        _extreme(path, style, feeds, _moved(feeds, seed, compared), runners, ordinary)
        for style, feeds in drawn
        if not (style.special and finite_only)
    ]


def _moved(feeds: Mapping[str, Array], seed: int, compared: Sequence[float]) -> dict[str, Array]:
    """Return unusual inputs moved by their last bits, but for halves and what the model compares with."""
    return {
        name: nudged(array, (seed, place), 2, compared) for place, (name, array) in enumerate(feeds.items())
    }


def _extreme(
    path: str,
    style: Style,
    feeds: Mapping[str, Array],
    others: Mapping[str, Array],
    runners: Runners,
    ordinary: Problem,
) -> Extreme:
    try:
        [results] = results_of_file(path, feeds)
    except ProgramError as error:
        return Extreme(style.name, feeds, None, f"on which the model as written does not run ({error})")
    if not any(finite(one).any() for one in results):
        return Extreme(style.name, feeds, None, "of which the model as written makes no finite number")
    expected = [
        _loosened(one, usual, style)
        for one, usual in zip(runners.expected(feeds, others), ordinary.expected, strict=True)
    ]
    return Extreme(style.name, feeds, Problem(list(feeds.values()), as_in_file(expected, results)))


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


def _scaled(array: Array, scale: float) -> Array:
    # numpy makes a number, not an array, of what has no dimensions.
    return array if scale == 1.0 or array.dtype.kind != "f" else np.asarray(array * scale, array.dtype)
