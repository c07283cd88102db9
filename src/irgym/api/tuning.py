"""`irgym.tune`, `tune_parts` and `replay`: programs, from their names to results, checked and measured."""

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from irgym.api.checks import budget, check_options
from irgym.core.capabilities import Counted, ask
from irgym.core.catalogue import locate, task_of
from irgym.core.cost import CostHistory, Evaluator
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
from irgym.evaluation.tuning import Validator, confirm, default_schedules, measure_anew
from irgym.evaluation.units import progress_text
from irgym.search import SEARCHES
from irgym.search.budget import Budget
from irgym.search.result import SearchResult
from irgym.search.session import SearchProgress, needs_policy, run_search

RESUMED = 8
"""Schedules of the past that a search goes on from, the best ones."""

AFRESH = 1_000_003
"""What a seed grows by for each result of the past, so that a search that goes on draws other candidates."""

MANY = 10
"""Candidates that a search should try at least: where time is short for them, it says so."""

PATIENT = 0.2
"""Share of the bound on checks after which nothing more is repeated: what must be done takes its time too."""

REPEATED = 0.5
"""Share of the time for the search after which nothing more is repeated, either."""

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
    how = _How(
        search, policy, _limits(evaluations, seconds, quick, search, policy), seed, resume, quick, note
    )
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
    how.tell(f"{uri}: reading the program")
    with home.bench(farm, backend) as bench:
        bench.prepare()
        task = task_of(home, uri, backend, target, objective)
        return _tuned(home, bench, task, how, _original(home, program, inputs))


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
    how = _How(
        search, policy, _limits(evaluations, seconds, quick, search, policy), seed, resume, quick, note
    )
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
                results.append(_tuned(home, bench, task, how))
            except IrgymError as error:
                failures[part] = str(error)
    if not results:
        raise IrgymError(f"no part of {uri} can be tuned: {next(iter(failures.values()))}")
    return TunedParts(uri, tuple(results), failures, home)


@dataclass(frozen=True)
class _How:
    """What is wanted of a search; see `tune`."""

    search: str | None
    policy: str | Path | Policy | None
    limits: Budget
    seed: int
    resume: bool
    quick: bool
    note: Callable[[str], None] | None

    def tell(self, text: str) -> None:
        """Say what is being done, to whoever wants to know."""
        if self.note is not None:
            self.note(text)


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


def _tuned(
    home: Environment, bench: Bench, task: Task[Any], how: _How, original: Original | None = None
) -> Tuned:
    """Return a program after the best schedule; see `tune`."""
    past = History().of(task, bench.conditions) if how.resume or how.quick else []
    known = _readable(past, task, how)
    validator = Validator(bench, home.validation_inputs, how.seed)
    if how.quick and known:
        how.tell(f"{task.uri}: checking and evaluating what was found before")
        result = SearchResult(known[0], (known[0],), math.inf, math.inf, 0, 0.0, ())
        return tuned(home, bench, task, confirm_best(home, bench, task, result, validator), None, original)
    name, policy = _choose(home, task, how.search, how.policy)
    strategy = SEARCHES.load(name)()
    leader = None if policy is None else policy_for(home, policy, task)
    led_by = None if policy is None else policy_name(policy)
    how.tell(f"{task.uri}: evaluating it as written")
    begun = [*default_schedules(home, task), *known[:RESUMED]]
    if not task.objective.timed:  # nothing that goes on beside the search disturbs it
        validator.prepare(task)
    watch = _Watch(task, bench.evaluator, label(name, led_by), how)
    found = run_search(
        strategy,
        task,
        bench.evaluator,
        how.limits,
        how.seed + AFRESH * len(past),
        leader,
        ask(bench.evaluator, CostHistory),
        watch,
        begun,
    )
    if not found.finalists:
        failure = measure_anew(bench, task, task.initial())
        raise IrgymError(f"{task.uri} cannot be run here: {failure.outcome.value} {failure.detail}".rstrip())
    how.tell(f"{task.uri}: checking and evaluating the best of {found.evaluations} candidates")
    patience = Patience(min(PATIENT * watch.bound_s, REPEATED * (how.limits.seconds or math.inf)))
    finding = confirm_best(home, bench, task, found, validator, patience)
    described = Search(name, led_by, found.evaluations, found.seconds, found.complete)
    result = tuned(home, bench, task, finding, described, original)
    late_s = 0.0 if how.limits.seconds is None else max(0.0, found.seconds - how.limits.seconds)
    took_s = time.monotonic() - patience.started + late_s
    result = replace(result, checks=Checks(took_s, watch.bound_s))
    History().add(result, bench.conditions)
    return result


class _Watch:
    """Tells where a search stands, and how long the checks after it will take at most.

    Attributes:
        bound_s: That bound, known once the program as written has been evaluated.
    """

    def __init__(self, task: Task[Any], evaluator: Evaluator, said: str, how: _How) -> None:
        self.bound_s = 0.0
        self._task = task
        self._evaluator = evaluator
        self._said = said
        self._how = how
        self._started = time.monotonic()

    def __call__(self, progress: SearchProgress) -> None:
        """Tell."""
        if not self.bound_s:
            first_s = time.monotonic() - self._started
            if math.isfinite(progress.first_cost):  # how long that took is recorded with the cost
                [first] = self._evaluator.evaluate([self._task.job(self._task.initial())])
                candidate_s = first_seconds(self._task, first)
                first_s = max(first_s, candidate_s)
                if candidate_s > (self._how.limits.seconds or math.inf) / MANY:
                    self._how.tell(
                        f"{self._task.uri}: as written it takes {candidate_s:.1f} s to compile and run, so "
                        "the search may try few candidates: more --seconds, or --farm local:N, try more"
                    )
            self.bound_s = checks_bound(self._task, progress.first_cost, first_s)
        last = f"then checks, at most {self.bound_s:.0f} s"
        self._how.tell(
            f"{self._task.uri}: {self._said}, {progress_text(progress, self._task.objective)}, {last}"
        )


def _readable(past: Sequence[Known], task: Task[Any], how: _How) -> list[Schedule]:
    """Return the schedules of the past, the best first, and tell of those whose actions are no more."""
    schedules: list[Schedule] = []
    for one in best_first(past):
        try:
            schedules.append(Schedule.parse(one.schedule, task.space))
        except ScheduleError as error:
            how.tell(f"{task.uri}: what irgym {one.version} found on {one.date} is left out ({error})")
    return schedules


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
    note: Callable[[str], None] | None = None,
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
    tell: Callable[[str], None] = note or (lambda text: None)
    tell(f"{uri}: reading the program")
    with home.bench(farm, backend) as bench:
        bench.prepare()
        task = task_of(home, uri, backend, target, objective)
        actions = Schedule.parse(schedule, task.space)
        validator = Validator(bench, home.validation_inputs, seed)
        tell(f"{uri}: checking and evaluating the schedule")
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
