"""Metrics of a training, iteration by iteration."""

import math
from dataclasses import asdict, dataclass

import numpy as np

from irgym.agents.episodes.played import Outcomes
from irgym.agents.evaluation import Evaluation, ProgramResult
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
        eval_speedup: Geometric mean of the speedups in this iteration's evaluation, see `programs`.
        eval_entropy: Mean entropy of the policy in the states on its way there, nats.
        programs: Results of the greedy policy on programs that it does not learn from, if this iteration
            evaluates it.
        collecting_s: Seconds of this iteration for playing episodes, without measuring.
        measuring_s: Seconds for their costs.
        worker_s: Mean seconds of a worker for each cost that the cache did not have; None if it had all, and
            in Ape-X.
        learning_s: Seconds for everything else, which are gradient steps; of the policy alone if the values
            are learnt separately. Ape-X learns while its actors play and measure, so that this counts as
            collecting.
        values_s: Seconds for the gradient steps of the values, if they are separate.
        evaluating_s: Seconds for validation and evaluation.
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
    eval_speedup: float | None
    eval_entropy: float | None
    programs: tuple[ProgramResult, ...] | None
    collecting_s: float
    measuring_s: float
    worker_s: float | None
    learning_s: float
    values_s: float | None
    evaluating_s: float
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
    grad_norm: float | None
    value_grad_norm: float | None


@dataclass(frozen=True)
class Course:
    """The course of an iteration, apart from its learner.

    Attributes:
        learnt_s: Seconds until the learner was done.
        elapsed_s: Seconds in all, with validation and evaluation.
        workers: Costs that are measured at the same time.
        validation: Mean return of the greedy policy, if it was measured.
        evaluation: Evaluation of the policy, if it is due.
        quality: Quality of the iteration's predictions, if there were any.
    """

    learnt_s: float
    elapsed_s: float
    workers: int = 1
    validation: float | None = None
    evaluation: Evaluation | None = None
    quality: Quality | None = None


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


def metrics_of(progress: Progress, outcomes: Outcomes, statistics: Statistics, course: Course) -> Metrics:
    """Return the metrics of an iteration that `progress` has counted already.

    Args:
        progress: Progress after the iteration.
        outcomes: Outcomes of its episodes.
        statistics: Statistics of its gradient steps.
        course: How long it took, and evaluations.
    """
    first, last, best = outcomes.first, outcomes.last, outcomes.best
    finished = np.isfinite(first) & np.isfinite(last)
    known = np.isfinite(first) & np.isfinite(best)
    evaluation, quality = course.evaluation, course.quality
    measured = outcomes.evaluations - outcomes.cached
    played_s = outcomes.collecting_s + outcomes.measuring_s
    return Metrics(
        iteration=progress.iteration,
        episodes=progress.episodes,
        env_steps=progress.env_steps,
        evaluations=progress.evaluations,
        cached=progress.cached,
        failures=progress.failures,
        predicted=progress.predicted,
        seconds=progress.seconds,
        evaluations_per_s=outcomes.evaluations / course.elapsed_s,
        reward_mean=float(outcomes.returns.mean()),
        speedup=float(np.exp(np.log(first[finished] / last[finished]).mean())) if finished.any() else None,
        best_speedup=float((first[known] / best[known]).max()) if known.any() else None,
        validation=course.validation,
        eval_speedup=evaluation.speedup if evaluation else None,
        eval_entropy=evaluation.entropy if evaluation else None,
        programs=evaluation.programs if evaluation else None,
        collecting_s=outcomes.collecting_s,
        measuring_s=outcomes.measuring_s,
        worker_s=outcomes.measuring_s * course.workers / measured
        if measured and outcomes.measuring_s
        else None,
        learning_s=max(0.0, course.learnt_s - played_s - (statistics.values_s or 0.0)),
        evaluating_s=course.elapsed_s - course.learnt_s,
        rank_correlation=quality.rank_correlation if quality else None,
        prediction_error=quality.error if quality else None,
        **asdict(statistics),
    )


def logged_values(metrics: Metrics) -> dict[str, float]:
    """Return the numbers of an iteration by the names under which loggers show them.

    They are `train/NAME` for each metric, and of an evaluation `eval/speedup_mean`, `eval/entropy`,
    `eval/speedup/URI` and `eval/cost/URI`. What is unknown is left out.
    """
    apart = ("iteration", "programs", "eval_speedup", "eval_entropy")
    values = {f"train/{name}": value for name, value in vars(metrics).items() if name not in apart}
    values |= {"eval/speedup_mean": metrics.eval_speedup, "eval/entropy": metrics.eval_entropy}
    for result in metrics.programs or ():
        values |= {
            f"eval/speedup/{result.program}": result.speedup,
            f"eval/cost/{result.program}": result.cost,
        }
    return {name: value for name, value in values.items() if value is not None and math.isfinite(value)}
