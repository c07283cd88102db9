"""Inputs that models are timed on, with the expected results: one for each profile of sizes."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from numpy.typing import NDArray

from irgym.base.errors import ProgramError
from irgym.core.profiles import Profile, shares
from irgym.envs.graph.checking.problems import Checked, drawn, drawn_at, sampled
from irgym.envs.graph.checking.rounding import Runners, runners_of
from irgym.envs.graph.programs.metadata import read_profiles
from irgym.envs.graph.running.artefacts import model_at
from irgym.envs.graph.running.sessions import CompileError
from irgym.measure.checking.problem import Problem

Array = NDArray[Any]

SEED = 20261122
"""Seed of the inputs on which candidates are checked and timed."""


@dataclass(frozen=True)
class Case:
    """Inputs that a model is timed on.

    Attributes:
        sizes: Sizes of open dimensions, as users write them; empty if the model is timed at a single size.
        share: Share of the calls that have these sizes.
        problem: The expected results.
        feeds: The inputs by name.
    """

    sizes: str
    share: float
    problem: Problem
    feeds: Mapping[str, Array]


@lru_cache(maxsize=4)
def cases_on(path: str, seed: int) -> tuple[Case, ...]:
    """Return the inputs that a model is timed on, one for each profile, with the expected results.

    They are the user's first sample, of the sizes of the profile where there are several, or random.

    Raises:
        ProgramError: The range of an input cannot be inferred, or the original model does not run.
    """
    profiles = read_profiles(model_at(path).proto)
    with original_runs():
        runners = runners_of(path)
        if not profiles:
            return (Case("", 1.0, *_first(path, seed, runners)),)
        return tuple(
            Case(profile.words, share, *_at(profile, path, seed, runners))
            for profile, share in zip(profiles, shares(profiles), strict=True)
        )


def _at(profile: Profile, path: str, seed: int, runners: Runners) -> Checked:
    try:
        return drawn_at(path, seed, runners, dict(profile.sizes))
    except (CompileError, ProgramError) as error:
        raise ProgramError(f"the model does not run at {profile.words}: {error}") from error


def _first(path: str, seed: int, runners: Runners) -> Checked:
    return sampled(path, 0, seed, runners) if model_at(path).samples else drawn(path, seed, runners)


@contextmanager
def original_runs() -> Generator[None]:
    """Turn a `CompileError` into the message that the original model does not run."""
    try:
        yield
    except CompileError as error:
        raise ProgramError(
            f"the original model does not run ({error}): give its open dimensions sizes that fit, or "
            "export it for this version of ONNX Runtime"
        ) from error
