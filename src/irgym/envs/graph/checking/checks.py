"""Checks of rewritten models on samples, ordinary and extreme inputs, with the expected results.

Expected results come from the program's file, and the allowances for rounding from the model that irgym reads
from that file.
"""

import math
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.base.errors import ProgramError
from irgym.core.cost import Validation
from irgym.envs.graph.checking.original import RefusedError, as_in_file, results_of_file
from irgym.envs.graph.checking.other_sizes import WANTED, other_sizes, text_of
from irgym.envs.graph.checking.problems import Checked, drawn, ordinary, sampled
from irgym.envs.graph.checking.rounding import Runners, compared_with, nudged
from irgym.envs.graph.programs.extremes import Style, extremes
from irgym.envs.graph.programs.inputs import draw, inputs_of, ranges_of, wrapping
from irgym.envs.graph.running.artefacts import model_at
from irgym.envs.graph.running.sessions import CompileError
from irgym.measure.checking.agreement import Agreement
from irgym.measure.checking.expected import LAST_BITS, Expected
from irgym.measure.checking.numbers import finite, precision
from irgym.measure.checking.problem import Problem, untelling, validation

Array = NDArray[Any]

SEED = 20261122
"""Seed of the inputs on which candidates are checked and timed."""

EXTREME = 4.0
"""Factor of the allowances on extreme inputs, where wrong results are far off."""

SAMPLES_S = 30.0
"""Time in seconds after which no further samples of the user's are prepared."""

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
"""Operators whose rules assume finite inputs, since they introduce products with zeros or masks."""

ALLOWED = "8 times the effect of changes in the last bits of inputs and weights, against the original model"
"""Description of the allowances."""


@lru_cache(maxsize=4)
def checked_on(path: str, seed: int) -> Checked:
    """Return the expected results on the user's first sample, or random inputs, and the inputs by name.

    Raises:
        ProgramError: The range of an input cannot be inferred, or the original model does not run.
    """
    with _original_runs():
        runners = Runners(path)
        return next(sampled(path, seed, runners), None) or drawn(path, seed, runners)


@contextmanager
def _original_runs() -> Generator[None]:
    """Turn a `CompileError` into the message that the original model does not run."""
    try:
        yield
    except CompileError as error:
        raise ProgramError(
            f"the original model does not run ({error}): give its open dimensions sizes that fit, or "
            "export it for this version of ONNX Runtime"
        ) from error


@dataclass(frozen=True)
class Extreme:
    """Inputs of an unusual kind, and the expected results.

    Attributes:
        name: A description of the inputs.
        feeds: The inputs by name.
        problem: The expected results; None if the original model has none on these inputs.
        why: The reason why it has none.
    """

    name: str
    feeds: Mapping[str, Array]
    problem: Problem | None
    why: str = ""


@dataclass(frozen=True)
class Checks:
    """Inputs and expected results for checking a model.

    Attributes:
        ordinary: Expected results on random inputs, and the inputs by name.
        extremes: Inputs of unusual kinds.
        samples: The same as in `ordinary` for samples of the user's, which are compared first.
        given: Number of samples that the user gave.
        resized: For descriptions of other sizes of open dimensions, the same as in `ordinary`.
    """

    ordinary: Sequence[Checked]
    extremes: Sequence[Extreme]
    samples: Sequence[Checked] = ()
    given: int = 0
    resized: Mapping[str, Checked] = field(default_factory=dict[str, Checked])

    def judge(self, run: Callable[[Mapping[str, Array]], Sequence[Array]]) -> Validation:
        """Compare a model with the original, up to the first difference.

        Args:
            run: Returns the model's results on inputs.

        Raises:
            CompileError: The model does not run on ordinary inputs.
        """
        problems = [expected for expected, _ in (*self.samples, *self.ordinary)]
        said = list[Agreement]()
        for where, checked, feeds in self._all():
            try:
                said.append(checked.judge(run(feeds)))
            except CompileError as error:
                if not said:
                    raise
                said.append(Agreement(math.inf, str(error)))
            if not said[-1].ok:
                said[-1] = replace(said[-1], detail=f"{where}{said[-1].detail}")
                break
        tolerance = "; ".join([ALLOWED, *self._given(), *self._sizes(), *self._left_out()])
        found = validation(problems, said, tolerance)
        problems += [checked for checked, _ in self.resized.values()]
        told = [*problems, *(extreme.problem for extreme in self.extremes if extreme.problem is not None)]
        return replace(found, inputs=len(told), blind=found.blind or untelling(told))

    def _all(self) -> Iterator[tuple[str, Problem, Mapping[str, Array]]]:
        for place, (checked, feeds) in enumerate(self.samples, 1):
            yield f"on sample {place} of {self.given}: ", checked, feeds
        yield from (("", checked, feeds) for checked, feeds in self.ordinary)
        for sizes, (checked, feeds) in self.resized.items():
            yield f"at {sizes}: ", checked, feeds
        for extreme in self.extremes:
            if extreme.problem is not None:
                yield f"on {extreme.name}: ", extreme.problem, extreme.feeds

    def _given(self) -> Iterator[str]:
        if self.samples:
            share = "" if len(self.samples) == self.given else f" {len(self.samples)} of"
            yield f"first on{share} the {self.given} sample{'s' if self.given > 1 else ''} given"

    def _sizes(self) -> Iterator[str]:
        if self.resized:
            yield f"also at {'; '.join(self.resized)}"

    def _left_out(self) -> Iterator[str]:
        """Yield descriptions of the inputs that are left out, with the reasons."""
        by_reason: dict[str, list[str]] = {}
        for extreme in self.extremes:
            if extreme.problem is None:
                by_reason.setdefault(extreme.why, []).append(extreme.name)
        for why, names in by_reason.items():
            yield f"left out: {', '.join(names)}, {why}"


@lru_cache(maxsize=1)
def checks_on(path: str, inputs: int, seed: int) -> Checks:
    """Return the inputs and expected results for checking results of a model.

    Args:
        path: The cached model.
        inputs: Number of ordinary inputs.
        seed: Seed of the inputs.

    Raises:
        ProgramError: The range of an input cannot be inferred, or the original model does not run.
    """
    if not inputs:
        return Checks((), ())
    with _original_runs():
        runners = Runners(path)
        samples = list(_samples(path, seed, runners))
        found: list[Checked] = []
        left_out: list[Extreme] = []
        try:
            found += [drawn(path, seed + 2 * place, runners) for place in range(inputs)]
        except RefusedError as error:
            if not samples:
                raise
            left_out = [_not_run("inputs within the ranges of the samples", {}, error)]
        first, _ = (*found, *samples)[0]
        extreme = [*left_out, *_extremes(path, seed, runners, first)]
        given = len(model_at(path).samples)
        return Checks(found, extreme, samples, given, _resized(path, seed, runners))


def _samples(path: str, seed: int, runners: Runners) -> Iterator[Checked]:
    """Yield the user's samples with the expected results, the first and more while there is time."""
    until = time.monotonic() + SAMPLES_S
    for found in sampled(path, seed, runners):
        yield found
        if time.monotonic() > until:
            return


def _resized(path: str, seed: int, runners: Runners) -> dict[str, Checked]:
    """Return ordinary inputs of other sizes, those that the model accepts, with the expected results."""
    found: dict[str, Checked] = {}
    graph = model_at(path).graph
    for sizes in other_sizes(dict(graph.profile), graph.least):
        if len(found) == WANTED:
            break
        with suppress(ProgramError, CompileError):  # most models refuse some sizes
            found[text_of(sizes)] = ordinary(path, seed, runners, sizes)
    return found


def _extremes(path: str, seed: int, runners: Runners, ordinary: Problem) -> list[Extreme]:
    """Return inputs of unusual kinds, with the expected results."""
    proto, graph, weights, _ = model_at(path)
    inputs, ranges, compared = inputs_of(proto), ranges_of(proto), compared_with(graph, weights)
    moved = extremes(inputs, draw(inputs, ranges, seed), ranges, wrapping(proto), seed, compared)
    finite_only = any("." in node.operator or node.operator in SPREADING for node in graph.nodes.values())
    return [
        _extreme(path, style, feeds, _moved(feeds, seed, compared), runners, ordinary)
        for style, feeds in moved
        if not (style.special and finite_only)
    ]


def _moved(feeds: Mapping[str, Array], seed: int, compared: Sequence[float]) -> dict[str, Array]:
    """Return extreme inputs with changed last bits, except multiples of 0.5 and the model's thresholds."""
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
    except RefusedError as error:
        return _not_run(style.name, feeds, error)
    if not any(finite(result).any() for result in results):
        return Extreme(style.name, feeds, None, "on which the original model has no finite result")
    expected = [
        _loosened(result, usual, style)
        for result, usual in zip(runners.expected(feeds, others), ordinary.expected, strict=True)
    ]
    return Extreme(style.name, feeds, Problem(list(feeds.values()), as_in_file(expected, results)))


def _not_run(name: str, feeds: Mapping[str, Array], error: RefusedError) -> Extreme:
    """Return inputs that are left out, since the original model does not run on them."""
    return Extreme(
        name, feeds, None, f"on which the original model does not run ({error.__cause__ or error})"
    )


def _loosened(expected: Expected, usual: Expected, style: Style) -> Expected:
    """Return an expected result on extreme inputs, with a larger allowance.

    Where a function saturates, as a sigmoid does close to 1, a difference to the limit has lost all its bits,
    and changes in the last bits of inputs do not show that. On large inputs, the last bits of ordinary
    results are therefore allowed too, and results that overflow in the original model are ignored.
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
