"""`tune` from a task to its result: the search, then the checks.

`irgym.api.tuning` imports this late, when the processes that it needs have started: they import meanwhile.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from irgym.base.errors import IrgymError, ScheduleError
from irgym.core.capabilities import Counted, ask
from irgym.core.cost import CostHistory, Evaluator
from irgym.core.environment import DEFAULT, Bench, Environment
from irgym.core.schedule import Schedule
from irgym.core.task import Task
from irgym.judging.finalists import confirm_best
from irgym.judging.history import History, Known, best_first
from irgym.judging.patience import Checks, Patience, checks_bound, first_seconds
from irgym.judging.tuned import Original, Search, Tuned, label, tuned
from irgym.judging.tuning import Finding, Validator, confirm, default_schedules, measure_anew
from irgym.judging.units import progress_text
from irgym.policies.policy import Policy
from irgym.search import SEARCHES
from irgym.search.budget import Budget
from irgym.search.policies import can_lead, policy_for, policy_name
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


@dataclass(frozen=True)
class How:
    """What is wanted of a search; see `tune`."""

    search: str | None
    policy: str | Path | Policy | None
    limits: Budget
    seed: int
    resume: bool
    quick: bool
    tell: Callable[[str], None]


def tune_task(
    home: Environment, bench: Bench, task: Task[Any], how: How, original: Original | None = None
) -> Tuned:
    """Return a program after the best schedule; see `tune`."""
    past = History().of(task, bench.conditions) if how.resume or how.quick else []
    known = _readable(past, task, how)
    validator = Validator(bench, home.validation_inputs, how.seed)
    if how.quick and known:
        how.tell(f"{task.uri}: checking and evaluating what was found before")
        result = SearchResult(known[0], (known[0],), math.inf, math.inf, 0, 0.0, ())
        finding = confirm_best(home, bench, task, result, validator)
        return tuned(home, bench, task, _called(original, task, finding, how.seed), None, original)
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
    complete = found.complete and not finding.left_out and not finding.rejected
    described = Search(name, led_by, found.evaluations, found.seconds, complete)
    result = tuned(home, bench, task, _called(original, task, finding, how.seed), described, original)
    late_s = 0.0 if how.limits.seconds is None else max(0.0, found.seconds - how.limits.seconds)
    took_s = time.monotonic() - patience.started + late_s
    result = replace(result, checks=Checks(took_s, watch.bound_s))
    History().add(result, bench.conditions)
    return result


def replay_task(
    home: Environment,
    bench: Bench,
    task: Task[Any],
    schedule: str,
    seed: int,
    tell: Callable[[str], None],
    original: Original | None,
) -> Tuned:
    """Return a program after a schedule; see `replay`."""
    actions = Schedule.parse(schedule, task.space)
    validator = Validator(bench, home.validation_inputs, seed)
    tell(f"{task.uri}: checking and evaluating the schedule")
    finding = confirm(home, bench, task, actions, validator)
    return tuned(home, bench, task, _called(original, task, finding, seed), None, original)


def _called(original: Original | None, task: Task[Any], finding: Finding, seed: int) -> Finding:
    """Return a finding, confirmed by calls too where the program was made of an object."""
    return finding if original is None else original.confirmed(task, finding, seed)


class _Watch:
    """Tells where a search stands, and how long the checks after it will take at most.

    Attributes:
        bound_s: That bound, known once the program as written has been evaluated.
    """

    def __init__(self, task: Task[Any], evaluator: Evaluator, said: str, how: How) -> None:
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


def _readable(past: Sequence[Known], task: Task[Any], how: How) -> list[Schedule]:
    """Return the schedules of the past, the best first, and tell of those whose actions are no more."""
    schedules: list[Schedule] = []
    for one in best_first(past):
        try:
            schedules.append(Schedule.parse(one.schedule, task.space))
        except ScheduleError as error:
            how.tell(f"{task.uri}: what irgym {one.version} found on {one.date} is left out ({error})")
    return schedules


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
