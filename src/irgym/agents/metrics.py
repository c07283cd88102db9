"""Metrics of a training, iteration by iteration."""

import math
from dataclasses import asdict, dataclass

import numpy as np

from irgym.agents.episodes.played import Outcomes
from irgym.agents.learner import Statistics
from irgym.cost_model.quality import Quality


@dataclass(frozen=True)
class Metrics:
    """Metrics of one iteration. Counts of steps, episodes and evaluations run from the start of training.

    Attributes:
        iteration: From 1.
        episodes: Episodes so far.
        env_steps: Environment steps so far.
        evaluations: Requested costs of states so far; the same state twice in an iteration counts once.
        cached: How many of those came from the cost cache.
        failures: How many of those had no cost.
        predicted: Additional states with predicted costs so far; only rewards use the predictions.
        seconds: Training time so far, interruptions left out.
        evaluations_per_s: Of this iteration.
        reward_mean: Mean return of the iteration's episodes.
        speedup: Geometric mean over them of first cost / last cost, without failed or predicted ones; None
            if no others are left.
        best_speedup: Greatest first cost / least cost among them; None if all failed.
        validation: Mean return of the greedy policy on the validation programs, when it was measured.
        rank_correlation: See `Quality`: of this iteration's predictions for what was then measured.
        prediction_error: Likewise.
        entropy: See `Statistics`, as for the following.
    """

    iteration: int
    episodes: int
    env_steps: int
    evaluations: int
    cached: int
    failures: int
    predicted: int
    seconds: float
    evaluations_per_s: float
    reward_mean: float
    speedup: float | None
    best_speedup: float | None
    validation: float | None
    rank_correlation: float | None
    prediction_error: float | None
    entropy: float | None
    policy_loss: float | None
    value_loss: float | None
    kl: float | None
    clip_fraction: float | None
    explained_variance: float | None
    epsilon: float | None
    lr: float | None


@dataclass
class Progress:
    """Progress of a training, apart from its learner."""

    iteration: int = 0
    episodes: int = 0
    env_steps: int = 0
    evaluations: int = 0
    cached: int = 0
    failures: int = 0
    predicted: int = 0
    seconds: float = 0.0
    best_validation: float = -math.inf

    def count(self, outcomes: Outcomes, seconds: float) -> None:
        """Add an iteration."""
        self.iteration += 1
        self.episodes += len(outcomes.returns)
        self.env_steps += outcomes.steps
        self.evaluations += outcomes.evaluations
        self.cached += outcomes.cached
        self.failures += outcomes.failures
        self.predicted += outcomes.predicted
        self.seconds += seconds


def metrics_of(
    progress: Progress,
    outcomes: Outcomes,
    statistics: Statistics,
    validation: float | None,
    elapsed: float,
    quality: Quality | None,
) -> Metrics:
    """Return the metrics of an iteration that `progress` has counted already.

    Args:
        progress: Progress after the iteration.
        outcomes: Outcomes of its episodes.
        statistics: Statistics of its gradient steps.
        validation: Mean return of the greedy policy, if it was measured.
        elapsed: Duration in seconds.
        quality: Quality of its predictions, if there were any.
    """
    first, last, best = outcomes.first, outcomes.last, outcomes.best
    finished = np.isfinite(first) & np.isfinite(last)
    known = np.isfinite(first) & np.isfinite(best)
    return Metrics(
        iteration=progress.iteration,
        episodes=progress.episodes,
        env_steps=progress.env_steps,
        evaluations=progress.evaluations,
        cached=progress.cached,
        failures=progress.failures,
        predicted=progress.predicted,
        seconds=progress.seconds,
        evaluations_per_s=outcomes.evaluations / elapsed,
        reward_mean=float(outcomes.returns.mean()),
        speedup=float(np.exp(np.log(first[finished] / last[finished]).mean())) if finished.any() else None,
        best_speedup=float((first[known] / best[known]).max()) if known.any() else None,
        validation=validation,
        rank_correlation=quality.rank_correlation if quality else None,
        prediction_error=quality.error if quality else None,
        **asdict(statistics),
    )
