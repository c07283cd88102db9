"""Training: iterate a learner, record what happens, keep checkpoints and the best policy."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from irgym.agents import checkpoint
from irgym.agents.deadline import OutOfTimeError
from irgym.agents.episodes.played import Outcomes
from irgym.agents.evaluation import evaluate_policy, greedy_score
from irgym.agents.learner import AgentConfig, Learner, Statistics, Trained
from irgym.agents.metrics import Course, Metrics, Progress, logged_values, metrics_of
from irgym.agents.optimisation import DivergedError
from irgym.agents.problem import Problem
from irgym.base.errors import IrgymError, StorageError
from irgym.core.limits import limits_of
from irgym.core.task import Task, targets_of
from irgym.cost_model.screen import Screen
from irgym.loggers import logger_names, make_loggers
from irgym.loggers.logger import Logger, Loggers
from irgym.measure.evaluators import Measured
from irgym.networks.policy import TorchPolicy
from irgym.policies.plain import PlainPolicy
from irgym.policies.run_folder import BUDGET, RunFolder
from irgym.policies.sb3 import Sb3Policy

SECURED = 10
"""A checkpoint precedes each iteration once the time left is below this multiple of the longest iteration."""

OnIteration = Callable[[Metrics], None]


@dataclass(frozen=True)
class Setup:
    """Setup of a training, beside its problem; a resumption needs equal `details`, `validation` and `screen`.

    Attributes:
        validation: Programs for the greedy evaluation that chooses the policy to keep, every
            `config.validate_every` iterations. Without them the newest policy is kept.
        screen: Evaluator for the learner in place of the problem's, which it wraps; validations are measured.
        environment: Name of the environment, for the policy's file.
        details: Plain values kept in config.json; a resumption must give equal ones.
        evaluation: Programs for the evaluation of the policy every `evaluate_every` iterations. It changes
            nothing in what is learnt.
        evaluate_every: Iterations between evaluations; 0 for none.
        snapshot_every: Iterations between copies of the policy in the folder `snapshots`; 0 for none.
        loggers: Loggers beside metrics.jsonl; by default TensorBoard, where it is installed.
    """

    validation: Sequence[Task[Any]] = ()
    screen: Screen | None = None
    environment: str = ""
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])
    evaluation: Sequence[Task[Any]] = ()
    evaluate_every: int = 0
    snapshot_every: int = 0
    loggers: Sequence[Logger] | None = None


def train(
    config: AgentConfig,
    problem: Problem,
    run: Path,
    setup: Setup = Setup(),
    *,
    resume: bool = False,
    iterations: int | None = None,
    seconds: float | None = None,
    progress: OnIteration | None = None,
) -> TorchPolicy | Sb3Policy:
    """Train an agent, or continue a training exactly where its last checkpoint left it.

    Args:
        config: The algorithm and its hyper-parameters.
        problem: Programs, evaluator and reward.
        run: Folder of the run; see `run_folder`.
        setup: Validation programs, screening model, and values to record.
        resume: Continue the run in the folder instead of starting one.
        iterations: Number of iterations after which to stop, counting those before a resumption.
            By default the configuration's number, or no limit if `seconds` is given.
        seconds: Training time after which to stop, counting likewise. The iteration in progress
            is then dropped; a resumption repeats it.
        progress: Called after each iteration.

    Returns:
        The policy kept in `policy.pt`.

    Raises:
        IrgymError: The folder already holds a run, or the options of a resumed run differ; or no iteration
            finished in time.
        DivergedError: A loss, a return or a weight is not finite; the previous files stay.
        StorageError: A file cannot be written, the run to resume is missing or damaged, or another process
            trains in the folder.
    """
    folder = RunFolder(run)
    torch.set_num_threads(config.threads)
    learner = config.build(problem if setup.screen is None else replace(problem, evaluator=setup.screen))
    training = _Training(learner, problem, folder, setup)
    description = {"environment": setup.environment, **_values_of(learner.config), **setup.details}
    description |= dict(zip(BUDGET, (iterations, seconds), strict=True))
    if iterations is None:
        iterations = config.iterations if seconds is None else None
    loggers = Loggers(make_loggers(logger_names(None)) if setup.loggers is None else setup.loggers)
    with folder.held(resume):
        if resume:
            folder.expect(description)
            training.restore()
        with loggers.logging(run, description, training.progress.iteration):
            if resume:
                folder.renew(description)
            else:
                folder.create(description)
                training.save()
            training.run(iterations, seconds, progress, loggers)
            loggers.artefact(training.progress.iteration, folder.policy)
    if seconds is not None and not training.progress.iteration:
        raise IrgymError(
            f"no iteration was finished within {seconds:g} s, so nothing was learned: give more --seconds, "
            "or make iterations shorter (--set episodes=N); --resume goes on with this run"
        )
    if isinstance(learner.policy(), TorchPolicy):
        return TorchPolicy.load(folder.policy)
    policy = PlainPolicy.load(folder.policy)
    assert isinstance(policy, Sb3Policy)
    return policy


@dataclass
class _Training:
    """A training in progress.

    Attributes:
        learner: The learner.
        problem: The problem, with the evaluator that measures.
        folder: The run folder.
        setup: See `train`.
        progress: Counts so far.
    """

    learner: Learner
    problem: Problem
    folder: RunFolder
    setup: Setup
    progress: Progress = field(default_factory=Progress)
    _saved: int = -1
    _longest_s: float = 0.0

    def restore(self) -> None:
        """Restore the last checkpoint."""
        state = checkpoint.restore(self.folder)
        try:
            self.learner.load_state_dict(state["learner"])
            self.progress = Progress(**state["progress"])
            if self.setup.screen is not None:
                self.setup.screen.load_state_dict(_arrays(state["screen"]))
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, RuntimeError) as error:
            # Errors of torch and numpy for weights of another network, or for missing parts.
            raise StorageError(
                f"{self.folder.checkpoint} does not belong to the run that config.json describes, or is of "
                "another version of irgym: put the run's own file there, or start another run"
            ) from error
        self._saved = self.progress.iteration
        self.folder.truncate_metrics(self.progress.iteration)

    def save(self) -> None:
        """Write a checkpoint, and the newest policy unless a validation has chosen one."""
        if not (self._validates and self.progress.best_validation > -math.inf):
            self._policy().save(self.folder.policy)
        state = {"learner": self.learner.state_dict(), "progress": asdict(self.progress)}
        if self.setup.screen is not None:
            state["screen"] = _tensors(self.setup.screen.state_dict())
        checkpoint.save(self.folder, state)
        self._saved = self.progress.iteration

    def run(
        self, iterations: int | None, seconds: float | None, progress: OnIteration | None, loggers: Loggers
    ) -> None:
        """Iterate, record and save until the end; see `train` for the arguments."""
        saved = time.monotonic()
        try:
            while not self.done(iterations, seconds):
                self._set_deadline(seconds)
                timed = None if iterations is not None else seconds
                self.problem.deadline.passed = None if timed is None else self.progress.seconds / timed
                try:
                    metrics = self.iterate()
                except OutOfTimeError:  # the learner is in mid-iteration: the checkpoint counts
                    self.folder.truncate_metrics(self._saved)
                    break
                self.folder.append_metrics(asdict(metrics))
                loggers.metrics(metrics.iteration, logged_values(metrics))
                if _due(self.setup.snapshot_every, metrics.iteration):
                    loggers.artefact(metrics.iteration, self._snapshot(metrics.iteration))
                if progress is not None:
                    progress(metrics)
                due = time.monotonic() - saved >= self.learner.config.checkpoint_every or not self._saved
                if due or self.done(iterations, seconds):
                    self.save()
                    saved = time.monotonic()
        finally:
            self._set_deadline(None)

    def _snapshot(self, iteration: int) -> Path:
        """Keep a copy of the newest policy, and return its file."""
        file = self.folder.snapshot(iteration)
        self._policy().save(file)
        return file

    def _set_deadline(self, seconds: float | None) -> None:
        """Set the deadline of the next iteration.

        Near the end of the time a checkpoint precedes each iteration, so that dropping one loses no other.
        Earlier, writing them would take longer than the iterations. So an iteration that suddenly takes long
        has more time, and with it are dropped those since the last checkpoint.
        """
        deadline = self.problem.deadline
        left = math.inf if seconds is None else seconds - self.progress.seconds
        if left < SECURED * self._longest_s and self._saved != self.progress.iteration:
            self.save()
        more = 0.0 if self._saved == self.progress.iteration else self.learner.config.checkpoint_every
        deadline.moment = time.monotonic() + left + more
        deadline.begin(self.progress.iteration + 1)
        evaluator = self.problem.evaluator
        if isinstance(evaluator, Measured):
            evaluator.before_chunk = deadline.measuring
            evaluator.cautious = seconds is not None

    def done(self, iterations: int | None, seconds: float | None) -> bool:
        """Return whether the limit of iterations or seconds is reached."""
        return (iterations is not None and self.progress.iteration >= iterations) or (
            seconds is not None and self.progress.seconds >= seconds
        )

    def iterate(self) -> Metrics:
        """Let the learner iterate once; validate and evaluate if it is due."""
        start = time.perf_counter()
        with np.errstate(over="ignore", invalid="ignore"):  # `_check` reports it
            outcomes, statistics = self.learner.iterate()
        self._check(outcomes, statistics)
        learnt_s = time.perf_counter() - start
        iteration, setup = self.progress.iteration + 1, self.setup
        score: float | None = None
        if self._validates and _due(self.learner.config.validate_every, iteration):
            policy = self._policy()
            score = greedy_score(policy, setup.validation, self.problem)
            if score > self.progress.best_validation:
                self.progress.best_validation = score
                policy.save(self.folder.policy)
        evaluation = None
        if setup.evaluation and _due(setup.evaluate_every, iteration):
            evaluation = evaluate_policy(self._policy(), setup.evaluation, self.problem)
        elapsed = time.perf_counter() - start
        self._longest_s = max(self._longest_s, elapsed)
        self.progress.count(outcomes, elapsed)
        quality = None if setup.screen is None else setup.screen.quality
        evaluator = self.problem.evaluator
        workers = evaluator.workers if isinstance(evaluator, Measured) else 1
        course = Course(learnt_s, elapsed, workers, score, evaluation, quality)
        return metrics_of(self.progress, outcomes, statistics, course)

    def _check(self, outcomes: Outcomes, statistics: Statistics) -> None:
        """Check that the iteration's results are finite, before any file is replaced.

        Raises:
            DivergedError: A return, a loss or a weight of the policy is not finite.
        """
        values = {
            "mean return of the episodes": float(outcomes.returns.mean()),
            "policy loss": statistics.policy_loss,
            "value loss": statistics.value_loss,
            "entropy": statistics.entropy,
        }
        for what, value in values.items():
            if value is not None and not math.isfinite(value):
                raise DivergedError(what, value)
        if not self._policy().finite:
            raise DivergedError("policy", math.nan)

    @property
    def _validates(self) -> bool:
        return self.learner.config.validate_every > 0 and len(self.setup.validation) > 0

    def _policy(self) -> Trained:
        policy = self.learner.policy()
        tasks = self.problem.tasks
        policy.environment, policy.targets = self.setup.environment, targets_of(tasks)
        policy.limits = limits_of(tasks[0])
        return policy


def _values_of(config: AgentConfig) -> dict[str, Any]:
    """Return the configuration's class and values."""
    values = asdict(config) if is_dataclass(config) and not isinstance(config, type) else vars(config)
    return {"agent": type(config).__name__, "config": values}


def _due(every: int, iteration: int) -> bool:
    """Return whether something that happens every so many iterations, or never, happens now."""
    return every > 0 and iteration % every == 0


def _tensors(state: Any) -> Any:
    """Return nested dictionaries with arrays converted to tensors, for files."""
    if isinstance(state, dict):
        return {name: _tensors(value) for name, value in cast(dict[str, Any], state).items()}
    return torch.as_tensor(state) if isinstance(state, np.ndarray) else state


def _arrays(state: Any) -> Any:
    """Return the inverse of `_tensors`."""
    if isinstance(state, dict):
        return {name: _arrays(value) for name, value in cast(dict[str, Any], state).items()}
    return state.numpy() if isinstance(state, torch.Tensor) else state
