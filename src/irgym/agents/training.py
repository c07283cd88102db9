"""Training: iterate a learner, record what happens, keep checkpoints and the best policy."""

import math
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, is_dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from irgym.agents.episodes import Outcomes
from irgym.agents.events import without_tensorflow
from irgym.agents.learner import AgentConfig, Learner, Statistics
from irgym.agents.problem import Problem
from irgym.agents.rollout import rollout
from irgym.agents.run_folder import RunFolder
from irgym.core.actions import BoolArray
from irgym.core.errors import StorageError
from irgym.core.task import Task
from irgym.nets import heads
from irgym.nets.actor_critic import links_of
from irgym.nets.encoders import Batch
from irgym.nets.policy import TorchPolicy
from irgym.prediction.quality import Quality
from irgym.prediction.screen import Screen


@dataclass(frozen=True)
class Metrics:
    """What one iteration did. Counts of steps, episodes and evaluations run from the start of training.

    Attributes:
        iteration: From 1.
        episodes: Episodes so far.
        env_steps: Environment steps so far.
        evaluations: States whose cost was asked for, so far; the same state twice in an iteration is one.
        cached: How many of those the cost cache answered.
        failures: How many of those had no cost.
        predicted: Further states whose cost was predicted instead, so far; rewards rest on them, and nothing
            else here does.
        seconds: Training time so far, interruptions left out.
        evaluations_per_s: Of this iteration.
        reward_mean: Mean return of the iteration's episodes.
        speedup: Geometric mean over them of first cost / last cost, those failed or predicted left out; None
            if all were.
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


Progress = Callable[[Metrics], None]


@dataclass
class _Course:
    """Where a training stands, apart from its learner."""

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


def train(
    config: AgentConfig,
    problem: Problem,
    run: Path,
    *,
    resume: bool = False,
    iterations: int | None = None,
    seconds: float | None = None,
    progress: Progress | None = None,
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
        seconds: Training time after which to stop, likewise.
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
        IrgymError: The folder already holds a run, or the options of a resumed run differ.
        StorageError: A file cannot be written, or what is resumed is missing or damaged.
    """
    folder = RunFolder(run)
    torch.set_num_threads(config.threads)
    learner = config.build(problem if screen is None else replace(problem, evaluator=screen))
    course = _Course()
    description = {"environment": environment, **_values_of(learner.config), **(details or {})}
    if resume:
        folder.expect(description)
        state = folder.restore()
        learner.load_state_dict(state["learner"])
        course = _Course(**state["course"])
        if screen is not None:
            screen.load_state_dict(_arrays(state["screen"]))
        folder.truncate_metrics(course.iteration)
    else:
        folder.create(description)
        _save(folder, learner, course, environment, screen, keep_newest=True)
    if iterations is None:
        iterations = config.iterations if seconds is None else None
    board = _Board(folder.tensorboard, course.iteration)
    validates = config.validate_every > 0 and len(validation) > 0
    saved = time.monotonic()
    try:
        while not _done(course, iterations, seconds):
            metrics = _iterate(learner, course, config, problem, validation, folder, environment, screen)
            folder.append_metrics(asdict(metrics))
            board.write(metrics)
            if progress is not None:
                progress(metrics)
            last = _done(course, iterations, seconds)
            if last or time.monotonic() - saved >= config.checkpoint_every:
                _save(
                    folder,
                    learner,
                    course,
                    environment,
                    screen,
                    keep_newest=not (validates and course.best_validation > -math.inf),
                )
                saved = time.monotonic()
    finally:
        board.close()
    return TorchPolicy.load(folder.policy)


def _values_of(config: AgentConfig) -> dict[str, Any]:
    """Return the configuration's class and values."""
    values = asdict(config) if is_dataclass(config) and not isinstance(config, type) else vars(config)
    return {"agent": type(config).__name__, "config": values}


def _done(course: _Course, iterations: int | None, seconds: float | None) -> bool:
    return (iterations is not None and course.iteration >= iterations) or (
        seconds is not None and course.seconds >= seconds
    )


def _iterate(
    learner: Learner,
    course: _Course,
    config: AgentConfig,
    problem: Problem,
    validation: Sequence[Task[Any]],
    folder: RunFolder,
    environment: str,
    screen: Screen | None,
) -> Metrics:
    """Let the learner iterate once, validate where it is time, and return the metrics."""
    start = time.perf_counter()
    outcomes, statistics = learner.iterate()
    score: float | None = None
    if validation and config.validate_every > 0 and (course.iteration + 1) % config.validate_every == 0:
        policy = TorchPolicy(learner.policy().network, environment)
        score = greedy_score(policy, validation, problem)
        if score > course.best_validation:
            course.best_validation = score
            policy.save(folder.policy)
    elapsed = time.perf_counter() - start
    course.count(outcomes, elapsed)
    return _metrics(course, outcomes, statistics, score, elapsed, screen.quality if screen else None)


def _metrics(
    course: _Course,
    outcomes: Outcomes,
    statistics: Statistics,
    score: float | None,
    elapsed: float,
    quality: Quality | None,
) -> Metrics:
    first, last, best = outcomes.first, outcomes.last, outcomes.best
    finished = np.isfinite(first) & np.isfinite(last)
    known = np.isfinite(first) & np.isfinite(best)
    return Metrics(
        iteration=course.iteration,
        episodes=course.episodes,
        env_steps=course.env_steps,
        evaluations=course.evaluations,
        cached=course.cached,
        failures=course.failures,
        predicted=course.predicted,
        seconds=course.seconds,
        evaluations_per_s=outcomes.evaluations / elapsed,
        reward_mean=float(outcomes.returns.mean()),
        speedup=float(np.exp(np.log(first[finished] / last[finished]).mean())) if finished.any() else None,
        best_speedup=float((first[known] / best[known]).max()) if known.any() else None,
        validation=score,
        rank_correlation=quality.rank_correlation if quality else None,
        prediction_error=quality.error if quality else None,
        **asdict(statistics),
    )


def greedy_score(policy: TorchPolicy, tasks: Sequence[Task[Any]], problem: Problem) -> float:
    """Return the mean return over `tasks` of the policy's most probable actions, without shaping."""
    network = policy.network

    def choose(batch: Batch, legal: BoolArray) -> heads.Draw:
        with torch.inference_mode():
            scores = network.forward(batch).numpy()
        choices = heads.greedy(scores, legal, network.layout, links_of(network))
        certain = np.zeros(len(choices), dtype=np.float32)
        return heads.Draw(choices, certain, certain)

    _, outcomes = rollout(tasks, problem.unshaped(), network.encoder, network.layout, choose)
    return float(outcomes.returns.mean())


def _save(
    folder: RunFolder,
    learner: Learner,
    course: _Course,
    environment: str,
    screen: Screen | None,
    keep_newest: bool,
) -> None:
    """Write the policy where the newest is kept, and a checkpoint."""
    if keep_newest:
        TorchPolicy(learner.policy().network, environment).save(folder.policy)
    state = {"learner": learner.state_dict(), "course": asdict(course)}
    if screen is not None:
        state["screen"] = _tensors(screen.state_dict())
    folder.save(state)


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


@contextmanager
def _storage() -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(f"cannot write TensorBoard's events: {error.strerror}; free some space") from error


class _Board:
    """Writes metrics for TensorBoard, where it is installed; metrics.jsonl has them in any case."""

    def __init__(self, path: Path, iteration: int) -> None:
        try:
            without_tensorflow()
            from torch.utils import tensorboard
        except ImportError:
            self._writer: Any = None
            return
        writer = cast(Any, tensorboard).SummaryWriter
        with _storage():
            self._writer = writer(log_dir=str(path), purge_step=iteration + 1 if iteration else None)

    def write(self, metrics: Metrics) -> None:
        """Add the metrics of one iteration.

        Raises:
            StorageError: They cannot be written.
        """
        if self._writer is None:
            return
        with _storage():
            for name, value in asdict(metrics).items():
                if name != "iteration" and value is not None:
                    self._writer.add_scalar(f"train/{name}", value, metrics.iteration)

    def close(self) -> None:
        """Write what is left.

        Raises:
            StorageError: It cannot be written.
        """
        if self._writer is not None:
            with _storage():
                self._writer.close()
