"""`irgym.tune`, `tune_parts` and `replay`: programs, from their names to results, checked and measured."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from irgym.api.checks import budget, check_options
from irgym.core.capabilities import Counted, ask
from irgym.core.catalogue import locate, task_of
from irgym.core.cost import CostHistory
from irgym.core.environment import DEFAULT, Bench, Environment
from irgym.core.errors import IrgymError, ScheduleError
from irgym.core.policy import Policy
from irgym.core.schedule import Schedule
from irgym.core.task import Task
from irgym.evaluation.finalists import confirm_best
from irgym.evaluation.history import History, Known, best_first
from irgym.evaluation.parts import TunedParts
from irgym.evaluation.patience import Checks, Patience, checks_bound, first_seconds
from irgym.evaluation.policies import can_lead, policy_for, policy_name
from irgym.evaluation.tuned import Original, Search, Tuned, label, tuned
from irgym.evaluation.tuning import Validator, confirm, measure_anew
from irgym.evaluation.units import progress_text
from irgym.search import SEARCHES
from irgym.search.budget import Budget
from irgym.search.result import SearchResult
from irgym.search.session import SearchProgress, needs_policy, run_search

RESUMED = 8
"""Schedules of the past that a search goes on from, the best ones."""

AFRESH = 1_000_003
"""What a seed grows by for each of them, so that a search that goes on draws other candidates."""

PATIENT = 0.3
"""Share of the bound on checks after which nothing more is repeated: what must be done takes its time too."""

FEW = 1024
"""Programs of a task that are searched exhaustively unless told otherwise, where costs are exact."""


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
) -> Tuned:
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
    if quick and not (evaluations is None and seconds is None and search is None and policy is None):
        raise IrgymError(
            "quick takes what was found before, and searches nothing: leave out the search's options"
        )
    limits = budget(evaluations, seconds)
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
    (note or _silent)(f"{uri}: reading the program")
    with home.bench(farm, backend) as bench:
        bench.prepare()
        task = task_of(home, uri, backend, target, objective)
        original = _original(home, program, inputs)
        return _tuned(home, bench, task, search, policy, limits, seed, note, original, resume, quick)


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
) -> TunedParts:
    """Tune each part of a program that has several, such as the functions of a file.

    A part that cannot be tuned costs itself only: the result says why.

    Args:
        program: A URI or a file, such as `cse:code.c`.
        search: As for `tune`, and so are the others.
        policy: What leads the searches.
        seconds: Time for the search of each part.
        evaluations: Number of distinct candidates to evaluate for each part.
        seed: Seed of all random choices.
        objective: What is minimised.
        backend: Back end.
        target: What code is made for.
        farm: Where to measure.
        resume: As for `tune`, for each part.
        quick: As for `tune`, for each part.
        note: Told in a line what is being done.

    Raises:
        IrgymError: What is given makes no sense, the program has no parts, or none can be tuned.
    """
    _check_quick(quick, evaluations, seconds, search, policy)
    limits = budget(evaluations, seconds)
    check_options(seed=seed, search=search, objective=objective, backend=backend, target=target, farm=farm)
    home, uri = locate(program)
    parts = home.parts(uri, target)
    if not parts:
        raise IrgymError(f"{uri} is one program and has no parts: tune it as a whole")
    results: list[Tuned] = []
    failures: dict[str, str] = {}
    with home.bench(farm, backend) as bench:
        for part in parts:
            try:
                task = task_of(home, part, backend, target, objective)
                results.append(
                    _tuned(home, bench, task, search, policy, limits, seed, note, None, resume, quick)
                )
            except IrgymError as error:
                failures[part] = str(error)
    if not results:
        raise IrgymError(f"no part of {uri} can be tuned: {next(iter(failures.values()))}")
    return TunedParts(uri, tuple(results), failures, home)


def _tuned(
    home: Environment,
    bench: Bench,
    task: Task[Any],
    search: str | None,
    policy: str | Path | Policy | None,
    limits: Budget,
    seed: int,
    note: Callable[[str], None] | None,
    original: Original | None = None,
    resume: bool = False,
    quick: bool = False,
) -> Tuned:
    """Return a program after the best schedule; see `tune`."""
    known = best_first(History().of(task, bench.conditions)) if resume or quick else []
    if quick and known:
        return _known(home, bench, task, known[0], seed, note, original)
    name, policy = _choose(home, task, search, policy)
    strategy = SEARCHES.load(name)()
    leader = None if policy is None else policy_for(home, policy, task)
    led_by = None if policy is None else policy_name(policy)
    said = label(name, led_by)
    tell = note or _silent
    tell(f"{task.uri}: evaluating it as written")
    evaluator = bench.evaluator
    started, bounds = time.monotonic(), list[float]()
    validator = Validator(bench, home.validation_inputs, seed)
    if not task.objective.timed:  # nothing that goes on beside the search disturbs it
        validator.prepare(task)

    def searching(progress: SearchProgress) -> None:
        if not bounds:
            [first] = evaluator.evaluate([task.job(task.initial())])
            first_s = max(time.monotonic() - started, first_seconds(task, first))
            bounds.append(checks_bound(task, progress.first_cost, first_s))
        last = f"then checks, at most {bounds[0]:.0f} s"
        tell(f"{task.uri}: {said}, {progress_text(progress, task.objective)}, {last}")

    earlier = [Schedule.parse(one.schedule, task.space) for one in known[:RESUMED]]
    drawn = seed if not earlier else seed + AFRESH * len(known)
    found = run_search(
        strategy, task, evaluator, limits, drawn, leader, ask(evaluator, CostHistory), searching, earlier
    )
    if not found.finalists:
        failure = measure_anew(bench, task, task.initial())
        raise IrgymError(f"{task.uri} cannot be run here: {failure.outcome.value} {failure.detail}".rstrip())
    tell(f"{task.uri}: checking and evaluating the best of {found.evaluations} candidates")
    [bound_s] = bounds
    patience = Patience(PATIENT * bound_s)
    finding = confirm_best(home, bench, task, found, validator, patience)
    described = Search(name, led_by, found.evaluations, found.seconds, found.complete)
    result = tuned(home, bench, task, finding, described, original)
    late_s = max(0.0, found.seconds - limits.seconds) if limits.seconds is not None else 0.0
    took_s = time.monotonic() - patience.started + late_s
    result = replace(result, checks=Checks(took_s, bound_s))
    History().add(result, bench.conditions)
    return result


def _known(
    home: Environment,
    bench: Bench,
    task: Task[Any],
    known: Known,
    seed: int,
    note: Callable[[str], None] | None,
    original: Original | None,
) -> Tuned:
    """Return a program after a schedule that was found before, measured and checked anew."""
    (note or _silent)(f"{task.uri}: checking and evaluating what was found on {known.date}")
    validator = Validator(bench, home.validation_inputs, seed)
    schedule = Schedule.parse(known.schedule, task.space)
    result = SearchResult(schedule, (schedule,), known.cost, known.cost_as_written, 0, 0.0, ())
    finding = confirm_best(home, bench, task, result, validator)
    return tuned(home, bench, task, finding, None, original)


def history(
    program: object,
    *inputs: Any,
    environment: str | None = None,
    objective: str | None = None,
    backend: str | None = None,
    target: str | None = None,
    farm: str | None = None,
) -> list[Known]:
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
    home, uri = locate(program, inputs, environment)
    task = task_of(home, uri, backend, target, objective)
    with home.bench(farm, backend) as bench:
        return History().of(task, bench.conditions)


def _check_quick(quick: bool, *others: object) -> None:
    """Make sure that nobody asks for a search and for none.

    Args:
        quick: Whether what was found before is wanted.
        others: What is said of a search.

    Raises:
        IrgymError: Both are asked for.
    """
    if quick and any(one is not None for one in others):
        raise IrgymError(
            "quick takes what was found before, without a search: leave out the search's options"
        )


def _silent(_: str) -> None:
    """Say nothing."""


def _original(home: Environment, program: object, inputs: Sequence[Any]) -> Original | None:
    """Return the object that a program was made of; None where it was named."""
    named = isinstance(program, str | os.PathLike)
    return None if named else Original(program, inputs, home)


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
) -> Tuned:
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
    with home.bench(farm, backend) as bench:
        bench.prepare()
        task = task_of(home, uri, backend, target, objective)
        actions = Schedule.parse(schedule, task.space)
        validator = Validator(bench, home.validation_inputs, seed)
        finding = confirm(home, bench, task, actions, validator)
        return tuned(home, bench, task, finding, None, _original(home, program, inputs))


def _choose(
    environment: Environment, task: Task[Any], search: str | None, policy: str | Path | Policy | None
) -> tuple[str, str | Path | Policy | None]:
    """Return the search and the policy to use; the result says which were chosen.

    Raises:
        IrgymError: There is no such search, or it takes no policy although one is given.
    """
    led = search is not None and needs_policy(SEARCHES.load(search)())
    if policy is not None and search is not None and not led:
        raise IrgymError(f"the search {search} takes no policy: choose guided or rollout")
    if policy is not None or led:
        return search or "guided", DEFAULT if policy is None else policy
    counted = ask(task, Counted)
    if search is None and task.objective.exact and counted is not None and counted.programs() <= FEW:
        return "exhaustive", None
    if search is None and can_lead(environment, task):
        return "guided", DEFAULT
    return search or "evolutionary", None
