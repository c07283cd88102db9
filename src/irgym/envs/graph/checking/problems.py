"""Inputs on which models are checked, the user's samples and random ones, with the expected results."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from irgym.envs.graph.checking.original import RefusedError, as_in_file, results_of_file
from irgym.envs.graph.checking.rounding import Runners, nudged
from irgym.envs.graph.programs.inputs import draw, inputs_of, ranges_of
from irgym.envs.graph.programs.samples import Ranges, bounds_in, ranges_in, sizes_of
from irgym.envs.graph.running.artefacts import model_at
from irgym.measure.checking.problem import Problem, best_problem, problem
from irgym.measure.samples import Sample

Array = NDArray[Any]

Checked: TypeAlias = tuple[Problem, Mapping[str, Array]]
"""Expected results, and the inputs by name."""

OTHER = "its results on other inputs"
"""Description of a wrong answer."""


def feeds_of(
    path: str, seed: int, sizes: Mapping[str, int] | None = None, ranges: Ranges | None = None
) -> dict[str, Array]:
    """Return random inputs of a model, within the bounds of its user's samples.

    Args:
        path: The cached model.
        seed: Seed of the inputs.
        sizes: Sizes of its open dimensions; None for those that it is measured at.
        ranges: Ranges of its integer inputs; None for those that are given or inferred.

    Raises:
        ProgramError: The range of an input cannot be inferred.
    """
    proto, *_, samples = model_at(path)
    return draw(inputs_of(proto, sizes), ranges or ranges_of(proto), seed, bounds_in(samples))


def ordinary(
    path: str,
    seed: int,
    runners: Runners,
    sizes: Mapping[str, int] | None = None,
    ranges: Ranges | None = None,
) -> Checked:
    """Return random inputs with the expected results.

    Args:
        path: The cached model.
        seed: Seed of the inputs.
        runners: Sessions of the model.
        sizes: As for `feeds_of`, and so are the ranges.
        ranges: Ranges of its integer inputs.

    Raises:
        RefusedError: The model's file does not run on them.
        ProgramError: As for `feeds_of`; or irgym's model differs from the file.
        CompileError: irgym's model does not run on them.
    """
    drawn = feeds_of(path, seed, sizes, ranges)
    [other] = results_of_file(path, feeds_of(path, seed + 1, sizes, ranges))

    def tried(scale: float) -> Problem:
        feeds = {name: _scaled(array, scale) for name, array in drawn.items()}
        return _problem(path, feeds, {OTHER: other}, seed, runners)

    found = best_problem(tried)
    return found, dict(zip(drawn, found.inputs, strict=True))


def drawn(path: str, seed: int, runners: Runners) -> Checked:
    """Return random inputs, of the sizes that a model is measured at, with the expected results.

    The ranges of all samples need not fit one size: places in a sequence, for example, are below its length.
    Where they do not, those of the samples of the measured sizes are taken.

    Raises:
        RefusedError: As for `ordinary`, and so are the others.
    """
    try:
        return ordinary(path, seed, runners)
    except RefusedError:
        proto, *_, samples = model_at(path)
        alike = [sample for sample in samples if sizes_of(proto, sample) == sizes_of(proto, samples[0])]
        if not alike:
            raise
    return ordinary(path, seed, runners, ranges=ranges_in([Sample("", sample) for sample in alike], {}))


def drawn_at(path: str, seed: int, runners: Runners, sizes: Mapping[str, int]) -> Checked:
    """Return the user's first sample of some sizes, or else random inputs, with the expected results.

    Raises:
        RefusedError: As for `ordinary`, and so are the others.
    """
    proto, *_, samples = model_at(path)
    for place, sample in enumerate(samples):
        if sizes_of(proto, sample) == dict(sizes):
            return sampled(path, place, seed, runners)
    return ordinary(path, seed, runners, sizes)


def sampled(path: str, place: int, seed: int, runners: Runners) -> Checked:
    """Return one of the user's samples with the expected results.

    Args:
        path: The cached model.
        place: Its place among the samples.
        seed: Seed of the inputs whose results are wrong answers.
        runners: Sessions of the model.

    Raises:
        ProgramError: As for `ordinary`, and so are the others.
    """
    proto, *_, samples = model_at(path)
    sample = samples[place]
    inputs = inputs_of(proto, sizes_of(proto, sample))
    other = draw(inputs, ranges_in([Sample("", sample)], {}), seed + 1, bounds_in([sample]))
    wrong: dict[str, Sequence[Array]] = {}
    with suppress(RefusedError):  # some models only run on inputs that fit together
        [wrong[OTHER]] = results_of_file(path, other)
    return _problem(path, sample, wrong, seed, runners), sample


def _problem(
    path: str, feeds: Mapping[str, Array], wrong: Mapping[str, Sequence[Array]], seed: int, runners: Runners
) -> Problem:
    """Return the expected results on some inputs, where some computed wrong answers must not pass."""
    [results] = results_of_file(path, feeds)
    nearby = {name: nudged(array, (seed, place)) for place, (name, array) in enumerate(feeds.items())}
    expected = as_in_file(runners.expected(feeds, nearby), results)
    return problem(list(feeds.values()), expected, wrong)


def _scaled(array: Array, scale: float) -> Array:
    # numpy turns an array without dimensions into a number.
    return array if scale == 1.0 or array.dtype.kind != "f" else np.asarray(array * scale, array.dtype)
