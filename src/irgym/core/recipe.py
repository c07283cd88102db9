"""Recipes: how a training is set up, by name."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Recipe:
    """How a training is set up; what else is given to `irgym.train` takes precedence over it.

    Attributes:
        agent: Learning algorithm.
        hyperparameters: Those of the algorithm that differ from its defaults.
        limit: Number of training programs to learn from; None for all.
        validate: Number of training programs that choose the policy to keep; 0 keeps the newest.
        screen: Share of the new programs of an iteration that is measured; None for all.
        dataset: Data set; None for the environment's own.
        reward: Name of the reward; None for the environment's default.
        observation: Observation of the policy; None for the environment's default.
        horizon: Steps of an episode; None for the programs' own.
        actions: Actions that are allowed; None for all.
        source: Publication that the set-up is of, and what it fixes; empty for our own.

    A field that `irgym.Training` or `irgym.Measuring` has too fills that one where it is not given.
    """

    agent: str = "ppo"
    hyperparameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    limit: int | None = None
    validate: int = 0
    screen: float | None = None
    dataset: str | None = None
    reward: str | None = None
    observation: str | None = None
    horizon: int | None = None
    actions: str | None = None
    source: str = ""


def from_scratch(iterations: int, screen: float | None = None, **hyperparameters: Any) -> Recipe:
    """Return PPO with an archive that sketches and scripts feed: it needs no policy, search or demonstration.

    For environments with sketches. "Without a teacher" in the documentation of the learners says what each
    part is for.

    Args:
        iterations: Number of iterations.
        screen: Share of the new programs of an iteration that is measured; None for all.
        hyperparameters: What differs in the environment.
    """
    return Recipe(
        hyperparameters={
            "episodes": 96,
            "started": 640,
            "sketched": 0.3,
            "imitation": 1.0,
            "iterations": iterations,
            "validate_every": 10,
            "minibatch": 64,
            "lr": 1e-3,
            "lr_end": 1e-4,
            "entropy": 0.02,
            "entropy_end": 0.001,
            "epsilon": 0.05,
            "epsilon_end": 0.01,
            "gae_lambda": 0.98,
            **hyperparameters,
        },
        limit=400,
        validate=60,
        screen=screen,
    )
