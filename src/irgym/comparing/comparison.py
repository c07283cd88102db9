"""Running methods side by side on the same programs: what `irgym compare` and `irgym evaluate` do."""

import datetime
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from irgym.base.errors import IrgymError, UnsuitedPolicyError
from irgym.base.json_files import write_json
from irgym.comparing.basis import Basis, basis_of
from irgym.comparing.method_names import MethodName, parse_method, policy_of, with_raw
from irgym.comparing.methods import Conditions, Method, Outcome
from irgym.comparing.policy_methods import Unsuited
from irgym.comparing.reference_costs import ReferenceCosts
from irgym.comparing.results import Comparison, Trace
from irgym.comparing.rows import Row, like
from irgym.core.bench import Bench
from irgym.core.catalogue import task_of
from irgym.core.environment import Environment
from irgym.core.limits import UNLIMITED, Limits, limited
from irgym.core.objective import Objective
from irgym.core.schedule import Candidate
from irgym.core.task import Task
from irgym.judging.targets import machine_text
from irgym.judging.validator import Validator
from irgym.policies.policy import Policy
from irgym.search.budget import Budget
from irgym.search.naming import search_named
from irgym.search.policies import Policies, PolicyFiles

OPTIONS = (
    "objective",
    "also",
    "backend",
    "target",
    "seconds",
    "evaluations",
    "seed",
    "validation_inputs",
    "horizon",
    "actions",
)
"""The settings that a user chooses."""


@dataclass(frozen=True)
class ComparisonPlan:
    """Plan of a comparison.

    Attributes:
        environment: Where the programs come from.
        programs: URIs.
        methods: As `parse_method` reads them; `policy:NAME` brings `raw:NAME` with it.
        budget: What each search may spend on each program; the time includes its checks.
        seed: Seed of all random choices.
        backend: Back end of the environment; None for the preferred one.
        target: Name of the target; None for this machine.
        objective: What is minimised; None for the tasks' own.
        also: Other objectives under which the schedules that are found are measured too.
        validation_inputs: Number of random inputs on which results are checked, 0 for no checks; None for the
            environment's own number.
        limits: Limits of the episodes of searches and policies, which take precedence over the policies'.
    """

    environment: Environment
    programs: tuple[str, ...]
    methods: tuple[MethodName, ...]
    budget: Budget
    seed: int = 0
    backend: str | None = None
    target: str | None = None
    objective: str | None = None
    also: tuple[str, ...] = ()
    validation_inputs: int | None = None
    limits: Limits = UNLIMITED


class ComparisonObserver:
    """Sees how a comparison gets on; override what is of interest."""

    def progress(self, program: str, method: str) -> None:
        """See which method runs next, and on which program."""

    def evaluated(
        self, task: Task[Any], method: str, nodes: Sequence[Candidate], costs: Sequence[float]
    ) -> None:
        """See the candidates that a search evaluated, and their costs."""

    def record(self, comparison: Comparison) -> None:
        """See all results so far, after each run, so that they can be kept."""

    def note(self, text: str) -> None:
        """See in a sentence how many of the earlier results are computed again, and why."""


class Recorder(ComparisonObserver):
    """Keeps all results so far in files, and tells another observer of everything.

    Args:
        places: Files for the JSON.
        observer: The other observer.
    """

    def __init__(self, places: Sequence[Path], observer: ComparisonObserver) -> None:
        self._places = places
        self._observer = observer

    def progress(self, program: str, method: str) -> None:
        """Tell the other observer."""
        self._observer.progress(program, method)

    def evaluated(
        self, task: Task[Any], method: str, nodes: Sequence[Candidate], costs: Sequence[float]
    ) -> None:
        """Tell the other observer."""
        self._observer.evaluated(task, method, nodes, costs)

    def record(self, comparison: Comparison) -> None:
        """Write the files, and tell the other observer."""
        for place in self._places:
            write_json(place, comparison.to_json())
        self._observer.record(comparison)

    def note(self, text: str) -> None:
        """Tell the other observer."""
        self._observer.note(text)


def run_comparison(
    plan: ComparisonPlan,
    bench: Bench,
    policies: Policies | None = None,
    observer: ComparisonObserver | None = None,
    done: Comparison | None = None,
) -> Comparison:
    """Run every method on every program.

    A method that fails on a program, be it by a bug, gets a row that says why; the rest goes on. So it does
    where a policy suits no program, unless no method is left.

    Args:
        plan: What to compare.
        bench: Where programs are measured.
        policies: Where policies are found; by default those that ship and those in files.
        observer: Sees how it gets on.
        done: Results of an earlier run with the same options, which are not computed again. Failures are, and
            so are results of another basis, such as another machine or version of irgym.

    Raises:
        IrgymError: There are no programs, or a program, method, objective or policy does not exist, or `done`
            was computed with other options.
        UnsuitedPolicyError: All methods need policies, and none suits the programs.
    """
    environment, observer = plan.environment, observer or ComparisonObserver()
    if not plan.programs or not plan.methods:
        raise IrgymError("there is nothing to compare: name at least one program and one method")
    others = [environment.objective(name) for name in dict.fromkeys(plan.also)]
    named = (task_of(environment, uri, plan.backend, plan.target, plan.objective) for uri in plan.programs)
    tasks = list({task.uri: task for task in named}.values())  # a program that is named twice counts once
    loaded = _Loaded(policies or PolicyFiles(environment), tasks[0])
    chosen = _methods(plan, loaded)
    others = [other for other in others if other != tasks[0].objective]
    inputs = environment.validation_inputs if plan.validation_inputs is None else plan.validation_inputs
    validator = Validator(bench, inputs, plan.seed)
    limited(tasks[0], plan.limits)  # refuses actions that do not exist
    conditions = Conditions(environment, bench, plan.budget, plan.seed, validator, limits=plan.limits)
    settings = _settings(conditions, tasks[0], others, plan.backend)
    running = _Running(
        conditions, settings, observer, loaded, machine_text(bench, tasks[0]), tasks[0].objective
    )
    if done is not None:
        left_out = running.take_over(done, tasks, chosen)
        if left_out:
            observer.note(left_out)
    for task in tasks:
        reference_costs: ReferenceCosts | None = None
        for method in chosen:
            if running.has(task, method):
                continue
            observer.progress(task.uri, method.name)
            conditions = replace(
                conditions,
                tell=partial(_tell, observer, task, method),
                evaluated=partial(observer.evaluated, task, method.name),
            )
            reference_costs = reference_costs or ReferenceCosts(
                environment, bench, task, [other.name for other in others]
            )
            running.add(task, method, _attempt(method, conditions, task), reference_costs)
    whole = running.results([(task.uri, method.name) for task in tasks for method in chosen])
    observer.record(whole)
    return whole


def _tell(observer: ComparisonObserver, task: Task[Any], method: Method, text: str) -> None:
    """Tell an observer how a method gets on."""
    observer.progress(task.uri, f"{method.name}, {text}")


class _Loaded:
    """The policies that were loaded, all for tasks like the first one.

    Attributes:
        digests: Of each policy, by name; none of one that changed while it was loaded.
    """

    def __init__(self, policies: Policies, task: Task[Any]) -> None:
        self.digests: dict[str, str] = {}
        self._policies = policies
        self._task = task
        self._loaded: dict[str, Policy] = {}

    def load(self, name: str) -> Policy:
        """Return the policy of a name."""
        if name not in self._loaded:
            self._loaded[name] = self._read(name)
        return self._loaded[name]

    def _read(self, name: str) -> Policy:
        before = self._policies.identify(name, self._task)
        policy = self._policies.load(name, self._task)
        if before is not None and self._policies.identify(name, self._task) == before:
            self.digests[name] = before
        return policy


def _methods(plan: ComparisonPlan, policies: _Loaded) -> list[Method]:
    """Return the methods of a plan; one whose policy does not suit fails when it runs.

    Raises:
        IrgymError: There is no such method or policy.
        UnsuitedPolicyError: No method is left.
    """
    chosen: list[Method] = []
    for method in with_raw(plan.methods):
        try:
            chosen.append(parse_method(method, plan.environment, policies.load))
        except UnsuitedPolicyError as error:
            name = method if isinstance(method, str) else search_named(method).name
            chosen.append(Unsuited(name, str(error)))
    unsuited = [method for method in chosen if isinstance(method, Unsuited)]
    if len(unsuited) == len(chosen):
        raise UnsuitedPolicyError(unsuited[0].reason)
    return chosen


@dataclass(frozen=True)
class _Running:
    """The rows so far, by program and method."""

    conditions: Conditions
    settings: dict[str, Any]
    observer: ComparisonObserver
    policies: _Loaded
    machine: str
    objective: Objective
    rows: dict[tuple[str, str], Row] = field(default_factory=dict[tuple[str, str], Row])
    traces: dict[tuple[str, str], Trace] = field(default_factory=dict[tuple[str, str], Trace])

    def take_over(self, done: Comparison, tasks: Sequence[Task[Any]], methods: Sequence[Method]) -> str:
        """Begin with those results of an earlier run that this one would come to.

        Returns:
            How many are left out of those that are wanted here, and why; empty where all are taken.

        Raises:
            IrgymError: The earlier run had other options.
        """
        _expect(done, self.conditions.environment.name, self.settings)
        wanted = {(task.uri, method.name): (task, method) for task in tasks for method in methods}
        earlier = [row for row in done.rows if row.cost is not None and (row.program, row.method) in wanted]
        reasons: dict[str, None] = {}
        for row in earlier:
            task, method = wanted[row.program, row.method]
            basis = self._basis(task, method)
            differences = basis.differences(row.basis)
            if policy_of(method) and not basis.policy:
                differences.append("policies that cannot be told apart")
            if not differences:
                self.rows[row.program, row.method] = row
            reasons |= dict.fromkeys(differences)
        for trace in done.traces:
            if (trace.program, trace.method) in self.rows:
                self.traces[trace.program, trace.method] = trace
        if self.rows:
            self.settings["baseline"] = done.settings.get("baseline", "")
        count = len(earlier) - len(self.rows)
        if not count:
            return ""
        return f"{count} of {len(earlier)} earlier results are of {', '.join(reasons)}, and computed again"

    def _basis(self, task: Task[Any], method: Method) -> Basis:
        policy = self.policies.digests.get(policy_of(method), "")
        return basis_of(self.conditions.environment, self.conditions.bench, task, policy)

    @property
    def _baseline(self) -> str | None:
        """The baseline that results are timed in turn with, if there is one."""
        return self.conditions.environment.reference_baseline if self.objective.timed else None

    def has(self, task: Task[Any], method: Method) -> bool:
        """Say whether a row is there already."""
        return (task.uri, method.name) in self.rows

    def add(self, task: Task[Any], method: Method, outcome: Outcome, reference_costs: ReferenceCosts) -> None:
        """Add what a method made of a program, and let it be kept."""
        for result in (outcome, outcome.raw):
            if result is not None:
                tied = replace(result, row=like(result.row, self.rows.values(), self._baseline))
                row = replace(reference_costs.complete(tied), basis=self._basis(task, method))
                self.rows[row.program, row.method] = row
        if outcome.trace is not None:
            self.traces[outcome.row.program, outcome.row.method] = outcome.trace
        self.settings["baseline"] = self.settings["baseline"] or outcome.baseline
        self.observer.record(self.results(list(self.rows)))

    def results(self, order: Sequence[tuple[str, str]]) -> Comparison:
        """Return the rows in an order of programs and methods."""
        environment = self.conditions.environment
        return Comparison(
            environment=environment.name,
            baseline=self._baseline,
            rows=tuple(self.rows[key] for key in order),
            traces=tuple(self.traces[key] for key in order if key in self.traces),
            machine=self.machine,
            settings=dict(self.settings),
        )


def _attempt(method: Method, conditions: Conditions, task: Task[Any]) -> Outcome:
    """Return the outcome of a method on a program; of a failure, even by a bug in it, a row that says why."""
    try:
        return method.solve(conditions, task)
    except IrgymError as error:
        detail = str(error)
    except Exception as error:  # noqa: BLE001 (a method of whoever's making; the row tells it, and others go on)
        detail = _bug(error)
    return Outcome(Row(task.uri, method.name, None, None, None, None, None, False, detail=detail))


def _bug(error: Exception) -> str:
    """Return in one sentence what went wrong, and where."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    lines = str(error).splitlines() or ["no reason given"]
    reason = lines[0] if len(lines) == 1 else f"{lines[0]} {lines[-1]}"  # between them is another traceback
    where = f"{Path(place.filename).name}, line {place.lineno}"
    return f"it has a bug: {type(error).__name__} in {where} ({reason}); report it to whoever wrote it"


def _settings(
    conditions: Conditions, task: Task[Any], also: Sequence[Objective], backend: str | None
) -> dict[str, Any]:
    """Return what the numbers depend on, beside the machine."""
    environment = conditions.environment
    return {
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "objective": task.objective.name,
        "objectives": [asdict(objective) for objective in (task.objective, *also)],
        "reference": environment.reference(task.objective),
        "also": [objective.name for objective in also],
        "backend": backend,
        "target": None if task.target is None else task.target.name,
        "seconds": conditions.budget.seconds,
        "evaluations": conditions.budget.evaluations,
        "seed": conditions.seed,
        "validation_inputs": conditions.validator.inputs,
        "horizon": conditions.limits.horizon,
        "actions": conditions.limits.actions,
        "baseline": "",
    }


def _expect(done: Comparison, environment: str, settings: dict[str, Any]) -> None:
    """Make sure that earlier results were computed with the same options."""
    wanted = {"environment": environment, **{name: settings[name] for name in OPTIONS}}
    found = {"environment": done.environment, **done.settings}
    for name in wanted:
        if wanted[name] != found.get(name):
            raise IrgymError(
                f"the results to resume have {name} = {found.get(name)}, not {wanted[name]}: "
                "resume them with the options that they were begun with"
            )
