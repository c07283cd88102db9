"""`irgym.train` and `irgym.evaluate`: a policy from a data set, and how good it is on other programs."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from irgym.api.checks import (
    check_count,
    check_file,
    check_name,
    check_number,
    check_options,
    check_seconds,
    check_whole,
    path_of,
    targets_named,
)
from irgym.api.hyperparameters import by_name, configured
from irgym.api.programs import environment_named
from irgym.base.errors import IrgymError
from irgym.base.files import lock_for
from irgym.base.json_files import write_json
from irgym.comparing.comparison import ComparisonObserver, ComparisonPlan, run_comparison
from irgym.comparing.results import Comparison
from irgym.comparing.steps import steps_of, write_steps
from irgym.core.catalogue import check_objective, dataset_named, task_of
from irgym.core.environment import Bench, Environment, recipe_of, reward_of, spread
from irgym.core.recipe import Recipe
from irgym.core.reward import Reward
from irgym.core.schedule import Schedule
from irgym.core.task import Task, targets_of
from irgym.cost_model.screen import Screen, check_share
from irgym.judging.targets import machine_text, peak_of
from irgym.policies.run_folder import RunFolder, RunProblem
from irgym.search.budget import Budget
from irgym.search.policies import require_torch

if TYPE_CHECKING:
    from irgym.agents.metrics import Metrics
    from irgym.agents.problem import Problem
    from irgym.networks.policy import TorchPolicy


def train(
    environment: str,
    run: str | Path,
    agent: str | None = None,
    *,
    recipe: str | None = None,
    dataset: str | None = None,
    limit: int | None = None,
    seconds: float | None = None,
    iterations: int | None = None,
    seed: int = 0,
    resume: bool = False,
    objective: str | None = None,
    reward: str = "default",
    observation: str | None = None,
    backend: str | None = None,
    target: str | None = None,
    farm: str | None = None,
    validate: int | None = None,
    screen: float | None = None,
    hyperparameters: Mapping[str, Any] | None = None,
    note: Callable[[str], None] | None = None,
    progress: "Callable[[Metrics], None] | None" = None,
) -> "TorchPolicy":
    """Train a policy on the training programs of a data set; keep metrics and checkpoints in a run folder.

    An interrupt loses only what came after the last checkpoint.

    Args:
        environment: Name of the environment.
        run: Run folder, for checkpoints, metrics (JSON lines, TensorBoard) and the policy.
        agent: Learning algorithm, such as ppo, a2c, dqn or apex; by default the recipe's, or ppo.
        recipe: Name of one of the environment's recipes: what `agent`, `limit`, `validate`, `screen` and
            `hyperparameters` are where they are not given, such as `scratch`.
        dataset: Name of a data set; by default the environment's own.
        limit: Learn from this many of its training programs, evenly spread; by default from all, or from as
            many as the recipe says.
        seconds: Training time after which to stop; the time before a resumption counts too.
        iterations: Number of iterations in all after which to stop; by default the agent's own number.
        seed: Seed of all random choices.
        resume: Continue the run in the folder exactly where its last checkpoint left it.
        objective: What is minimised, such as `time`; by default the environment's own objective.
        reward: Name of one of the environment's rewards.
        observation: Name of what the policy sees; several, separated by commas, are joined; by default the
            environment's own.
        backend: Back end; by default the preferred one that runs here.
        target: What code is made for, such as x86-64-v3 (AVX2); by default this machine. Several, separated
            by commas, are learnt together.
        farm: Where to measure: local:N, dask://HOST:PORT or slurm?workers=N; by default one process here.
        validate: Keep the policy that is best on this many training programs, greedily; 0 keeps the newest.
            By default 0, or as many as the recipe says.
        screen: Measure only this share of the new programs of an iteration: those that a learned cost model
            prefers; its predictions reward the others. By default all are, or the recipe's share.
        hyperparameters: Of the agent, by name, such as `{"lr": 3e-4}`.
        note: Told in a line what is trained, on which machine.
        progress: Told the metrics of each iteration.

    Returns:
        The policy that the run folder keeps.

    Raises:
        IrgymError: Something that is named does not exist or makes no sense; or the folder already holds a
            run, or the run to resume was started with other options.
        DivergedError: A loss, a return or a weight is not finite.
        StorageError: A file cannot be written, or what is resumed is missing or damaged.
        BackendError: torch is not installed.
    """
    check_options(seed=seed, limit=limit, agent=agent, dataset=dataset, farm=farm, reward=reward)
    targets = targets_named(target)
    check_options(objective=objective, backend=backend, observation=observation, recipe=recipe)
    folder = RunFolder(path_of(run, "a run folder"))
    check_name(folder.path)
    check_seconds(seconds, "to train")
    check_count(iterations, "iterations", "to train")
    few = f"there are no {validate} programs to validate on: give 0 or more"
    check_whole(validate, "programs to validate on", 0, few)
    check_number(screen, "shares to measure")
    if screen is not None:
        check_share(screen)
    found = environment_named(environment)
    chosen = _recipe(found, recipe, agent)
    limit = chosen.limit if limit is None else limit
    validate = chosen.validate if validate is None else validate
    screen = chosen.screen if screen is None else screen
    require_torch("training")
    from irgym.agents import AGENTS
    from irgym.agents.training import train as run_training

    programs = dataset_named(found, dataset)
    if not programs.train:
        raise IrgymError(f"the data set {programs.name} has no training programs: choose another")
    learnt = spread(programs.train, limit)
    check_objective(found, objective)
    rewarded = reward_of(found, reward)
    values = {**chosen.hyperparameters, **by_name(hyperparameters, chosen.agent)}
    if observation is not None:
        values["observation"] = observation
    config = configured(AGENTS.load(chosen.agent), values, seed, chosen.agent)
    if bool(validate) != bool(config.validate_every):
        raise IrgymError("validation needs both --validate N and --set validate_every=N: give both or none")
    folder.check(resume)
    if note is not None and folder.cut_off:
        note(folder.cut_off)
    # The reward's scale is part of the problem: a resumed run keeps the one that it began with.
    peaks = folder.problem().peaks if resume else None
    with found.bench(farm, backend) as bench:
        problem = _problem(found, bench, learnt, rewarded, (backend, targets, objective), peaks)
        if note is not None:
            firsts = problem.tasks[: len(targets)]
            machine = "; ".join(dict.fromkeys(machine_text(bench, task) for task in firsts))
            note(f"{chosen.agent} on {len(learnt)} programs of {programs.name}; {machine}")
        return run_training(
            config,
            problem,
            folder.path,
            resume=resume,
            iterations=iterations,
            seconds=seconds,
            progress=progress,
            validation=spread(problem.tasks, validate),
            environment=found.name,
            details={
                "dataset": programs.name,
                "limit": limit,
                "objective": objective,
                "reward": reward,
                "backend": backend,
                "targets": targets_of(problem.tasks),
                "validate": validate,
                "peaks": tuple(problem.peaks.values()),
                "screen": screen,
            },
            screen=None
            if screen is None
            else Screen(bench.evaluator, problem.tasks, screen, seed, problem.families),
        )


def _problem(
    environment: Environment,
    bench: Bench,
    uris: Sequence[str],
    reward: Reward,
    choices: tuple[str | None, Sequence[str | None], str | None],
    peaks: Sequence[float] | None,
) -> "Problem":
    """Return what is learnt.

    Args:
        environment: The programs' environment.
        bench: Where costs are measured.
        uris: The programs; each is learnt for every target.
        reward: What is rewarded.
        choices: Back end, targets and objective; None for the environment's own.
        peaks: The targets' peaks in GFLOP/s, those of a run that is resumed; None to measure them.
    """
    from irgym.agents.problem import Problem, makers_of

    backend, targets, objective = choices
    tasks = [task_of(environment, uri, backend, target, objective) for uri in uris for target in targets]
    if peaks is None:
        peaks = _peaks(bench, tasks[: len(targets)])
    of_target = dict(zip(targets_of(tasks), peaks, strict=False))
    makers = makers_of(environment.name, uris, backend, targets, objective)
    families = {task.uri: environment.family(task.uri) for task in tasks}
    return Problem(tasks, bench.evaluator, reward, of_target, makers, families)


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


def _own_target(problem: RunProblem) -> str | None:
    """Return the target to evaluate a policy on; None for this machine."""
    return problem.targets[0] if len(problem.targets) == 1 else None


def evaluate(
    run: str | Path,
    *,
    split: str = "test",
    dataset: str | None = None,
    limit: int | None = None,
    objective: str | None = None,
    target: str | None = None,
    seed: int = 0,
    farm: str | None = None,
    observer: ComparisonObserver | None = None,
) -> Comparison:
    """Run a trained policy on every program of a split, greedily and without a search.

    The result is never worse than the program as written: it is the best of the final state, the best state
    seen on the way, and the original. The policy's final state as it is, by which to judge it, is a method of
    its own.

    Writes the comparison into the folder, and the schedule of the greatest speedup, step by step.

    Args:
        run: Run folder.
        split: Which programs, `train` or `test`.
        dataset: Name of a data set; by default the run's.
        limit: Only this many programs, evenly spread over the split.
        objective: What is measured, such as `time`; by default the objective that the policy was trained on.
        target: What code is made for; by default the policy's own, or this machine where it has several.
        seed: Seed of the inputs that results are checked on.
        farm: Where to measure: local:N, dask://HOST:PORT or slurm?workers=N; by default one process here.
        observer: Is told of each result and of the progress.

    Returns:
        A comparison with two methods: `policy:FOLDER`, and the raw policy, `raw:FOLDER`.

    Raises:
        IrgymError: Something that is named does not exist or makes no sense.
        StorageError: The folder is no training run, is damaged, or cannot be written.
    """
    check_options(seed=seed, limit=limit, dataset=dataset, split=split, farm=farm)
    check_options(objective=objective, target=target)
    folder = RunFolder(path_of(run, "a run folder"))
    problem = folder.problem()
    check_file(folder.evaluation)
    found = environment_named(problem.environment)
    programs = dataset_named(found, problem.dataset if dataset is None else dataset)
    plan = ComparisonPlan(
        environment=found,
        programs=tuple(spread(programs.split(split), limit)),
        methods=(f"policy:{folder.path}",),
        budget=Budget(evaluations=1),
        seed=seed,
        backend=problem.backend,
        target=_own_target(problem) if target is None else target,
        objective=problem.objective if objective is None else objective,
    )
    check_objective(found, plan.objective)
    with lock_for(folder.evaluation), found.bench(farm, problem.backend) as bench:
        comparison = run_comparison(plan, bench, observer=observer)
        write_json(folder.evaluation, comparison.to_json())
        mine = [row for row in comparison.rows if row.method == plan.methods[0]]
        rows = [row for row in mine if row.speedup is not None]
        best = max(rows, key=lambda row: row.speedup or 0.0, default=None)
        if best is None:  # the policy failed everywhere
            write_steps(folder.steps, [])
        else:
            task = task_of(found, best.program, problem.backend, plan.target, plan.objective)
            schedule = Schedule.parse(best.schedule, task.space)
            write_steps(folder.steps, steps_of(task, bench.evaluator, schedule))
    return comparison
