"""`irgym.tune`, `tune_parts` and `replay`: programs, from their names to results, checked and measured.

What comes after the start of processes is in `task_tuning`, which is imported while they import theirs.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from irgym.api.checks import budget, check_options
from irgym.base.errors import IrgymError, ScheduleError
from irgym.core.catalogue import locate, task_of
from irgym.core.environment import Environment
from irgym.policies.policy import Policy
from irgym.search.budget import Budget, SharedBudget

if TYPE_CHECKING:
    from irgym.judging.history import Known
    from irgym.judging.parts import TunedParts
    from irgym.judging.tuned import Original, Tuned


def tune(
    program: object,
    *inputs: Any,
    environment: str | None = None,
    search: str | None = None,
    policy: str | Path | Policy | None = None,
    seconds: float | None = None,
    evaluations: int | None = None,
    seed: int = 0,
    objective: str | None = None,
    backend: str | None = None,
    target: str | None = None,
    farm: str | None = None,
    resume: bool = False,
    quick: bool = False,
    note: Callable[[str], None] | None = None,
) -> "Tuned":
    """Find the best schedule for a program, check its results, and say how good it is.

    Args:
        program: A URI such as `loops://mm/128x128x128`, the path of a file, or an object: a torch module or a
            JAX function, with `inputs`.
        inputs: What an object is called with; only shapes and types of elements matter.
        environment: Name of the environment that is to take an object; a torch module goes to `graph` unless
            `linalg` is named.
        search: Name of a search; by default `exhaustive` where costs are exact and there are few programs,
            else `guided` where there is a policy, else `evolutionary`.
        policy: What leads the search: a policy, the name of one that ships (`default`), or a run folder.
        seconds: Time for the search; 10 where neither this nor the number of evaluations is given.
        evaluations: Number of distinct candidates to evaluate.
        seed: Seed of all random choices.
        objective: What is minimised, such as `time`; by default the environment's own objective.
        backend: Back end; by default the preferred one that runs here.
        target: What code is made for, such as x86-64-v3 (AVX2); by default this machine.
        farm: Where to measure: local:N, dask://HOST:PORT or slurm?workers=N; by default one process here.
        resume: Go on from what was found before on this machine: those schedules come first, costs that were
            recorded are not measured again, and the search draws other candidates than it did then.
        quick: Take the best schedule that was found before, without a search where there is one. It is
            measured and checked anew.
        note: Told in a line what is being done.

    Returns:
        The program after the best schedule, measured anew. That of a torch module is called in its place.

    Raises:
        IrgymError: The program, or something else that is given, does not exist or makes no sense; or the
            program cannot be run here, or the result is wrong.
    """
    limits = _limits(evaluations, seconds, quick, search, policy)
    check_options(
        seed=seed,
        search=search,
        environment=environment,
        objective=objective,
        backend=backend,
        target=target,
        farm=farm,
    )
    home, uri = locate(program, inputs, environment)
    tell = note or _say_nothing
    tell(f"{uri}: reading the program")
    with home.bench(farm, backend) as bench:
        bench.prepare()
        from irgym.api.task_tuning import How, tune_task

        how = How(search, policy, limits, seed, resume, quick, tell)
        task = task_of(home, uri, backend, target, objective)
        return tune_task(home, bench, task, how, _original(home, program, inputs))


def tune_parts(
    program: str | Path,
    *,
    search: str | None = None,
    policy: str | Path | Policy | None = None,
    seconds: float | None = None,
    evaluations: int | None = None,
    seed: int = 0,
    objective: str | None = None,
    backend: str | None = None,
    target: str | None = None,
    farm: str | None = None,
    resume: bool = False,
    quick: bool = False,
    note: Callable[[str], None] | None = None,
    done: "Callable[[TunedParts], None] | None" = None,
) -> "TunedParts":
    """Tune each part of a program that has several, such as the functions of a file.

    A part that cannot be tuned costs itself only: the result says why. Time and evaluations are for all parts
    together. Each part gets an equal share of what those before it have left, but for its checks.

    Args:
        program: A URI or a file, such as `cse:code.c`.
        search: As for `tune`, and so are the others.
        policy: What leads the searches.
        seconds: Time for the searches of all parts.
        evaluations: Number of distinct candidates to evaluate for all parts.
        seed: Seed of all random choices.
        objective: What is minimised.
        backend: Back end.
        target: What code is made for.
        farm: Where to measure.
        resume: As for `tune`, for each part.
        quick: As for `tune`, for each part.
        note: Told in a line what is being done.
        done: Told after each part what was found so far.

    Raises:
        IrgymError: What is given makes no sense, the program has no parts, or none can be tuned.
    """
    limits = _limits(evaluations, seconds, quick, search, policy)
    check_options(seed=seed, search=search, objective=objective, backend=backend, target=target, farm=farm)
    home, uri = locate(program)
    parts = home.parts(uri, target)
    if not parts:
        raise IrgymError(f"{uri} is one program and has no parts: tune it as a whole")
    from irgym.api.task_tuning import How, tune_task
    from irgym.judging.parts import TunedParts

    how = How(search, policy, limits, seed, resume, quick, note or _say_nothing)
    left = SharedBudget(limits, len(parts))
    results: list[Tuned] = []
    failures: dict[str, str] = {}
    with home.bench(farm, backend) as bench:
        for part in parts:
            try:
                task = task_of(home, part, backend, target, objective)
                result = tune_task(home, bench, task, replace(how, limits=left.share()))
            except IrgymError as error:
                failures[part] = str(error)
                left.spend()
                continue
            results.append(result)
            left.spend(
                *(0, 0.0) if result.search is None else (result.search.evaluations, result.search.seconds)
            )
            if done is not None:
                done(TunedParts(uri, tuple(results), dict(failures), home))
    if not results:
        raise IrgymError(f"no part of {uri} can be tuned: {next(iter(failures.values()))}")
    return TunedParts(uri, tuple(results), failures, home)


def _limits(evaluations: int | None, seconds: float | None, quick: bool, *others: object) -> Budget:
    """Return what a search may spend.

    Args:
        evaluations: Number of candidates.
        seconds: Time.
        quick: Whether what was found before is wanted instead.
        others: What else is said of a search.

    Raises:
        IrgymError: The limits make no sense, or a search is wanted and not wanted.
    """
    if quick and any(one is not None for one in (evaluations, seconds, *others)):
        raise IrgymError(
            "quick takes what was found before, without a search: leave out the search's options"
        )
    return budget(evaluations, seconds)


def history(
    program: object,
    *inputs: Any,
    environment: str | None = None,
    objective: str | None = None,
    backend: str | None = None,
    target: str | None = None,
    farm: str | None = None,
) -> "list[Known]":
    """Return what `tune` found for a program on this machine, the oldest first.

    Args:
        program: As for `tune`, and so are the other arguments.
        inputs: What an object is called with.
        environment: Name of the environment that is to take an object.
        objective: What was minimised.
        backend: Back end.
        target: What code was made for.
        farm: Where it was measured.

    Raises:
        IrgymError: As for `tune`; or the record cannot be read.
    """
    check_options(environment=environment, objective=objective, backend=backend, target=target, farm=farm)
    from irgym.judging.history import History

    home, uri = locate(program, inputs, environment)
    task = task_of(home, uri, backend, target, objective)
    with home.bench(farm, backend) as bench:
        return History().of(task, bench.conditions)


def _say_nothing(text: str) -> None:
    """Do not say what is being done: nobody wants to know."""


def _original(home: Environment, program: object, inputs: Sequence[Any]) -> "Original | None":
    """Return the object that a program was made of; None where it was named."""
    if isinstance(program, str | os.PathLike):
        return None
    from irgym.judging.tuned import Original

    return Original(program, inputs, home)


def replay(
    program: object,
    schedule: str,
    *inputs: Any,
    environment: str | None = None,
    seed: int = 0,
    objective: str | None = None,
    backend: str | None = None,
    target: str | None = None,
    farm: str | None = None,
    note: Callable[[str], None] | None = None,
) -> "Tuned":
    """Apply a schedule to a program, check its results and measure it.

    Args:
        program: As for `tune`, and so are the other arguments.
        schedule: What `Tuned.schedule` says: actions separated by blanks; empty for the program as written.
        inputs: What an object is called with.
        environment: Name of the environment that is to take an object.
        seed: Seed of the inputs that results are checked on.
        objective: What is measured.
        backend: Back end.
        target: What code is made for.
        farm: Where to measure.
        note: Told in a line what is being done.

    Returns:
        The program after the schedule.

    Raises:
        ScheduleError: The schedule does not parse, or an action does not apply.
        IrgymError: As for `tune`.
    """
    check_options(
        seed=seed, environment=environment, objective=objective, backend=backend, target=target, farm=farm
    )
    if not isinstance(schedule, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ScheduleError(f"a schedule is a text, not {schedule!r}: give what `Tuned.schedule` says")
    home, uri = locate(program, inputs, environment)
    tell = note or _say_nothing
    tell(f"{uri}: reading the program")
    with home.bench(farm, backend) as bench:
        bench.prepare()
        from irgym.api.task_tuning import replay_task

        task = task_of(home, uri, backend, target, objective)
        return replay_task(home, bench, task, schedule, seed, tell, _original(home, program, inputs))
