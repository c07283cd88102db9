"""The methods of a comparison: the original program, default schedules, searches, baselines."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from irgym.base.errors import BaselineError, IrgymError, WrongResultsError
from irgym.comparing.results import Trace
from irgym.comparing.rows import BASE, Row
from irgym.core import capabilities
from irgym.core.baseline import TIMEOUT_S, Baseline, Versus
from irgym.core.bench import Bench
from irgym.core.cost import Afresh, Evaluator
from irgym.core.environment import Environment
from irgym.core.limits import UNLIMITED, Limits, kept, limited
from irgym.core.schedule import candidate_of
from irgym.core.task import Task
from irgym.judging.finding import Finding
from irgym.judging.judge import Judge
from irgym.judging.patience import ENDLESS, Patience
from irgym.judging.plan import Plan, measured_plan
from irgym.judging.reference import default_schedules
from irgym.judging.validator import Validator
from irgym.policies.policy import Policy
from irgym.search.budget import Budget
from irgym.search.policies import limited_as
from irgym.search.request import SearchRequest
from irgym.search.run import run_search
from irgym.search.strategy import Strategy
from irgym.search.tree import OnEvaluated


@dataclass(frozen=True)
class Conditions:
    """Conditions that all methods of a comparison share.

    Attributes:
        environment: Where the programs come from.
        bench: Where they are measured.
        budget: What a search may spend on a program; the time is that of the search and of its checks.
        seed: Seed of searches and of the inputs that results are checked on.
        validator: Checks results.
        tell: Called with a line of text on how a long method gets on.
        evaluated: Called with the candidates that a search evaluates and their costs.
        limits: Limits of the episodes of searches and policies.
    """

    environment: Environment
    bench: Bench
    budget: Budget
    seed: int
    validator: Validator
    tell: Callable[[str], None] | None = None
    evaluated: OnEvaluated | None = None
    limits: Limits = UNLIMITED

    def limited(self, task: Task[Any], policy: Policy | None) -> Task[Any]:
        """Return a task within the limits of the comparison, or else of a policy."""
        return limited_as(limited(task, self.limits), policy)

    @property
    def evaluator(self) -> Evaluator:
        """The evaluator of one search on one program.

        With a limit on time, no search gets the costs that others have measured: the last of several would
        try more candidates than the first.
        """
        remembering = capabilities.ask(self.bench.evaluator, Afresh)
        if self.budget.seconds is None or remembering is None:
            return self.bench.evaluator
        return remembering.afresh()

    def plan(self, task: Task[Any], evaluator: Evaluator, started: float) -> Plan | None:
        """Return how the time of a search and its checks is divided; None if it is not limited.

        Args:
            task: The program; the original is evaluated.
            evaluator: Source of its cost.
            started: When the method began, on the monotonic clock.
        """
        if self.budget.seconds is None:
            return None
        plan = measured_plan(task, evaluator, self.validator.prepare, self.budget.seconds, started)
        if plan.overrun and self.tell is not None:
            self.tell(plan.overrun)
        return plan

    def judge(self, task: Task[Any], patience: Patience = ENDLESS) -> Judge:
        """Return the judge of a program."""
        return Judge(self.environment, self.bench, task, self.validator, patience)


@dataclass(frozen=True)
class Outcome:
    """Result of a method on a program, and how it was found.

    Attributes:
        row: The result.
        trace: The course of a search.
        baseline: What the reference baseline ran on, where it was timed in turn with the result.
        state: The task's state that the row is about; None where it is about none.
        raw: What the method's `RawPolicy` made of the program, where that is known with it.
    """

    row: Row
    trace: Trace | None = None
    baseline: str = ""
    state: Any = None
    raw: "Outcome | None" = None


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
        judge = conditions.judge(task)
        outcome = outcome_of(self.name, task, judge.confirm(judge.original), seconds=0.0, evaluations=0)
        return replace(outcome, row=replace(outcome.row, speedup=1.0))


@dataclass(frozen=True)
class Pipelined:
    """The compiler's own default schedule."""

    name: str

    def solve(self, conditions: Conditions, task: Task[Any]) -> Outcome:
        """Find out what the schedule comes to on the program, check and measure it."""
        started = time.perf_counter()
        schedule = capabilities.pipeline(task, self.name)
        seconds = time.perf_counter() - started
        finding = conditions.judge(task).confirm(candidate_of(task, schedule))
        return outcome_of(self.name, task, finding, seconds, evaluations=0)


@dataclass(frozen=True)
class Searched:
    """A search, led by a policy or not; the finalists are measured again and the best of them reported.

    One that is led by a policy begins with the compiler's default schedule, where costs are exact; the others
    begin with nothing, as in the literature.

    Attributes:
        name: Name in tables.
        strategy: The search.
        policy: The policy that leads it; None without one.
        led_by: Name of that policy; empty without one.
    """

    name: str
    strategy: Strategy
    policy: Policy | None = None
    led_by: str = ""

    def solve(self, conditions: Conditions, task: Task[Any]) -> Outcome:
        """Search, choose among the finalists, check and measure, within the time of the conditions."""
        started, evaluator = time.monotonic(), conditions.evaluator
        known = [] if self.policy is None else default_schedules(conditions.environment, task)
        within = conditions.limited(task, self.policy)
        known = [kept(within, schedule) for schedule in known]
        plan = conditions.plan(task, evaluator, started)
        budget = conditions.budget if plan is None else replace(conditions.budget, seconds=plan.search_s)
        request = SearchRequest(
            budget, conditions.seed, self.policy, evaluated=conditions.evaluated, known=known
        )
        result = run_search(self.strategy, within, evaluator, request)
        if not result.finalists:
            raise IrgymError(f"none of {result.evaluations} candidates ran, not even the original program")
        patience = ENDLESS if plan is None else plan.patience()
        finding = conditions.judge(task, patience).best_of(result)
        points = tuple((point.evaluations, point.seconds, point.cost) for point in result.trace)
        trace = Trace(task.uri, self.name, points, result.seconds)
        return replace(outcome_of(self.name, task, finding, result.seconds, result.evaluations), trace=trace)


@dataclass(frozen=True)
class BaselineMethod:
    """Another library or compiler that computes the same program.

    Attributes:
        name: Name in tables, with the options given.
        baseline: The baseline, `options` as given.
    """

    name: str
    baseline: Baseline

    def solve(self, conditions: Conditions, task: Task[Any]) -> Outcome:
        """Check the baseline and time it in turn with the original program."""
        if not task.objective.timed and not self.baseline.any_objective:
            raise IrgymError(
                f"{self.name} can only be timed, so it has no {task.objective.name}: leave it out"
            )
        reference = conditions.environment.reference_baseline if task.objective.timed else None
        started = time.perf_counter()
        versus = self._timed(conditions, task)
        seconds = time.perf_counter() - started
        speedup = 1.0 / versus.ratio
        ratio, detail = None, versus.detail
        if reference is not None:
            try:
                same = self.name == reference
                trials = conditions.judge(task).trials
                written = versus if same else trials.versus(reference, task.initial(), TIMEOUT_S)
                ratio = 1.0 if same else written.ratio * speedup
            except BaselineError as error:
                detail = str(error)
        row = Row(task.uri, self.name, versus.baseline_ns, speedup, ratio, seconds, None, True, detail=detail)
        return Outcome(replace(row, original_cost=versus.ours_ns))

    def _timed(self, conditions: Conditions, task: Task[Any]) -> Versus:
        """Return timings of the baseline in turn with the original program."""
        options = self.baseline.options
        timeout_s = TIMEOUT_S if options is None else options.timeout_s
        trials = conditions.judge(task).trials
        return trials.versus(self.name, task.initial(), timeout_s, conditions.tell)


def outcome_of(
    method: str,
    task: Task[Any],
    finding: Finding,
    seconds: float,
    evaluations: int,
    best_seen: float | None = None,
) -> Outcome:
    """Return the outcome of a method.

    Args:
        method: Name of the method.
        task: The program.
        finding: What the method found.
        seconds: See `Row`, and so are the others.
        evaluations: Candidates evaluated.
        best_seen: The least cost on the way of a policy.

    Raises:
        WrongResultsError: The method found a wrong program: it has failed, though `tune` takes the next best.
    """
    if finding.rejected:
        raise WrongResultsError(finding.rejected[0])
    gained = finding.speedup
    low, high = finding.baseline_noise or (None, None)
    versus = finding.versus
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
        noise_low=low,
        noise_high=high,
        detail=finding.no_baseline,
        no_gain=finding.no_gain,
        not_checkable="" if finding.validation is None else finding.validation.blind,
        original_cost=finding.cost_as_written,
        baseline_cost=None if versus is None else versus.baseline_ns,
        cost_beside_baseline=None if versus is None else versus.ours_ns,
    )
    baseline = f"{versus.detail}; {len(versus.ratios)} rounds" if versus else ""
    return Outcome(row, None, baseline, finding.state)
