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
from irgym.agents.episodes.greedy import greedy_return
from irgym.agents.episodes.played import Outcomes
from irgym.agents.episodes.rollout import rollout
from irgym.agents.learner import AgentConfig, Learner, Statistics, Trained
from irgym.agents.metrics import Metrics, Progress, metrics_of
from irgym.agents.optimisation import DivergedError
from irgym.agents.problem import Problem
from irgym.agents.tensorboard import Board
from irgym.base.errors import IrgymError, StorageError
from irgym.core.actions import BoolArray
from irgym.core.task import Task, targets_of
from irgym.cost_model.screen import Screen
from irgym.measure.evaluators import Measured
from irgym.networks.encoders import Batch
from irgym.networks.policy import TorchPolicy
from irgym.policies import heads
from irgym.policies.plain import PlainPolicy
from irgym.policies.run_folder import RunFolder
from irgym.policies.sb3 import Sb3Policy

SECURED = 10
"""A checkpoint precedes each iteration once the time left is below this multiple of the longest iteration."""

OnIteration = Callable[[Metrics], None]


@dataclass(frozen=True)
class Setup:
    """Setup of a training, beside its problem; a resumption needs an equal one.

    Attributes:
        validation: Programs for the greedy evaluation that chooses the policy to keep, every
            `config.validate_every` iterations. Without them the newest policy is kept.
        screen: Evaluator for the learner in place of the problem's, which it wraps; validations are measured.
        environment: Name of the environment, for the policy's file.
        details: Plain values kept in config.json; a resumption must give equal ones.
    """

    validation: Sequence[Task[Any]] = ()
    screen: Screen | None = None
    environment: str = ""
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])


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
    if iterations is None:
        iterations = config.iterations if seconds is None else None
    with folder.held(resume):
        if resume:
            folder.expect(description)
            training.restore()
        else:
            folder.create(description)
            training.save()
        training.run(iterations, seconds, progress)
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

    def run(self, iterations: int | None, seconds: float | None, progress: OnIteration | None) -> None:
        """Iterate, record and save until the end; see `train` for the arguments."""
        board = Board(self.folder.tensorboard, self.progress.iteration)
        saved = time.monotonic()
        try:
            while not self.done(iterations, seconds):
                self._set_deadline(seconds)
                try:
                    metrics = self.iterate()
                except OutOfTimeError:  # the learner is in mid-iteration: the checkpoint counts
                    break
                self.folder.append_metrics(asdict(metrics))
                board.write(metrics)
                if progress is not None:
                    progress(metrics)
                due = time.monotonic() - saved >= self.learner.config.checkpoint_every or not self._saved
                if due or self.done(iterations, seconds):
                    self.save()
                    saved = time.monotonic()
        finally:
            self._set_deadline(None)
            board.close()

    def _set_deadline(self, seconds: float | None) -> None:
        """Set the deadline of the next iteration, if a checkpoint holds all previous ones.

        Near the end of the time a checkpoint precedes each iteration. Earlier, writing them would take longer
        than the iteration that could be lost.
        """
        deadline = self.problem.deadline
        left = math.inf if seconds is None else seconds - self.progress.seconds
        if left < SECURED * self._longest_s and self._saved != self.progress.iteration:
            self.save()
        secured = seconds is not None and self._saved == self.progress.iteration
        deadline.moment = time.monotonic() + left if secured else math.inf
        evaluator = self.problem.evaluator
        if isinstance(evaluator, Measured):
            evaluator.before_chunk = deadline.check

    def done(self, iterations: int | None, seconds: float | None) -> bool:
        """Return whether the limit of iterations or seconds is reached."""
        return (iterations is not None and self.progress.iteration >= iterations) or (
            seconds is not None and self.progress.seconds >= seconds
        )

    def iterate(self) -> Metrics:
        """Let the learner iterate once, and validate if it is due."""
        start = time.perf_counter()
        with np.errstate(over="ignore", invalid="ignore"):  # `_check` reports it
            outcomes, statistics = self.learner.iterate()
        self._check(outcomes, statistics)
        score: float | None = None
        if self._validates and (self.progress.iteration + 1) % self.learner.config.validate_every == 0:
            policy = self._policy()
            score = greedy_score(policy, self.setup.validation, self.problem)
            if score > self.progress.best_validation:
                self.progress.best_validation = score
                policy.save(self.folder.policy)
        elapsed = time.perf_counter() - start
        self._longest_s = max(self._longest_s, elapsed)
        self.progress.count(outcomes, elapsed)
        quality = None if self.setup.screen is None else self.setup.screen.quality
        return metrics_of(self.progress, outcomes, statistics, score, elapsed, quality)

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
        policy.environment, policy.targets = self.setup.environment, targets_of(self.problem.tasks)
        return policy


def _values_of(config: AgentConfig) -> dict[str, Any]:
    """Return the configuration's class and values."""
    values = asdict(config) if is_dataclass(config) and not isinstance(config, type) else vars(config)
    return {"agent": type(config).__name__, "config": values}


def greedy_score(policy: Trained, tasks: Sequence[Task[Any]], problem: Problem) -> float:
    """Return the mean return over `tasks` of the policy's most probable actions, without shaping."""
    if not isinstance(policy, TorchPolicy):
        return greedy_return(policy, problem, tasks)
    network = policy.network

    def choose(batch: Batch, legal: BoolArray) -> heads.Draw:
        with torch.inference_mode():
            scores = network.forward(batch, torch.as_tensor(legal)).numpy()
        choices = policy.best(scores, legal)
        certain = np.zeros(len(choices), dtype=np.float32)
        return heads.Draw(choices, certain, certain)

    _, outcomes = rollout(tasks, problem.unshaped(), network.encoder, network.layout, choose)
    return float(outcomes.returns.mean())


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
