"""Running methods side by side on the same programs: what `irgym compare` and `irgym evaluate` do."""

import datetime
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from irgym.core.environment import Bench, Environment, objective_of
from irgym.core.errors import IrgymError
from irgym.core.objective import Objective
from irgym.core.policy import Policy
from irgym.core.task import Task
from irgym.evaluate.basis import Basis, basis_of
from irgym.evaluate.methods import Conditions, Method, Outcome, parse_method, policy_of
from irgym.evaluate.reference_costs import ReferenceCosts
from irgym.evaluate.results import Comparison, Trace
from irgym.evaluate.rows import Row
from irgym.evaluate.targets import machine_text
from irgym.evaluate.tuning import Validator
from irgym.search.session import Budget

OPTIONS = ("objective", "also", "backend", "target", "seconds", "evaluations", "seed", "validation_inputs")
"""The settings that a user chooses."""

Record = Callable[[Comparison], None]


def run_comparison(
    environment: Environment,
    bench: Bench,
    uris: Sequence[str],
    methods: Sequence[str],
    budget: Budget,
    seed: int,
    load_policy: Callable[[str, Task[Any]], Policy],
    progress: Callable[[str, str], None] | None = None,
    backend: str | None = None,
    objective: str | None = None,
    also: Sequence[str] = (),
    inputs: int | None = None,
    record: Record | None = None,
    done: Comparison | None = None,
    identify: Callable[[str], str] | None = None,
    note: Callable[[str], None] | None = None,
    target: str | None = None,
) -> Comparison:
    """Run every method on every program.

    A method that fails on a program, be it by a bug, gets a row that says why; the rest goes on.

    Args:
        environment: Where the programs come from.
        bench: Where they are measured.
        uris: The programs.
        methods: Texts as `parse_method` reads them.
        budget: What each search may spend on each program.
        seed: Seed of all random choices.
        load_policy: Returns the policy of a name that suits a task.
        progress: Called with program and method before each run.
        backend: Back end of the environment; by default the preferred one.
        objective: What is minimised; by default the tasks' own.
        also: Other objectives under which the schedules that are found are measured too.
        inputs: Random inputs on which results are checked, 0 for no checks; by default the environment's.
        record: Called with all results so far after each run, so that they can be kept.
        done: Results of an earlier run with the same options, which are not computed again. Failures are, and
            so are results of another basis, such as another machine or version of irgym.
        identify: Returns a digest of the policy of a name; without it what policies did is always computed.
        note: Told in a sentence how many of the earlier results are computed again, and why.
        target: Name of what code is made for; by default this machine.

    Raises:
        IrgymError: There are no programs, or a program, method, objective or policy does not exist, or `done`
            was computed with other options.
    """
    if not uris or not methods:
        raise IrgymError("there is nothing to compare: name at least one program and one method")
    tasks = [environment.task(uri, backend, target, objective) for uri in uris]
    policies = _Policies(identify, lambda name: load_policy(name, tasks[0]))
    chosen = [parse_method(text, environment, policies.load) for text in dict.fromkeys(methods)]
    others = [name for name in dict.fromkeys(also) if name != tasks[0].objective.name]
    validator = Validator(bench, environment.validation_inputs if inputs is None else inputs, seed)
    conditions = Conditions(environment, bench, budget, seed, validator)
    settings = _settings(conditions, tasks[0], [objective_of(environment, name) for name in others], backend)
    course = _Course(
        conditions, settings, record, policies, machine_text(bench, tasks[0]), tasks[0].objective
    )
    if done is not None:
        left_out = course.take_over(done, tasks, chosen)
        if left_out and note is not None:
            note(left_out)
    for task in tasks:
        reference_costs: ReferenceCosts | None = None
        for method in chosen:
            if course.has(task, method):
                continue
            if progress is not None:
                progress(task.uri, method.name)
            reference_costs = reference_costs or ReferenceCosts(environment, bench, task, others)
            course.add(task, method, _attempt(method, conditions, task), reference_costs)
    return course.results([(task.uri, method.name) for task in tasks for method in chosen])


class _Policies:
    """Loads each policy once, and tells what was loaded.

    Attributes:
        digests: Of each policy loaded, by name; none of one that changed while it was loaded.
    """

    def __init__(self, identify: Callable[[str], str] | None, load: Callable[[str], Policy]) -> None:
        self.digests: dict[str, str] = {}
        self._identify = identify
        self._load = load
        self._loaded: dict[str, Policy] = {}

    def load(self, name: str) -> Policy:
        """Return the policy of a name."""
        if name not in self._loaded:
            self._loaded[name] = self._anew(name)
        return self._loaded[name]

    def _anew(self, name: str) -> Policy:
        if self._identify is None:
            return self._load(name)
        before = self._identify(name)
        policy = self._load(name)
        if self._identify(name) == before:
            self.digests[name] = before
        return policy


class _Course:
    """The rows so far, by program and method."""

    def __init__(
        self,
        conditions: Conditions,
        settings: dict[str, Any],
        record: Record | None,
        policies: "_Policies",
        machine: str,
        objective: Objective,
    ) -> None:
        self._conditions = conditions
        self._machine = machine
        self._objective = objective
        self._settings = settings
        self._record = record
        self._rows: dict[tuple[str, str], Row] = {}
        self._traces: dict[tuple[str, str], Trace] = {}
        self._policies = policies

    def take_over(self, done: Comparison, tasks: Sequence[Task[Any]], methods: Sequence[Method]) -> str:
        """Begin with those results of an earlier run that this one would come to.

        Returns:
            How many are left out of those that are wanted here, and why; empty where all are taken.

        Raises:
            IrgymError: The earlier run had other options.
        """
        _expect(done, self._conditions.environment.name, self._settings)
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
                self._rows[row.program, row.method] = row
            reasons |= dict.fromkeys(differences)
        self._traces = {
            (trace.program, trace.method): trace
            for trace in done.traces
            if (trace.program, trace.method) in self._rows
        }
        if self._rows:
            self._settings["baseline"] = done.settings.get("baseline", "")
        count = len(earlier) - len(self._rows)
        if not count:
            return ""
        return f"{count} of {len(earlier)} earlier results are of {', '.join(reasons)}, and computed anew"

    def _basis(self, task: Task[Any], method: Method) -> Basis:
        policy = self._policies.digests.get(policy_of(method), "")
        return basis_of(self._conditions.environment, self._conditions.bench, task, policy)

    def has(self, task: Task[Any], method: Method) -> bool:
        """Say whether a row is there already."""
        return (task.uri, method.name) in self._rows

    def add(self, task: Task[Any], method: Method, outcome: Outcome, reference_costs: ReferenceCosts) -> None:
        """Add what a method made of a program, and let it be kept."""
        row = replace(reference_costs.complete(outcome), basis=self._basis(task, method))
        self._rows[row.program, row.method] = row
        if outcome.trace is not None:
            self._traces[row.program, row.method] = outcome.trace
        self._settings["baseline"] = self._settings["baseline"] or outcome.baseline
        if self._record is not None:
            self._record(self.results(list(self._rows)))

    def results(self, order: Sequence[tuple[str, str]]) -> Comparison:
        """Return the rows in an order of programs and methods."""
        environment = self._conditions.environment
        return Comparison(
            environment=environment.name,
            baseline=environment.reference_baseline if self._objective.timed else None,
            rows=tuple(self._rows[key] for key in order),
            traces=tuple(self._traces[key] for key in order if key in self._traces),
            machine=self._machine,
            settings=dict(self._settings),
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
        "objectives": [asdict(one) for one in (task.objective, *also)],
        "reference": environment.reference_pipeline,
        "also": [one.name for one in also],
        "backend": backend,
        "target": None if task.target is None else task.target.name,
        "seconds": conditions.budget.seconds,
        "evaluations": conditions.budget.evaluations,
        "seed": conditions.seed,
        "validation_inputs": conditions.validator.inputs,
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
