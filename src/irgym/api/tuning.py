"""`irgym.tune`: a program, from its name to its checked and measured result.

Everything that takes time to import is imported late, once the processes that measure have started: they
import meanwhile.
"""

import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from irgym.api.checks import check_options
from irgym.api.inputs import Inputs, Sizes, named_with
from irgym.api.modules import as_called
from irgym.api.requests import Measuring, Searching, checked
from irgym.base.errors import IrgymError, ScheduleError
from irgym.core.bench import Bench
from irgym.core.capabilities import ask
from irgym.core.catalogue import locate
from irgym.core.cost import CostHistory
from irgym.core.environment import Environment
from irgym.core.limits import kept, limited, within
from irgym.core.task import Task
from irgym.judging.plan import SHARE
from irgym.policies.policy import Policy
from irgym.search.budget import Budget

if TYPE_CHECKING:
    from irgym.core.schedule import Schedule
    from irgym.judging.history import Known
    from irgym.judging.original import Original
    from irgym.judging.plan import Plan
    from irgym.judging.result import Tuned
    from irgym.judging.validator import Validator
    from irgym.search.choosing import ChosenSearch
    from irgym.search.result import SearchResult

RESUMED = 8
"""Number of past schedules, the best ones, that a resumed search starts with."""

AFRESH = 1_000_003
"""Increment of the seed for each past result, so that a resumed search draws other candidates."""

FEW = 10
"""Candidates that a search should try at least: if time is too short for them, a note says so."""

Note = Callable[[str], None]


def tune(
    program: object,
    *arguments: Any,
    inputs: Inputs | None = None,
    sizes: Sizes | None = None,
    environment: str | None = None,
    policy: str | Path | Policy | None = None,
    seconds: float | None = None,
    seed: int = 0,
    searching: Searching = Searching(),
    measuring: Measuring = Measuring(),
    note: Note | None = None,
    **keywords: Any,
) -> "Tuned":
    """Find the best schedule for a program, check its results, and compare it with the original.

    Args:
        program: A URI such as `loops://mm/128x128x128`, the path of a file, or an object: a torch module or a
            JAX function, with `arguments`.
        arguments: Arguments of an object; only shapes and types of elements matter. A torch module takes
            nested ones, and plain values, which stay as they are.
        inputs: Inputs of a program in a file that is called with inputs by name, such as an ONNX model:
            arrays by name, a list of such samples, or an .npz file or a folder of them. It is measured on the
            first sample and checked on all of them, before random inputs within their ranges.
        sizes: Sizes of open dimensions at which a file's program is measured, such as `{"batch": 8}`; or a
            list of several, `[({"batch": 1}, 0.7), ({"batch": 8}, 0.3)]`, each with the share of the calls
            that have them, or all without: then the mean time of a call is minimised.
        environment: Name of the environment that is to take an object; a torch module goes to `graph` unless
            `linalg` is named.
        policy: Policy that leads the search: a policy, the name of one that ships (`default`), or a run
            folder.
        seconds: Time of the whole, checks included; 20 where neither this nor the number of evaluations is
            given, 8 if it is to be quick. If the program is so slow that it takes longer, a warning on
            standard error says so.
        seed: Seed of all random choices.
        searching: Options of the search.
        measuring: Objective, back end, target and farm.
        note: Called with a line of text when something new begins.
        keywords: Keyword inputs of a torch module; or `example_inputs`, a tuple, a dict, or a list of several
            of them. Sizes that differ between examples stay open.

    Returns:
        The program after the best schedule, measured again. That of a torch module is called in its place.
        An interrupt during the search ends the search alone, and one during the checks gives the best that is
        validated so far: see `Tuned.interrupted`. A second one is raised.

    Raises:
        IrgymError: The program, or something else that is given, does not exist or makes no sense; or the
            program cannot be run here, or the result is wrong.
    """
    limits = checked(searching, Searching).limits(seconds, policy)
    started = time.monotonic() if searching.started is None else searching.started
    check_options(seed=seed, environment=environment)
    program, arguments = as_called(named_with(program, inputs, sizes), arguments, keywords)
    home, uri = locate(program, arguments, environment)
    tell = note or say_nothing
    job = Tuning(home, checked(measuring, Measuring), searching, limits, policy, seed, tell, started)
    job.note(f"{uri}: reading the program")
    with job.bench() as bench:
        bench.prepare()
        return job.tune(bench, uri, original_of(home, program, arguments))


@dataclass(frozen=True)
class Tuning:
    """A search and the checks after it, for any program of an environment; see `tune`.

    Attributes:
        environment: Where programs come from.
        measuring: Objective, back end, target and farm.
        searching: Options of the search.
        limits: Limits of the search's evaluations, and of the time of the whole.
        policy: Policy that leads it; None to choose.
        seed: Seed of all random choices.
        note: Called with a line of text when something new begins.
        started: When the whole began, on the monotonic clock.
        checking: Share of the time left after evaluating the original program that checks get.
    """

    environment: Environment
    measuring: Measuring
    searching: Searching
    limits: Budget
    policy: str | Path | Policy | None
    seed: int
    note: Note
    started: float = field(default_factory=time.monotonic)
    checking: float = SHARE

    def bench(self) -> Bench:
        """Start the bench."""
        return self.measuring.bench(self.environment)

    def tune(self, bench: Bench, uri: str, original: "Original | None" = None) -> "Tuned":
        """Return a program after the best schedule.

        Args:
            bench: Where the program is measured.
            uri: The program.
            original: The object that the program was made of.

        Raises:
            IrgymError: The program cannot be run here, or something that is named does not exist.
        """
        from irgym.judging.history import History
        from irgym.judging.validator import Validator

        task = self.measuring.task(self.environment, uri)
        past = History().of(task, bench.conditions) if self.searching.resume or self.searching.quick else []
        named = limited(task, self.measuring.limits)
        known = [schedule for schedule in self._readable(past, task) if within(named, schedule)]
        validator = Validator(bench, self.environment.validation_inputs, self.seed)
        if self.searching.quick and known:
            return self._known_best(bench, task, known[0], validator, original)
        result = self.searched(bench, task, known[:RESUMED], len(past), validator, original)
        if not (result.interrupted and result.no_gain):
            History().add(result, bench.conditions)
        return result

    def _known_best(
        self,
        bench: Bench,
        task: Task[Any],
        schedule: "Schedule",
        validator: "Validator",
        original: "Original | None",
    ) -> "Tuned":
        """Return the program after a schedule of the past."""
        from irgym.core.schedule import candidate_of
        from irgym.judging.judge import Judge
        from irgym.judging.result import judged
        from irgym.search.result import SearchResult

        patience = self._plan(bench, task, validator).patience()
        self.note(f"{task.uri}: checking and evaluating the best known schedule")
        judge = Judge(self.environment, bench, task, validator, patience)
        found = SearchResult((candidate_of(task, schedule),), math.inf, math.inf, 0, 0.0, ())
        return judged(judge, found, original)

    def from_now(self, now: float, searching: Searching, limits: Budget, checking: float) -> "Tuning":
        """Return the same within other limits, from now on, on the monotonic clock."""
        return replace(self, searching=searching, limits=limits, checking=checking, started=now)

    def searched(
        self,
        bench: Bench,
        task: Task[Any],
        known: "Sequence[Schedule]",
        resumed: int,
        validator: "Validator",
        original: "Original | None",
    ) -> "Tuned":
        """Search, choose among the finalists, and check.

        Args:
            bench: Where the program is measured.
            task: The program.
            known: Schedules of the past to start with.
            resumed: Number of past results.
            validator: Compares results with the original's.
            original: The object that the program was made of.
        """
        from irgym.api.fixing import fixing_of
        from irgym.judging.judge import Judge
        from irgym.judging.patience import Checks
        from irgym.judging.progress import Progress
        from irgym.judging.reference import default_schedules, pipeline_schedules
        from irgym.judging.result import Search, judged
        from irgym.search.policies import limited_as
        from irgym.search.request import SearchRequest
        from irgym.search.run import run_search

        named = limited(task, self.measuring.limits)
        chosen = self._chosen(named)
        within = limited_as(named, chosen.policy)
        fixing = fixing_of(self, task, self._plan(bench, task, validator), original is not None)
        plan = fixing.plan
        progress = Progress(task, chosen.label, plan.checks_s, self.note)
        seed = self.seed + AFRESH * resumed
        pipelines = pipeline_schedules if self.searching.quick else default_schedules
        own = pipelines(self.environment, task)
        # What was found before comes first: few evaluations are then enough to find it again.
        known = [kept(within, schedule) for schedule in (*known, *own)]
        past = ask(bench.evaluator, CostHistory)
        limits = Budget(self.limits.evaluations, plan.search_s)
        request = SearchRequest(
            limits, seed, chosen.policy, past, progress, self.searching.evaluated, known, stoppable=True
        )
        found = run_search(chosen.strategy, within, bench.evaluator, request)
        self._expect_finalists(bench, task, found)
        if found.interrupted:
            print("irgym: interrupted: what was found is checked; interrupt again to stop", file=sys.stderr)
        self.note(f"{task.uri}: checking and evaluating the best of {found.evaluations} candidates")
        patience = plan.patience(hurried=found.interrupted)
        judge = Judge(self.environment, bench, task, validator, patience)
        result = judged(judge, found, original)
        complete = found.complete and not (result.left_out or result.rejected or result.interrupted)
        counts = found.evaluations, found.seconds, complete, found.interrupted
        search = Search(chosen.name, chosen.policy_name, *counts)
        checks = Checks(time.monotonic() - patience.started, plan.checks_s)
        result = replace(result, search=search, checks=checks)
        return fixing.beside(self, bench, result, found.interrupted or bool(result.interrupted))

    def _chosen(self, task: Task[Any]) -> "ChosenSearch":
        """Return the search to use, and the policy that leads it."""
        from irgym.search.choosing import chosen_search
        from irgym.search.quick import quick_search

        if self.searching.quick:
            return quick_search(self.environment, task)
        evaluations = self.limits.evaluations
        return chosen_search(self.environment, task, self.searching.search, self.policy, evaluations)

    def _plan(self, bench: Bench, task: Task[Any], validator: "Validator") -> "Plan":
        """Evaluate the original program, which tells how long checks take, and divide the time."""
        from irgym.judging.plan import measured_plan

        self.note(f"{task.uri}: evaluating the original program")
        limits = self.limits.seconds, self.started, self.checking
        plan = measured_plan(task, bench.evaluator, validator.prepare, *limits)
        if plan.overrun:
            print(f"irgym: {plan.overrun}", file=sys.stderr)
        elif plan.search_s is not None and plan.candidate_s > plan.search_s / FEW:
            self.note(
                f"{task.uri}: the original takes {plan.candidate_s:.1f} s to compile and run, so the search "
                "may try few candidates: more --seconds, or --farm local:N, try more"
            )
        return plan

    def _expect_finalists(self, bench: Bench, task: Task[Any], found: "SearchResult") -> None:
        """Make sure that a search found something that runs.

        Raises:
            IrgymError: Nothing does, the original program neither.
        """
        from irgym.judging.trials import Trials

        if not found.finalists:
            original = Trials(bench, task).measure(task.initial())
            raise IrgymError(f"{task.uri} cannot be run here: {original.failure}")

    def _readable(self, past: "Sequence[Known]", task: Task[Any]) -> "list[Schedule]":
        """Return the schedules of the past, the best first; note those with actions that no longer exist."""
        from irgym.core.schedule import Schedule
        from irgym.judging.history import best_first

        schedules: list[Schedule] = []
        for known in best_first(past):
            try:
                schedules.append(Schedule.parse(known.schedule, task.space))
            except ScheduleError as error:
                self.note(
                    f"{task.uri}: the result of irgym {known.version} on {known.date} is left out ({error})"
                )
        return schedules


def say_nothing(text: str) -> None:
    """Ignore a note."""


def original_of(home: Environment, program: object, arguments: Sequence[Any]) -> "Original | None":
    """Return the object that a program was made of; None for a URI or a file."""
    if isinstance(program, str | os.PathLike):
        return None
    from irgym.judging.original import Original

    return Original(program, arguments, home)
