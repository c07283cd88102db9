"""Tuning one program: search, then measure the finalists anew, validate, and compare with a peer."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from irgym.core.cost import Measurement, Validation
from irgym.core.environment import Bench, Environment, Versus
from irgym.core.errors import IrgymError
from irgym.core.policy import Policy
from irgym.core.schedule import Schedule, replay
from irgym.core.task import Task
from irgym.search.session import Budget, SearchResult, Strategy, run_search

VALIDATION_INPUTS = 3
"""Random inputs on which an optimised program is compared with the original."""


@dataclass(frozen=True)
class Finding:
    """An optimised program, measured and validated after the search.

    Attributes:
        schedule: Leads to it.
        state: The task's state there.
        cost: Cost measured anew, not the least of the search.
        baseline: Cost of the program as written, measured in the same way.
        validation: The comparison with the original.
        versus: Interleaved timings against the environment's peer; None where it has none.
        peak: Interleaved timings against the machine's peak; None where none bounds the cost.
    """

    schedule: Schedule
    state: Any
    cost: float
    baseline: float
    validation: Validation
    versus: Versus | None
    peak: Versus | None = None

    @property
    def speedup(self) -> float:
        """Baseline over cost."""
        return self.baseline / self.cost

    @property
    def peer_ratio(self) -> float | None:
        """Median of the peer's time over ours; above 1, irgym is faster."""
        return None if self.versus is None else float(np.median(self.versus.ratios))

    @property
    def peak_share(self) -> float | None:
        """Median share of the machine's peak."""
        return None if self.peak is None else float(np.median(self.peak.ratios))


def measure_anew(bench: Bench, task: Task[Any], state: Any) -> Measurement:
    """Measure a state without the cost cache."""
    [measurement] = bench.measure([task.job(state)])
    return measurement


def confirm(
    environment: Environment, bench: Bench, task: Task[Any], schedule: Schedule, seed: int
) -> Finding:
    """Validate and measure what a schedule makes of a program.

    Raises:
        IrgymError: The schedule does not apply, its program fails, or its results are wrong.
    """
    state = replay(task, schedule)
    validation: Validation = bench.call(task.validation(state, VALIDATION_INPUTS, seed))
    if not validation.ok:
        raise IrgymError(
            f"the schedule gives wrong results for {task.uri} (error {validation.error:.3g}; allowed: "
            f"{validation.tolerance}): please report it as a bug of irgym"
        )
    baseline = _least(bench, task, task.initial())
    written = task.job(state).schedule == task.job(task.initial()).schedule
    cost = baseline if written else _least(bench, task, state)
    peer = environment.reference_peer
    versus = bench.call(environment.versus_call(peer, task, state)) if peer else None
    peak_call = environment.peak_call(task, state)
    against_peak = bench.call(peak_call) if peak_call else None
    return Finding(schedule, state, cost, baseline, validation, versus, against_peak)


def _least(bench: Bench, task: Task[Any], state: Any) -> float:
    """Return the least of three costs measured anew."""
    rounds = [measure_anew(bench, task, state) for _ in range(3)]
    failed = next((measurement for measurement in rounds if not measurement.ok), None)
    if failed is not None:
        raise IrgymError(
            f"{task.uri} does not run with this schedule: {failed.outcome.value} {failed.detail}"
        )
    return min(measurement.cost for measurement in rounds)


def best_of(bench: Bench, task: Task[Any], result: SearchResult) -> Schedule:
    """Return the finalist whose cost, measured three times anew in turn, is least.

    The least of thousands of noisy costs flatters whoever it belongs to. A finalist that fails is out.
    """
    states = [replay(task, schedule) for schedule in result.finalists]
    rounds = [[measure_anew(bench, task, state).cost for state in states] for _ in range(3)]
    return result.finalists[int(np.argmin(np.min(rounds, axis=0)))]


def tune(
    environment: Environment,
    bench: Bench,
    task: Task[Any],
    strategy: Strategy,
    budget: Budget,
    seed: int,
    policy: Policy | None = None,
) -> tuple[Finding, SearchResult]:
    """Search, choose among the finalists, confirm.

    Raises:
        IrgymError: The program cannot be run at all, or the result is wrong.
    """
    result = run_search(strategy, task, bench.evaluator, budget, seed, policy)
    if not result.finalists:
        measurement = measure_anew(bench, task, task.initial())
        raise IrgymError(
            f"{task.uri} cannot be run here: {measurement.outcome.value} {measurement.detail}".rstrip()
        )
    return confirm(environment, bench, task, best_of(bench, task, result), seed), result
