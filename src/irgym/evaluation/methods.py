"""The methods of a comparison: the program as written, default schedules, searches, policies, baselines."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from irgym.core import capabilities
from irgym.core.environment import Bench, Environment, Versus
from irgym.core.errors import BaselineError, IrgymError
from irgym.core.policy import Policy
from irgym.core.schedule import Schedule
from irgym.core.task import Task
from irgym.evaluation.finalists import confirm_best
from irgym.evaluation.results import Trace
from irgym.evaluation.rows import BASE, Row
from irgym.evaluation.targets import of_baseline
from irgym.evaluation.tuning import Finding, Validator, confirm, measure_anew
from irgym.search import SEARCHES
from irgym.search.budget import Budget
from irgym.search.session import Strategy, needs_policy, run_search
from irgym.search.strategies.rollout import candidates, outcome, rollout

PEER_TIMEOUT_S = 900.0
"""What a baseline may take for a program, its own tuning included."""


@dataclass(frozen=True)
class Conditions:
    """What all methods of a comparison have in common.

    Attributes:
        environment: Where the programs come from.
        bench: Where they are measured.
        budget: What a search may spend on a program.
        seed: Seed of searches and of the inputs that results are checked on.
        validator: Checks results.
    """

    environment: Environment
    bench: Bench
    budget: Budget
    seed: int
    validator: Validator


@dataclass(frozen=True)
class Outcome:
    """What a method made of a program, and how.

    Attributes:
        row: The result.
        trace: The course of a search.
        baseline: What the reference baseline ran on, where it was timed in turn with the result.
        state: The task's state that the row is about; None where it is about none.
    """

    row: Row
    trace: Trace | None = None
    baseline: str = ""
    state: Any = None


class Method(Protocol):
    """A way to make programs fast."""

    @property
    def name(self) -> str:
        """Name in tables."""
        ...

    def solve(self, conditions: Conditions, task: Task[Any]) -> Outcome:
        """Make a program fast, check the result and measure it.

        Raises:
            IrgymError: The method failed on this program.
        """
        ...


@dataclass(frozen=True)
class AsWritten:
    """Leaves the program as it is: what speedups refer to."""

    name: str = BASE

    def solve(self, conditions: Conditions, task: Task[Any]) -> Outcome:
        """Check and measure the program."""
        finding = _confirm(conditions, task, Schedule())
        return _outcome(self.name, task, finding, seconds=0.0, evaluations=0, speedup=1.0)


@dataclass(frozen=True)
class Pipelined:
    """The compiler's own default schedule."""

    name: str

    def solve(self, conditions: Conditions, task: Task[Any]) -> Outcome:
        """Find out what the schedule comes to on the program, check and measure it."""
        started = time.perf_counter()
        schedule = capabilities.pipeline(task, self.name)
        seconds = time.perf_counter() - started
        return _outcome(self.name, task, _confirm(conditions, task, schedule), seconds, evaluations=0)


@dataclass(frozen=True)
class Searched:
    """A search, led by a policy or not; the finalists are measured anew and the best of them reported."""

    name: str
    strategy: Strategy
    policy: Policy | None = None

    def solve(self, conditions: Conditions, task: Task[Any]) -> Outcome:
        """Search, choose among the finalists, check and measure."""
        bench = conditions.bench
        result = run_search(
            self.strategy, task, bench.evaluator, conditions.budget, conditions.seed, self.policy
        )
        if not result.finalists:
            raise IrgymError(f"none of {result.evaluations} candidates ran, not even the program as written")
        finding = confirm_best(conditions.environment, bench, task, result, conditions.validator)
        points = tuple((point.evaluations, point.seconds, point.cost) for point in result.trace)
        trace = Trace(task.uri, self.name, points, result.seconds)
        return _outcome(self.name, task, finding, result.seconds, result.evaluations, trace=trace)


@dataclass(frozen=True)
class RolledOut:
    """A policy's most probable episode, without any search: its final state.

    Where states know their costs, as with op counts, the result is the best state of that one episode.
    """

    name: str
    policy: Policy

    def solve(self, conditions: Conditions, task: Task[Any]) -> Outcome:
        """Roll out, check and measure; the time is that of inference and of one compilation."""
        started = time.perf_counter()
        [path] = rollout(task, self.policy, 1, None)
        inference_s = time.perf_counter() - started
        node = outcome(task, path)
        final = measure_anew(conditions.bench, task, node.state)
        finding = _confirm(conditions, task, node.schedule)
        jobs = {job.schedule: job for job in (task.job(one.state) for one in candidates(task, path))}
        seen = [measurement.cost for measurement in conditions.bench.evaluator.evaluate(list(jobs.values()))]
        return _outcome(
            self.name,
            task,
            finding,
            inference_s + final.compile_s,
            evaluations=0,
            best_seen=min(finding.cost, *seen),
        )


@dataclass(frozen=True)
class BaselineMethod:
    """Another library or compiler that computes the same program."""

    name: str

    def solve(self, conditions: Conditions, task: Task[Any]) -> Outcome:
        """Check the baseline and time it in turn with the program as written."""
        known = {baseline.name: baseline for baseline in conditions.environment.baselines()}
        if not task.objective.timed and not known[self.name].any_objective:
            raise IrgymError(
                f"{self.name} can only be timed, so it has no {task.objective.name}: leave it out"
            )
        reference = conditions.environment.reference_baseline if task.objective.timed else None
        started = time.perf_counter()
        versus = _against_written(conditions, self.name, task)
        seconds = time.perf_counter() - started
        speedup = 1.0 / versus.ratio
        ratio, detail = None, versus.detail
        if reference is not None:
            try:
                same = self.name == reference
                written = versus if same else _against_written(conditions, reference, task)
                ratio = 1.0 if same else written.ratio * speedup
            except BaselineError as error:
                detail = str(error)
        row = Row(task.uri, self.name, versus.baseline_ns, speedup, ratio, seconds, None, True, detail=detail)
        return Outcome(row)


def _against_written(conditions: Conditions, baseline: str, task: Task[Any]) -> Versus:
    """Return timings of a baseline in turn with the program as written."""
    call = capabilities.baseline_call(task, baseline, task.initial())
    versus: Versus = conditions.bench.call(call, PEER_TIMEOUT_S)
    return of_baseline(versus, task, call)


def _confirm(conditions: Conditions, task: Task[Any], schedule: Schedule) -> Finding:
    return confirm(conditions.environment, conditions.bench, task, schedule, conditions.validator)


def _outcome(
    method: str,
    task: Task[Any],
    finding: Finding,
    seconds: float,
    evaluations: int,
    speedup: float | None = None,
    best_seen: float | None = None,
    trace: Trace | None = None,
) -> Outcome:
    gained = finding.speedup if speedup is None else speedup
    row = Row(
        program=task.uri,
        method=method,
        cost=finding.cost,
        speedup=gained if 0.0 < gained < math.inf else None,
        baseline_ratio=finding.baseline_ratio,
        seconds=seconds,
        evaluations=evaluations,
        validated=finding.validated,
        schedule=finding.actions.text(task.space),
        best_seen=best_seen,
        peak_share=finding.peak_share,
        detail=finding.no_gain or finding.no_baseline,
        not_checkable="" if finding.validation is None else finding.validation.blind,
    )
    versus = finding.versus
    baseline = f"{versus.detail}; {len(versus.ratios)} rounds" if versus else ""
    return Outcome(row, trace, baseline, finding.state)


def policy_of(method: Method) -> str:
    """Return the name of the policy that decides or leads in a method; empty where none does."""
    led = isinstance(method, RolledOut) or (isinstance(method, Searched) and method.policy is not None)
    return method.name.partition(":")[2] if led else ""


def parse_method(text: str, environment: Environment, load_policy: Callable[[str], Policy]) -> Method:
    """Return the method that a text names.

    Args:
        text: `base`, a default schedule or a baseline of the environment, a search, `policy:NAME` (a policy
            without search) or `SEARCH:NAME` (a search led by a policy), NAME being a policy that ships or a
            run folder.
        environment: Where the programs come from.
        load_policy: Returns the policy of a name.

    Raises:
        IrgymError: There is no such method or policy.
    """
    name, colon, policy = text.partition(":")
    baselines = [baseline.name for baseline in environment.baselines()]
    pipelines = [pipeline.name for pipeline in environment.pipelines()]
    if text == BASE:
        return AsWritten()
    if text in pipelines:
        return Pipelined(text)
    if text in baselines:
        return BaselineMethod(text)
    if colon and not policy:
        raise IrgymError(
            f"{text!r} names no policy: write {text}NAME with a policy that ships, or a run folder"
        )
    if name == "policy" and colon:
        return RolledOut(text, load_policy(policy))
    if name not in SEARCHES.names():
        known = [BASE, *pipelines, *SEARCHES.names(), "policy:NAME", "guided:NAME", *baselines]
        raise IrgymError(f"there is no method {text!r}: choose among {', '.join(known)}")
    strategy = SEARCHES.load(name)()
    if needs_policy(strategy) and not colon:
        raise IrgymError(
            f"{text!r} needs a policy: write {text}:NAME with a policy that ships, or a run folder"
        )
    if colon and not needs_policy(strategy):
        raise IrgymError(f"the search {name} takes no policy: write {name}, or guided:{policy}")
    return Searched(text, strategy, load_policy(policy) if colon else None)
