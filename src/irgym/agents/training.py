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
from irgym.agents.episodes.rollout import rollout
from irgym.agents.learner import AgentConfig, Learner, Statistics
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
from irgym.policies.run_folder import RunFolder

SECURED = 10
"""Checkpoints precede each iteration once the time left is less than this many of the longest so far."""

OnIteration = Callable[[Metrics], None]


def train(
    config: AgentConfig,
    problem: Problem,
    run: Path,
    *,
    resume: bool = False,
    iterations: int | None = None,
    seconds: float | None = None,
    progress: OnIteration | None = None,
    validation: Sequence[Task[Any]] = (),
    environment: str = "",
    details: Mapping[str, Any] | None = None,
    screen: Screen | None = None,
) -> TorchPolicy:
    """Train an agent, or continue a training exactly where its last checkpoint left it.

    Args:
        config: The algorithm and its hyper-parameters.
        problem: What to learn.
        run: Folder of the run; see `run_folder`.
        resume: Continue the run in that folder rather than start one.
        iterations: Number of iterations after which to stop, those before a resumption included.
            Default: as many as the configuration says, or any number where `seconds` is given.
        seconds: Training time after which to stop, likewise. An iteration that is under way then is dropped,
            and a resumption does it again.
        progress: Called after each iteration.
        validation: Programs for the greedy evaluation that chooses the policy to keep, every
            `config.validate_every` iterations. Without them the newest policy is kept.
        environment: Name of the environment, for the policy's file.
        details: Plain values kept in config.json; a resumption must give equal ones.
        screen: Answers for costs in the learner's place of the problem's evaluator, on which it rests itself;
            validations are measured.

    Returns:
        The policy kept in `policy.pt`.

    Raises:
        IrgymError: The folder already holds a run, or the options of a resumed run differ; or the time was
            over before a single iteration was done.
        DivergedError: A loss, a return or a weight is not finite; the files are those of before.
        StorageError: A file cannot be written, what is resumed is missing or damaged, or another process
            trains in the folder.
    """
    folder = RunFolder(run)
    torch.set_num_threads(config.threads)
    learner = config.build(problem if screen is None else replace(problem, evaluator=screen))
    training = _Training(learner, problem, folder, validation, environment, screen)
    description = {"environment": environment, **_values_of(learner.config), **(details or {})}
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
    return TorchPolicy.load(folder.policy)


@dataclass
class _Training:
    """A training under way.

    Attributes:
        learner: What is trained.
        problem: What is learnt, without the screen.
        folder: Where the run is kept.
        validation: Programs that choose the policy to keep.
        environment: Name of the environment, for the policy's file.
        screen: See `train`.
        progress: Where it stands.
    """

    learner: Learner
    problem: Problem
    folder: RunFolder
    validation: Sequence[Task[Any]]
    environment: str
    screen: Screen | None
    progress: Progress = field(default_factory=Progress)
    _saved: int = -1
    _longest_s: float = 0.0

    def restore(self) -> None:
        """Go back to the last checkpoint."""
        state = checkpoint.restore(self.folder)
        try:
            self.learner.load_state_dict(state["learner"])
            self.progress = Progress(**state["progress"])
            if self.screen is not None:
                self.screen.load_state_dict(_arrays(state["screen"]))
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, RuntimeError) as error:
            # What torch and numpy raise for weights of another network, or for parts that are not there.
            raise StorageError(
                f"{self.folder.checkpoint} does not belong to the run that config.json describes, or is of "
                "another version of irgym: put the run's own file there, or start another run"
            ) from error
        self._saved = self.progress.iteration
        self.folder.truncate_metrics(self.progress.iteration)

    def save(self) -> None:
        """Write a checkpoint; and the newest policy, unless a validation has chosen one."""
        if not (self._validates and self.progress.best_validation > -math.inf):
            self._policy().save(self.folder.policy)
        state = {"learner": self.learner.state_dict(), "progress": asdict(self.progress)}
        if self.screen is not None:
            state["screen"] = _tensors(self.screen.state_dict())
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
                except OutOfTimeError:  # what the learner holds now is half an iteration: the file counts
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
        """Let the next iteration be dropped when the time is over, where the file has all before it.

        To write the file before each of many short iterations would take longer than what one of them loses.
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
        """Say whether it has gone on for so many iterations, or so long."""
        return (iterations is not None and self.progress.iteration >= iterations) or (
            seconds is not None and self.progress.seconds >= seconds
        )

    def iterate(self) -> Metrics:
        """Let the learner iterate once, and validate where it is time."""
        start = time.perf_counter()
        with np.errstate(over="ignore", invalid="ignore"):  # told in a sentence by what comes next
            outcomes, statistics = self.learner.iterate()
        self._check(outcomes, statistics)
        score: float | None = None
        if self._validates and (self.progress.iteration + 1) % self.learner.config.validate_every == 0:
            policy = self._policy()
            score = greedy_score(policy, self.validation, self.problem)
            if score > self.progress.best_validation:
                self.progress.best_validation = score
                policy.save(self.folder.policy)
        elapsed = time.perf_counter() - start
        self._longest_s = max(self._longest_s, elapsed)
        self.progress.count(outcomes, elapsed)
        quality = None if self.screen is None else self.screen.quality
        return metrics_of(self.progress, outcomes, statistics, score, elapsed, quality)

    def _check(self, outcomes: Outcomes, statistics: Statistics) -> None:
        """Make sure that there is something to go on from, before any file is replaced.

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
        return self.learner.config.validate_every > 0 and len(self.validation) > 0

    def _policy(self) -> TorchPolicy:
        network = self.learner.policy().network
        return TorchPolicy(network, self.environment, targets_of(self.problem.tasks))


def _values_of(config: AgentConfig) -> dict[str, Any]:
    """Return the configuration's class and values."""
    values = asdict(config) if is_dataclass(config) and not isinstance(config, type) else vars(config)
    return {"agent": type(config).__name__, "config": values}


def greedy_score(policy: TorchPolicy, tasks: Sequence[Task[Any]], problem: Problem) -> float:
    """Return the mean return over `tasks` of the policy's most probable actions, without shaping."""
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
    """Return nested dictionaries with tensors for arrays, as files hold them."""
    if isinstance(state, dict):
        return {name: _tensors(value) for name, value in cast(dict[str, Any], state).items()}
    return torch.as_tensor(state) if isinstance(state, np.ndarray) else state


def _arrays(state: Any) -> Any:
    """Return what `_tensors` was given."""
    if isinstance(state, dict):
        return {name: _arrays(value) for name, value in cast(dict[str, Any], state).items()}
    return state.numpy() if isinstance(state, torch.Tensor) else state
