"""`irgym.train`: a policy from a data set."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from irgym.api.at_end import compare_at_end
from irgym.api.checks import check_name, check_options, check_seconds, path_of
from irgym.api.hyperparameters import by_name, configured
from irgym.api.logged import loggers_of
from irgym.api.programs import environment_named
from irgym.api.requests import Measuring, Training, checked
from irgym.api.selecting import recorded
from irgym.api.stopping import changes_nothing, note_of_no_change
from irgym.api.training_observer import TrainingObserver, unseen
from irgym.base.errors import IrgymError
from irgym.core.bench import Bench
from irgym.core.catalogue import check_objective
from irgym.core.dataset import Dataset, spread
from irgym.core.datasets import dataset_named, left_out_text
from irgym.core.environment import Environment, recipe_of
from irgym.core.program_files import digest_of
from irgym.core.recipe import Recipe
from irgym.core.reward import Reward, check_reward
from irgym.core.reward_names import reward_from, reward_text
from irgym.core.task import Task, targets_of
from irgym.cost_model.screen import Screen
from irgym.judging.targets import machine_text, peak_of
from irgym.policies.run_folder import PROGRAMS, RunFolder
from irgym.search.policies import require_torch

if TYPE_CHECKING:
    from irgym.agents.learner import AgentConfig
    from irgym.agents.metrics import Metrics
    from irgym.agents.problem import Problem
    from irgym.loggers.logger import Logger
    from irgym.networks.policy import TorchPolicy
    from irgym.policies.sb3 import Sb3Policy

R = TypeVar("R", Training, Measuring)

TRIED = 64
"""Training programs on which a policy is tried at the end of a training without validation."""


def train(
    environment: str,
    run: str | Path,
    *,
    seconds: float | None = None,
    seed: int = 0,
    training: Training = Training(),
    measuring: Measuring = Measuring(),
    note: Callable[[str], None] | None = None,
    progress: "Callable[[Metrics], None] | None" = None,
) -> "TorchPolicy | Sb3Policy":
    """Train a policy on the training programs of a data set; keep metrics and checkpoints in a run folder.

    An interrupt loses only what came after the last checkpoint.

    Args:
        environment: Name of the environment.
        run: Run folder, for checkpoints, metrics (JSON lines, TensorBoard) and the policy.
        seconds: Training time after which to stop; the time before a resumption counts too.
        seed: Seed of all random choices.
        training: Agent, data set, reward, and how to train.
        measuring: Objective, back end, targets and farm; several targets are learnt together.
        note: Called with a line that says what is trained, and on which machine; and at the end with one if
            the policy changes no program.
        progress: Called with the metrics of each iteration.

    Returns:
        The policy that the run folder keeps.

    Raises:
        IrgymError: Something that is named does not exist or makes no sense; or the folder already holds a
            run, or the run to resume was started with other options.
        DivergedError: A loss, a return or a weight is not finite.
        StorageError: A file cannot be written, or what is resumed is missing or damaged.
        BackendError: torch is not installed.
    """
    observer = TrainingObserver(note or unseen, progress or unseen)
    return train_observed(
        environment, run, observer, seconds=seconds, seed=seed, training=training, measuring=measuring
    )


def train_observed(
    environment: str,
    run: str | Path,
    observer: TrainingObserver,
    *,
    seconds: float | None = None,
    seed: int = 0,
    training: Training = Training(),
    measuring: Measuring = Measuring(),
) -> "TorchPolicy | Sb3Policy":
    """Train as `train` does, and let an observer see all progress.

    Raises:
        IrgymError: As for `train`.
    """
    check_options(seed=seed)
    folder = RunFolder(path_of(run, "a run folder"))
    check_name(folder.path)
    check_seconds(seconds, "to train")
    found = environment_named(environment)
    folder.check(checked(training, Training).resume)
    annealed = folder.annealed if training.resume else training.iterations
    plan = _planned(found, training, checked(measuring, Measuring), seed, annealed)
    loggers = loggers_of(folder, training)
    if folder.cut_off:
        observer.note(folder.cut_off)
    # The reward's scale is part of the problem: a resumed run keeps the one that it began with.
    peaks = folder.problem().peaks if training.resume else None
    with measuring.bench(found) as bench:
        problem = plan.problem(bench, peaks)
        problem.deadline.report = observer.activity
        observer.note(plan.summary(bench, problem))
        if plan.dataset.left_out:
            observer.note(left_out_text(plan.dataset))
        policy = plan.run(folder.path, bench, problem, seconds, observer.progress, loggers)
        tried = plan.validation(problem) or spread(problem.tasks, TRIED)
        if observer.note is not unseen and changes_nothing(policy, tried):
            observer.note(note_of_no_change(found, len(tried)))
    if training.compare_at_end is not None:
        compare_at_end(found, folder, plan.training, plan.measuring, seed, observer.note)
    return policy


@dataclass(frozen=True)
class _Plan:
    """A training with all names resolved.

    Attributes:
        environment: Where the programs come from.
        measuring: Objective, back end, targets and farm.
        training: The request, with the recipe's values filled in.
        agent: Name of the algorithm.
        dataset: The data set.
        uris: The programs to learn from.
        tests: Programs for evaluations of the policy during training.
        reward: The reward.
        config: Configuration of the algorithm.
        seed: Seed of all random choices.
        place: Words on the device that learns; empty where the agent has no such option.
    """

    environment: Environment
    measuring: Measuring
    training: Training
    agent: str
    dataset: Dataset
    uris: Sequence[str]
    tests: Sequence[str]
    reward: Reward
    config: "AgentConfig"
    seed: int
    place: str

    def problem(self, bench: Bench, peaks: Sequence[float] | None) -> "Problem":
        """Return what the agent learns.

        Args:
            bench: Where costs are measured.
            peaks: The targets' peaks in GFLOP/s, those of a run that is resumed; None to measure them.
        """
        from irgym.agents.problem import Problem, makers_of

        backend, objective = self.measuring.processor, self.measuring.objective
        targets, name = self.measuring.targets, self.environment.name
        tasks = self.tasks(self.uris)
        check_reward(self.reward, tasks[0])
        if peaks is None:
            peaks = _peaks(bench, tasks[: len(targets)])
        of_target = dict(zip(targets_of(tasks), peaks, strict=False))
        makers = makers_of(name, self.uris, backend, targets, objective, self.measuring.limits)
        families = {task.uri: self.environment.family(task.uri) for task in tasks}
        return Problem(tasks, bench.evaluator, self.reward, of_target, makers, families)

    def tasks(self, uris: Sequence[str]) -> list[Task[Any]]:
        """Return the tasks of some programs, for each target."""
        measuring = self.measuring
        return [
            measuring.limited_for(self.environment, uri, target)
            for uri in uris
            for target in measuring.targets
        ]

    def validation(self, problem: "Problem") -> Sequence[Task[Any]]:
        """Return the programs that choose the policy to keep, if there are any."""
        return spread(problem.tasks, self.training.validate)

    def summary(self, bench: Bench, problem: "Problem") -> str:
        """Return in a line what is trained, and where."""
        firsts = problem.tasks[: len(self.measuring.targets)]
        machine = "; ".join(dict.fromkeys(machine_text(bench, task) for task in firsts))
        what = f"{self.agent} on {len(self.uris)} programs of {self.dataset.name}"
        return "; ".join(filter(None, (what, machine, self.place)))

    def run(
        self,
        folder: Path,
        bench: Bench,
        problem: "Problem",
        seconds: float | None,
        progress: "Callable[[Metrics], None] | None",
        loggers: Sequence["Logger"],
    ) -> "TorchPolicy | Sb3Policy":
        """Train."""
        from irgym.agents.training import Setup
        from irgym.agents.training import train as run_training

        training, share = self.training, self.training.screen
        setup = Setup(
            validation=self.validation(problem),
            environment=self.environment.name,
            details={
                "agent": self.agent,
                "dataset": recorded(training.dataset) or self.dataset.name,
                "holdout": training.holdout,
                "limit": training.limit,
                "objective": self.measuring.objective,
                "reward": reward_text(training.reward),
                "backend": self.measuring.processor,
                "target": self.measuring.target,
                "targets": targets_of(problem.tasks),
                "validate": training.validate,
                "peaks": tuple(problem.peaks.values()),
                "screen": share,
                PROGRAMS: digest_of(self.uris),
                "horizon": self.measuring.horizon,
                "actions": self.measuring.actions,
            },
            screen=None
            if share is None
            else Screen(bench.evaluator, problem.tasks, share, self.seed, problem.families),
            evaluation=self.tasks(self.tests),
            evaluate_every=training.evaluate_every or 0,
            snapshot_every=training.snapshot_every or 0,
            loggers=loggers,
        )
        return run_training(
            self.config,
            problem,
            folder,
            setup,
            resume=training.resume,
            iterations=training.iterations,
            seconds=seconds,
            progress=progress,
        )


def _planned(
    environment: Environment, training: Training, measuring: Measuring, seed: int, annealed: int | None
) -> _Plan:
    """Resolve the names of a training.

    Args:
        environment: Where the programs come from.
        training: The request.
        measuring: Objective, back end, targets and farm.
        seed: Seed of all random choices.
        annealed: Number of iterations over which hyper-parameters are annealed; None for the agent's own.

    Raises:
        IrgymError: Something that is named does not exist, or options contradict each other.
        BackendError: torch is not installed.
    """
    recipe = _recipe(environment, training.recipe, training.agent)
    training = filled_by(training, recipe)
    measuring = filled_by(measuring, recipe)
    require_torch("training")
    from irgym.agents.devices import learning_text
    from irgym.agents.naming import agent_named

    programs = dataset_named(environment, training.dataset, training.holdout)
    check_objective(environment, measuring.objective)
    reward = reward_from(environment, training.reward)
    lengths = {} if annealed is None else {"iterations": annealed}
    values = {**recipe.hyperparameters, **lengths, **by_name(training.hyperparameters, recipe.agent)}
    if training.observation is not None:
        values["observation"] = training.observation
    if training.device is not None:
        values["device"] = training.device
    config = configured(agent_named(recipe.agent), values, seed, recipe.agent)
    if bool(training.validate) != bool(config.validate_every):
        raise IrgymError("validation needs both --validate N and --set validate_every=N: give both or none")
    uris, tests = spread(programs.split("train"), training.limit), _tests(training, programs)
    return _Plan(
        environment,
        measuring,
        training,
        recipe.agent,
        programs,
        uris,
        tests,
        reward,
        config,
        seed,
        learning_text(config),
    )


def _tests(training: Training, programs: Dataset) -> Sequence[str]:
    """Return the programs of the evaluations during training; none where there are no evaluations.

    Raises:
        IrgymError: There are to be evaluations, or a comparison, and the data set has no test programs.
    """
    if training.evaluate_every is None and training.compare_at_end is None:
        return ()
    tests = programs.split("test")
    return () if training.evaluate_every is None else spread(tests, training.evaluate_limit)


def _peaks(bench: Bench, tasks: Sequence[Task[Any]]) -> tuple[float, ...]:
    """Return the peaks of the targets of some tasks; none where no peak bounds costs."""
    found = [peak_of(bench, task) for task in tasks]
    return tuple(peak for peak in found if peak is not None)


def _recipe(environment: Environment, name: str | None, agent: str | None) -> Recipe:
    """Return the recipe that is named, or one of nothing but the agent.

    Raises:
        IrgymError: There is no such recipe, or it is one of another agent.
    """
    if name is None:
        return Recipe() if agent is None else Recipe(agent=agent)
    recipe = recipe_of(environment, name)
    if agent not in (None, recipe.agent):
        raise IrgymError(f"the recipe {name!r} trains {recipe.agent}, not {agent}: leave the agent out")
    return recipe


def filled_by(request: R, recipe: Recipe) -> R:
    """Return a request in which a recipe's values stand for what is not given."""
    values = {field.name: getattr(recipe, field.name) for field in fields(Recipe)}
    return replace(
        request,
        **{
            field.name: values[field.name]
            for field in fields(request)
            if field.name not in ("agent", "hyperparameters")
            and getattr(request, field.name) == field.default
            and values.get(field.name) is not None
        },
    )
