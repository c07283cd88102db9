"""Requests: the options of commands and functions, each defined, documented and checked once.

The command line reads them, and the functions of `import irgym` take them: `irgym.tune(program,
searching=irgym.Searching(search="random"))` is `irgym tune PROGRAM --search random`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Optional, TypeVar

from tyro.conf import Suppress, arg
from tyro.constructors import PrimitiveConstructorSpec

from irgym.api.checks import (
    QUICK_SECONDS,
    TUNING_SECONDS,
    budget,
    check_count,
    check_number,
    check_options,
    check_seconds,
    check_whole,
    path_of,
    targets_named,
    texts_of,
)
from irgym.api.selecting import DatasetNames, Selecting, check_dataset
from irgym.base.errors import IrgymError
from irgym.core.bench import Bench
from irgym.core.catalogue import task_of
from irgym.core.environment import Environment
from irgym.core.limits import UNLIMITED, Limits, limited
from irgym.core.reward import Reward
from irgym.core.task import Task
from irgym.loggers import check_loggers
from irgym.search.budget import Budget
from irgym.search.naming import search_named
from irgym.search.strategy import Strategy
from irgym.search.tree import OnEvaluated

R = TypeVar("R")

NameOfSearch = Annotated[str | Strategy | None, arg(name="search", constructor=Optional[str])]  # noqa: UP045 (as tyro reads)
"""A search by its name or, from Python, as a strategy; None to choose."""
_AS_TEXT: PrimitiveConstructorSpec[Any] = PrimitiveConstructorSpec(
    nargs=1,
    metavar="STR",
    instance_from_str=lambda words: words[0],
    is_instance=lambda value: True,
    str_from_instance=lambda value: [str(value)],
)
"""Form on the command line of an option that is a text there, and may be an object in Python."""


def checked(request: R, kind: type[R]) -> R:
    """Return a request, if it is one of a kind.

    Raises:
        IrgymError: It is something else.
    """
    if not isinstance(request, kind):
        name = kind.__name__
        raise IrgymError(f"{name.lower()} must be an irgym.{name}, not {request!r}: give one")
    return request


@dataclass(frozen=True)
class Measuring:
    """Objective and place of the measurements, and the limits of episodes.

    Raises:
        IrgymError: An option makes no sense.
    """

    objective: str | None = None
    """Objective to minimise, such as `time`; the environment's default if left out."""
    backend: str | None = None
    """Back end; by default the preferred one that runs here."""
    target: str | None = None
    """Target of code generation, such as x86-64-v3 (AVX2); by default this machine. A training takes several,
    separated by commas."""
    farm: str | None = None
    """Where to measure: local:N, dask://HOST:PORT or slurm?workers=N; by default in one process here."""
    threads: int | None = None
    """Threads that programs run on, in loops, linalg and graph; as `--backend NAME:N`. By default one."""
    horizon: int | None = None
    """Steps of an episode; by default the policy's, else the environment's."""
    actions: str | None = None
    """Actions that may be taken, as in up,down,split_8; all others if each begins with !; semicolons separate
    steps. By default the policy's, else `all`."""

    def __post_init__(self) -> None:
        check_options(objective=self.objective, backend=self.backend, farm=self.farm, actions=self.actions)
        check_whole(self.horizon, "steps", 1, "an episode has at least one step: give --horizon 1 or more")
        targets_named(self.target)
        if self.threads is not None:
            few = f"programs cannot run on {self.threads} threads: give at least 1"
            check_whole(self.threads, "threads", 1, few)
            if self.backend is not None and ":" in self.backend:
                raise IrgymError(f"--backend {self.backend} and --threads both name threads: leave one out")

    @property
    def processor(self) -> str | None:
        """Back end with its number of threads, as environments take it; None for the default."""
        if self.threads is None or self.threads == 1:
            return self.backend
        return f"{self.backend or ''}:{self.threads}"

    @property
    def limits(self) -> Limits:
        """Limits of episodes, for searches, policies and learners."""
        return Limits(self.horizon, self.actions)

    def check_unlimited(self, what: str) -> None:
        """Make sure that no limits of episodes are given.

        Raises:
            IrgymError: Some are.
        """
        if self.limits != UNLIMITED:
            raise IrgymError(f"{what} has no episodes: leave out --horizon and --actions")

    @property
    def targets(self) -> list[str | None]:
        """Targets, None for this machine."""
        return targets_named(self.target)

    def task(self, environment: Environment, uri: str) -> Task[Any]:
        """Return the task of a program.

        Raises:
            IrgymError: There is no such program, back end, target or objective.
        """
        return self.task_for(environment, uri, self.target)

    def task_for(self, environment: Environment, uri: str, target: str | None) -> Task[Any]:
        """Return the task of a program for one of several targets; None for this machine.

        Raises:
            IrgymError: As for `task`.
        """
        return task_of(environment, uri, self.processor, target, self.objective)

    def limited_for(self, environment: Environment, uri: str, target: str | None) -> Task[Any]:
        """Return the task of a program for one of several targets, within the limits of episodes.

        Raises:
            IrgymError: As for `task`, or there is no such action.
        """
        return limited(self.task_for(environment, uri, target), self.limits)

    def bench(self, environment: Environment) -> Bench:
        """Start the bench of an environment.

        Raises:
            IrgymError: The farm's address is malformed, nothing answers there, or the cache cannot be opened.
        """
        return environment.bench(self.farm, self.processor)


@dataclass(frozen=True)
class Searching:
    """Search for a schedule.

    Raises:
        IrgymError: An option makes no sense.
    """

    search: NameOfSearch = None
    """Search strategy, with its options if they are to differ: beam:width=2,order=breadth. By default
    `exhaustive` where costs are exact and there are few programs, else `guided` where there is a policy, else
    `evolutionary`."""
    evaluations: int | None = None
    """Number of distinct candidates to evaluate; the functions of a file share it, as they share the time."""
    resume: bool = False
    """Continue from the schedules found before on this machine; `irgym history` shows them. Time and
    evaluations count from zero."""
    quick: bool = False
    """Without a search, in seconds: take the best schedule found before on this machine or, if there is none,
    the best of the compiler's levels and default schedules, the policy's most probable episode, and a few
    sketches."""
    fixed: bool = True
    """Where an ONNX file leaves sizes open, also look for a result that is fixed to those measured, in 30 %
    of the seconds, and say what it gains; `--export model.onnx` then writes it to model.fixed.onnx."""
    evaluated: Suppress[OnEvaluated | None] = None
    """Called with the candidates that the search evaluates and their costs, such as `SearchTree.add`."""
    started: Suppress[float | None] = None
    """When the whole began, on the monotonic clock, if that was before the call."""

    def __post_init__(self) -> None:
        if self.search is not None:
            search_named(self.search)
        budget(self.evaluations, None)

    def limits(self, seconds: float | None, policy: object) -> Budget:
        """Return the search budget.

        Args:
            seconds: Time for the search.
            policy: Policy that leads it, if one is named.

        Raises:
            IrgymError: The time makes no sense, or options of a search are given beside `quick`.
        """
        given = {
            "evaluations": self.evaluations,
            "seconds": seconds,
            "search": self.search,
            "policy": policy,
            "trace": self.evaluated,
        }
        named = [name for name, option in given.items() if option is not None]
        if self.quick and named:
            raise IrgymError(f"quick takes what there is without a search: leave out {' and '.join(named)}")
        return budget(self.evaluations, seconds, QUICK_SECONDS if self.quick else TUNING_SECONDS)


@dataclass(frozen=True)
class Training:
    """Training of a policy.

    Raises:
        IrgymError: An option makes no sense.
    """

    agent: str | None = None
    """Learning algorithm, such as dqn or trpo, or sb3:NAME of Stable-Baselines3 or sb3-contrib; by default
    the recipe's, or ppo."""
    recipe: str | None = None
    """Set-up of the training by name, such as scratch; other options given take precedence over it."""
    dataset: DatasetNames = None
    """Programs: a name, a list's file, a folder, a glob, a URI or a grid, several joined by +; by default the
    environment's own."""
    holdout: float | None = None
    """Share of test programs, to divide the data set again; by default its splits stay, if any, or 0.1."""
    limit: int | None = None
    """Learn from this many of its training programs, evenly spread; by default from all."""
    iterations: int | None = None
    """Stop after this number of iterations in all; by default the agent's own number."""
    resume: bool = False
    """Continue the run in the folder exactly where its last checkpoint left it."""
    reward: Annotated[str | Reward, _AS_TEXT] = "default"
    """Reward by name, such as dense; one of your own is package.module:Class. Parameters may follow, as in
    throughput:every=1. In Python also a reward itself."""
    observation: str | None = None
    """Observation of the policy: a name, or several separated by commas; by default the environment's."""
    device: str | None = None
    """Device to learn on: cpu, cuda, cuda:N, or auto, the default: CUDA where torch sees it, else the CPU."""
    validate: int | None = None
    """Keep the policy that is best on this many training programs, acting greedily; 0 keeps the newest.
    The default is 0, or the recipe's number.

    Costs drift with the processor's clock, so the best of many validations may only be the luckiest.
    """
    screen: float | None = None
    """Measure only this share of the new programs of an iteration: those that a learned cost model prefers.
    Its predictions reward the others; they are neither recorded nor reported.
    """
    log: str | None = None
    """Loggers, separated by commas: tensorboard, wandb, mlflow, csv, or none; by default tensorboard, where
    it is installed."""
    evaluate_every: int | None = None
    """Evaluate the policy on the test programs after every so many iterations. This changes nothing in what
    is learnt."""
    evaluate_limit: int | None = None
    """Evaluate it on this many test programs, evenly spread; by default on all."""
    snapshot_every: int | None = None
    """Keep a copy of the policy after every so many iterations, in the folder `snapshots`."""
    compare_at_end: float | None = None
    """At the end, compare the policy with the environment's other methods on the test programs; each search
    gets this many seconds for each program, checks included."""
    hyperparameters: Suppress[Mapping[str, Any] | None] = None
    """Hyper-parameters of the agent by name, such as `{"lr": 3e-4}`."""
    loggers: Suppress[Sequence[Any]] = ()
    """Loggers of your own, beside those of `log`: see `irgym.loggers.logger.Logger`."""

    def __post_init__(self) -> None:
        check_options(limit=self.limit, agent=self.agent, recipe=self.recipe)
        check_dataset(self.dataset, self.holdout)
        check_options(observation=self.observation, device=self.device)
        check_count(self.iterations, "iterations", "to train")
        few = f"there are no {self.validate} programs to validate on: give 0 or more"
        check_whole(self.validate, "programs to validate on", 0, few)
        check_number(self.screen, "shares to measure")
        check_count(self.evaluate_every, "iterations", "between evaluations")
        check_count(self.snapshot_every, "iterations", "between snapshots")
        check_seconds(self.compare_at_end, "to search")
        check_options(limit=self.evaluate_limit, log=self.log)
        if self.evaluate_limit is not None and self.evaluate_every is None and self.compare_at_end is None:
            raise IrgymError("--evaluate-limit needs --evaluate-every or --compare-at-end: give one of them")
        check_loggers(self.log, self.loggers)
        if self.screen is not None:
            from irgym.cost_model.screen import check_share  # late: it imports models

            check_share(self.screen)


@dataclass(frozen=True)
class Imitating:
    """Imitation of what searches find.

    Raises:
        IrgymError: An option makes no sense.
    """

    dataset: DatasetNames = None
    """Programs: a name, a list's file, a folder, a glob, a URI or a grid, several joined by +; by default the
    environment's own."""
    holdout: float | None = None
    """Share of test programs, to divide the data set again; by default its splits stay, if any, or 0.1."""
    search: Annotated[str | Strategy, arg(name="search", constructor=str)] = "evolutionary"
    """Search of the first round, with its options if they are to differ: beam:width=2. With `start=FILE`,
    that policy leads a guided search instead."""
    searched: int = 24
    """Number of training programs to search in each round."""
    evaluations: int | None = None
    """Number of distinct candidates of each search. If this is the only budget, a run that was stopped can be
    started again: the cost cache has what it measured."""
    rounds: int = 1
    """Number of rounds. From the second on, the policy of the round before leads the guided search, on other
    programs."""
    recorded: bool = False
    """In the first round, also show the policy the best schedules that the cost cache has of all training
    programs; `--searched` may then be 0."""
    teachers: tuple[str, ...] = ()
    """Policies: in the first round, also show the best of what they do on all training programs; `--searched`
    may then be 0."""
    programs: int = 400
    """Number of training programs that the schedules of the first round are transferred to; 0 for none. With
    `--values`, number of programs to learn from."""
    values: bool = False
    """Learn the value of each action from all schedules of each program, without a search. It suits programs
    with at most a few thousand schedules."""
    device: str | None = None
    """Device to learn on: cpu, cuda, cuda:N, or auto, the default: CUDA where torch sees it, else the CPU."""
    hyperparameters: Suppress[Mapping[str, Any] | None] = None
    """Hyper-parameters of the cloning by name, such as `{"epochs": 100}`."""

    def __post_init__(self) -> None:
        check_dataset(self.dataset, self.holdout)
        check_options(device=self.device)
        if named := search_named(self.search).policy:
            raise IrgymError(
                f"{self.search!r} names a policy: leave it out, and give the hyper-parameter start={named}"
            )
        if self.values:
            check_whole(self.programs, "programs", 1, "give the number of programs to learn from, 1 or more")
            return
        budget(self.evaluations, None)
        if self.searched or not (self.recorded or self.teachers):
            check_options(limit=self.searched)
        check_count(self.rounds, "rounds", "to learn from")
        few = f"schedules cannot be transferred to {self.programs} programs: give 0 or more"
        check_whole(self.programs, "programs", 0, few)


@dataclass(frozen=True)
class Evaluating(Selecting):
    """Evaluation of a trained policy on programs."""

    dataset: DatasetNames = None
    """Programs: a name, a list's file, a folder, a glob, a URI or a grid, several joined by +; by default the
    run's."""
    holdout: float | None = None
    """Share of test programs, to divide the data set again; by default the run's, if the data set is."""


@dataclass(frozen=True)
class Comparing(Selecting):
    """Comparison of methods on the same programs.

    Raises:
        IrgymError: An option makes no sense.
    """

    evaluations: int | None = None
    """Number of distinct candidates for each search on each program."""
    also: tuple[str, ...] = ()
    """Other objectives under which the schedules found are measured too."""
    validation_inputs: int | None = None
    """Number of random inputs on which each result is checked; by default the environment's own number."""
    json: Path | None = None
    """Write the comparison as JSON to this file; it is kept up to date while the comparison runs."""
    run_folder: Path | None = None
    """Also write the comparison into this run folder, for `irgym report`."""
    resume: bool = False
    """Continue with the results in the JSON file, or else in the run folder; start afresh if there are
    none."""

    def __post_init__(self) -> None:
        super().__post_init__()
        budget(self.evaluations, None)
        few = f"{self.validation_inputs} inputs check nothing: give at least 1, or 0 for no checks"
        check_whole(self.validation_inputs, "validation inputs", 0, few)
        texts_of(self.also, "objectives")
        for path, kind in ((self.json, "a file"), (self.run_folder, "a run folder")):
            if path is not None:
                path_of(path, kind)
