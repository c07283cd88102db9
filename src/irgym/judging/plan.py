"""How the time of `tune`, or of a search of `compare`, is divided between the search and its checks."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from irgym.core.cost import Evaluator, Measurement
from irgym.core.task import Task
from irgym.judging.patience import Patience, checks_bound, first_seconds, run_seconds
from irgym.search.budget import LEAST_S

SHARE = 0.4
"""Share of the time that is left after evaluating the original program that checks get, if they need it."""

CHOOSING = 0.4
"""Share of the checks' time for choosing among finalists; then the result is validated and compared."""

SEARCHING = 0.2
"""Share of the given time that the search gets at least, even if all then takes longer."""

PATIENT = 0.2
"""Share of the bound on checks after which measurements are no longer repeated, where no time was given."""

LEAST_CHECKS_S = 2.0
"""Least time of the checks of a program that takes no time itself."""

LEAST_PROGRAMS = 12
"""Programs that the least checks prepare, such as compile."""

LEAST_RUNS = 30
"""Runs of a program in the least checks: expected results and their rounding, costs, one comparison."""

OVERRUN = 1.2
"""Factor of the given time up to which a command may take longer without a warning."""

OVERRUN_S = 10.0
"""Seconds beyond that, likewise."""


@dataclass(frozen=True)
class Plan:
    """Times of a search and its checks, once the original program has been evaluated.

    Attributes:
        seconds: Time of the whole, in seconds; infinite if the search ends by other limits.
        started: When it began, on the monotonic clock.
        bound_s: What checks take at most, if they are not hurried.
        checks_s: Seconds that they get.
        least_s: What they take at least.
        run_s: Time of one run of the original program on each of its inputs.
        prepare_s: Time for preparing it, such as compiling.
    """

    seconds: float
    started: float
    bound_s: float
    checks_s: float
    least_s: float
    run_s: float
    prepare_s: float

    @property
    def left_s(self) -> float:
        """Seconds until the whole is to have ended."""
        return self.seconds - (time.monotonic() - self.started)

    @property
    def search_s(self) -> float | None:
        """Seconds for the search; None if its time is not limited."""
        if math.isinf(self.seconds):
            return None
        return max(LEAST_S, SEARCHING * self.seconds, self.left_s - self.checks_s)

    def without(self, seconds: float) -> "Plan":
        """Return the plan of what comes before some last seconds of the whole."""
        share_s = SHARE * (self.left_s - seconds)
        checks_s = min(self.bound_s, max(share_s, self.least_s))
        return replace(self, seconds=self.seconds - seconds, checks_s=checks_s)

    def patience(self, hurried: bool = False) -> Patience:
        """Return the patience of checks that begin now; of the least ones where the user waits."""
        if hurried:
            return Patience(0.0, self.least_s, self.run_s, self.prepare_s)
        if math.isinf(self.seconds):
            return Patience(PATIENT * self.bound_s)
        whole_s = max(self.left_s, self.least_s)
        return Patience(CHOOSING * whole_s, whole_s, self.run_s, self.prepare_s)

    @property
    def candidate_s(self) -> float:
        """Seconds that a candidate takes, if it takes as long as the original program."""
        return self.prepare_s + 2 * self.run_s

    @property
    def overrun(self) -> str:
        """Sentence that says that the whole takes longer than it should; empty if it does not."""
        spent_s = time.monotonic() - self.started
        expected_s = spent_s + self.least_s
        if expected_s <= OVERRUN * self.seconds + OVERRUN_S:
            return ""
        return (
            f"reading and evaluating the original program took {spent_s:.1f} s, preparing it takes "
            f"{self.prepare_s:.1f} s and a run {self.run_s:.1f} s, so {self.seconds:g} s are too short: the "
            f"search stops after its first candidates, and all takes {expected_s:.0f} s or more"
        )


def measured_plan(
    task: Task[Any],
    evaluator: Evaluator,
    prepare: Callable[[Task[Any]], None],
    seconds: float | None,
    started: float,
    share: float = SHARE,
) -> Plan:
    """Evaluate the original program, and return the plan that follows.

    Args:
        task: The program.
        evaluator: Source of its cost.
        prepare: Does what does not depend on a candidate, such as `Validator.prepare`.
        seconds: Time of the whole; None if it is not limited.
        started: When the whole began, on the monotonic clock.
        share: As in `plan_of`.
    """
    begun = time.monotonic()
    prepare(task)
    [first] = evaluator.evaluate([task.job(task.initial())])
    return plan_of(task, first, time.monotonic() - begun, seconds, started, share)


def plan_of(
    task: Task[Any],
    first: Measurement,
    first_s: float,
    seconds: float | None,
    started: float,
    share: float = SHARE,
) -> Plan:
    """Return the plan for a program.

    Args:
        task: The program.
        first: Measurement of the original program.
        first_s: Seconds that it took now.
        seconds: Time of the whole; None if it is not limited.
        started: When the whole began, on the monotonic clock.
        share: Share of the time left that checks get, if they need it.
    """
    run_s = run_seconds(task, first)
    took_s = max(first_s, first_seconds(task, first))
    bound_s = checks_bound(task, first.cost, took_s, task.job(task.initial()).runs)
    least_s = LEAST_CHECKS_S + LEAST_PROGRAMS * first.compile_s + LEAST_RUNS * run_s
    whole_s = math.inf if seconds is None else seconds
    share_s = share * (whole_s - (time.monotonic() - started))
    checks_s = min(bound_s, max(share_s, least_s))
    return Plan(whole_s, started, bound_s, checks_s, least_s, run_s, first.compile_s)
