"""Checks of rewritten models on samples, ordinary and extreme inputs, with the expected results.

Expected results come from the program's file, and the allowances for rounding from the model that irgym reads
from that file.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.base.errors import ProgramError
from irgym.core.cost import Validation
from irgym.envs.graph.checking.cases import original_runs
from irgym.envs.graph.checking.original import RefusedError, as_in_file, results_of_file
from irgym.envs.graph.checking.other_sizes import WANTED, other_sizes, text_of
from irgym.envs.graph.checking.problems import drawn, drawn_at, ordinary, sampled
from irgym.envs.graph.checking.rounding import compared_with, nudged, runners_of
from irgym.envs.graph.programs.extremes import Style, extremes
from irgym.envs.graph.programs.inputs import draw, inputs_of, ranges_of, wrapping
from irgym.envs.graph.programs.metadata import read_profiles
from irgym.envs.graph.running.artefacts import model_at
from irgym.envs.graph.running.sessions import CompileError
from irgym.measure.checking.agreement import Agreement
from irgym.measure.checking.expected import LAST_BITS, Expected
from irgym.measure.checking.numbers import finite, precision
from irgym.measure.checking.problem import Problem, untelling, validation

Array = NDArray[Any]

SAMPLES_S = 30.0
"""Time in seconds after which no further samples of the user's are prepared."""

EXTREME = 4.0
"""Factor of the allowances on extreme inputs, where wrong results are far off."""

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


class Kind(Enum):
    """Kinds of inputs: samples of the user's, random ones, random ones of other sizes, unusual ones."""

    SAMPLE = "sample"
    ORDINARY = "ordinary"
    RESIZED = "resized"
    EXTREME = "extreme"


@dataclass(frozen=True)
class Check:
    """Inputs on which a model is checked.

    Attributes:
        kind: Their kind.
        name: A description; their sizes if these are others.
        feeds: The inputs by name.
        problem: The expected results; None if the original model has none on these inputs.
        why: The reason why it has none.
    """

    kind: Kind
    name: str
    feeds: Mapping[str, Array]
    problem: Problem | None
    why: str = ""

    @property
    def where(self) -> str:
        """How a message about these inputs begins."""
        if self.kind is Kind.ORDINARY:
            return ""
        return f"{'at' if self.kind is Kind.RESIZED else 'on'} {self.name}: "


class Checks:
    """Inputs and expected results for checking models, made one after the other as far as there is time.

    What is made is kept for the next model.

    Args:
        path: The cached original model.
        inputs: Number of ordinary inputs.
        seed: Seed of the inputs.

    Attributes:
        made: The checks so far.

    Raises:
        CompileError: The original model does not run.
        ProgramError: The range of an input cannot be inferred.
    """

    def __init__(self, path: str, inputs: int, seed: int) -> None:
        self.made: list[Check] = []
        self._path, self._seed = path, seed
        self._runners = runners_of(path)
        loaded = model_at(path)
        self._given = len(loaded.samples)
        self._samples_s = 0.0
        profiles = [dict(profile.sizes) for profile in read_profiles(loaded.proto)[1:]]
        self._sizes = other_sizes(dict(loaded.graph.profile), loaded.graph.least, profiles)
        samples = [partial(self._sample, place) for place in range(self._given)]
        first, *further = (partial(self._ordinary, place) for place in range(inputs))
        others = [self._resized] * (WANTED if loaded.graph.profile else 0)
        # The most telling come first, since there may be no time for more.
        at = [partial(self._at, sizes) for sizes in profiles]
        self._left = [*samples, first, *at, *others[:1], *self._extremes(), *further, *others[1:]]
        self._needed = {*samples[:1], first, *at, *others[:1]}

    def prepare(self) -> None:
        """Make the checks that are never left out.

        Raises:
            CompileError: The original does not run on ordinary inputs.
            ProgramError: The original's file does not run.
        """
        for _ in self._each(-math.inf):
            pass

    def judge(
        self, run: Callable[[Mapping[str, Array]], Sequence[Array]], seconds: float = math.inf
    ) -> Validation:
        """Compare a model with the original, up to the first difference.

        Args:
            run: Returns the model's results on inputs.
            seconds: Time for it; inputs for which there is none are left out, but never the first ordinary
                ones, those of each profile, and the first of other sizes.

        Raises:
            CompileError: The model, or the original, does not run on ordinary inputs.
            ProgramError: The original's file does not run.
        """
        said = list[Agreement]()
        for check in self._each(time.monotonic() + seconds):
            if check.problem is None:
                continue
            try:
                said.append(check.problem.judge(run(check.feeds)))
            except CompileError as error:
                if not said:
                    raise
                said.append(Agreement(math.inf, str(error)))
            if not said[-1].ok:
                said[-1] = replace(said[-1], detail=f"{check.where}{said[-1].detail}")
                break
        told = [(check.kind, check.problem) for check in self.made if check.problem is not None]
        ordinary = [checked for kind, checked in told if kind in (Kind.SAMPLE, Kind.ORDINARY)]
        # After a difference, what is left was not needed.
        left = 0 if said and not said[-1].ok else len(self._left)
        found = validation(ordinary, said, "; ".join([ALLOWED, *self._covered(left)]))
        blind = found.blind or untelling([checked for _, checked in told])
        return replace(found, inputs=len(told), blind=blind)

    def _each(self, due: float) -> Iterator[Check]:
        """Yield the checks that there are, and further ones while there is time on the monotonic clock."""
        yield from self.made
        took_s = 0.0
        for make in list(self._left):
            if make not in self._needed and time.monotonic() + took_s >= due:
                continue
            started = time.monotonic()
            with original_runs():
                check = make()
            self._left.remove(make)
            self._needed.discard(make)
            if check is not None:
                self.made.append(check)
                yield check
            took_s = time.monotonic() - started

    def _sample(self, place: int) -> Check | None:
        """Return a sample of the user's; None if the samples before it took long."""
        if place and self._samples_s > SAMPLES_S:
            return None
        started = time.monotonic()
        checked, feeds = sampled(self._path, place, self._seed, self._runners)
        self._samples_s += time.monotonic() - started
        return Check(Kind.SAMPLE, f"sample {place + 1} of {self._given}", feeds, checked)

    def _ordinary(self, place: int) -> Check:
        try:
            checked, feeds = drawn(self._path, self._seed + 2 * place, self._runners)
        except RefusedError as error:  # some models only run on inputs that fit together
            if not self._given:
                raise
            return _not_run(Kind.ORDINARY, "inputs within the ranges of the samples", {}, error)
        return Check(Kind.ORDINARY, "", feeds, checked)

    def _at(self, sizes: Mapping[str, int]) -> Check:
        """Return inputs of the sizes of a profile."""
        checked, feeds = drawn_at(self._path, self._seed, self._runners, sizes)
        return Check(Kind.RESIZED, text_of(sizes), feeds, checked)

    def _resized(self) -> Check | None:
        """Return ordinary inputs of the next other sizes that the model accepts; None if there are none."""
        for sizes in self._sizes:
            with suppress(ProgramError, CompileError):  # most models refuse some sizes
                checked, feeds = ordinary(self._path, self._seed, self._runners, sizes)
                return Check(Kind.RESIZED, text_of(sizes), feeds, checked)
        return None

    def _extremes(self) -> Iterator[Callable[[], Check]]:
        """Yield functions that return inputs of unusual kinds."""
        proto, graph, weights, _ = model_at(self._path)
        inputs, ranges, compared = inputs_of(proto), ranges_of(proto), compared_with(graph, weights)
        usual = draw(inputs, ranges, self._seed)
        finite_only = any("." in node.operator or node.operator in SPREADING for node in graph.nodes.values())
        for style, feeds in extremes(inputs, usual, ranges, wrapping(proto), self._seed, compared):
            if not (style.special and finite_only):
                yield partial(self._extreme, style, feeds, compared)

    def _extreme(self, style: Style, feeds: Mapping[str, Array], compared: Sequence[float]) -> Check:
        """Return inputs of an unusual kind, moved in their last bits except for the model's thresholds."""
        try:
            [results] = results_of_file(self._path, feeds)
        except RefusedError as error:
            return _not_run(Kind.EXTREME, style.name, feeds, error)
        if not any(finite(result).any() for result in results):
            why = "on which the original model has no finite result"
            return Check(Kind.EXTREME, style.name, feeds, None, why)
        usual = next(check.problem for check in self.made if check.problem is not None)
        expected = [
            _loosened(result, ordinary, style)
            for result, ordinary in zip(
                self._runners.expected(feeds, _moved(feeds, self._seed, compared)),
                usual.expected,
                strict=True,
            )
        ]
        found = Problem(list(feeds.values()), as_in_file(expected, results))
        return Check(Kind.EXTREME, style.name, feeds, found)

    def _covered(self, left: int) -> Iterator[str]:
        """Yield which samples and other sizes were checked, and what was left out and why.

        Args:
            left: Number of inputs for which there was no time.
        """
        samples = sum(check.kind is Kind.SAMPLE for check in self.made)
        if samples:
            share = "" if samples == self._given else f" {samples} of"
            yield f"first on{share} the {self._given} sample{'s' if self._given > 1 else ''} given"
        sizes = [check.name for check in self.made if check.kind is Kind.RESIZED]
        if sizes:
            yield f"also at {'; '.join(sizes)}"
        by_reason: dict[str, list[str]] = {}
        for check in self.made:
            if check.problem is None:
                by_reason.setdefault(check.why, []).append(check.name)
        for why, names in by_reason.items():
            yield f"left out: {', '.join(names)}, {why}"
        if left:
            yield f"{left} further inputs were left out for lack of time"


@lru_cache(maxsize=1)
def checks_on(path: str, inputs: int, seed: int) -> Checks:
    """Return the checks of the results of a model; see `Checks`.

    Raises:
        ProgramError: The range of an input cannot be inferred, or the original model does not run.
    """
    with original_runs():
        return Checks(path, inputs, seed)


def _not_run(kind: Kind, name: str, feeds: Mapping[str, Array], error: RefusedError) -> Check:
    """Return inputs that are left out, since the original model does not run on them."""
    why = f"on which the original model does not run ({error.__cause__ or error})"
    return Check(kind, name, feeds, None, why)


def _moved(feeds: Mapping[str, Array], seed: int, compared: Sequence[float]) -> dict[str, Array]:
    """Return extreme inputs with changed last bits, except multiples of 0.5 and the model's thresholds."""
    return {
        name: nudged(array, (seed, place), 2, compared) for place, (name, array) in enumerate(feeds.items())
    }


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
