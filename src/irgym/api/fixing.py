"""A result that is fixed to one size, beside the result that keeps a model's sizes open."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from irgym.api.requests import Measuring, Searching
from irgym.base.errors import IrgymError
from irgym.core.baseline import ROUNDS, Versus
from irgym.core.bench import Bench
from irgym.core.environment import Environment
from irgym.core.schedule import Schedule
from irgym.core.task import Task
from irgym.judging.fixed import CHECKS, COMPARISONS, GAIN, SHARE, Fixable, comparing_s, needed_s
from irgym.judging.patience import Patience
from irgym.judging.plan import Plan
from irgym.judging.result import Fixed, Tuned
from irgym.judging.statistics import median_interval
from irgym.judging.validator import Validator
from irgym.measure.timing import FEWEST_ROUNDS
from irgym.search.budget import Budget


class Tunes(Protocol):
    """A search and the checks after it; see `irgym.api.tuning.Tuning`."""

    @property
    def environment(self) -> Environment:
        """Where programs come from."""
        ...

    @property
    def measuring(self) -> Measuring:
        """Objective, back end, target and farm."""
        ...

    @property
    def searching(self) -> Searching:
        """Options of the search."""
        ...

    @property
    def limits(self) -> Budget:
        """Limits of the search's evaluations, and of the time of the whole."""
        ...

    @property
    def seed(self) -> int:
        """Seed of all random choices."""
        ...

    def from_now(self, now: float, searching: Searching, limits: Budget, checking: float) -> "Tunes":
        """Return the same within other limits, from now on, on the monotonic clock."""
        ...

    def searched(
        self,
        bench: Bench,
        task: Task[Any],
        known: Sequence[Schedule],
        resumed: int,
        validator: Validator,
        original: None,
    ) -> Tuned:
        """Search, choose among the finalists, and check."""
        ...


@dataclass(frozen=True)
class Fixing:
    """How the time is divided between a result with open sizes, and one that is fixed to those measured.

    Attributes:
        program: The program, if there is time for a fixed result; else None.
        whole: Plan of both.
        plan: Plan of the result with open sizes.
        why: Why there is no fixed result, in words; empty where nobody expects one.
    """

    program: Fixable | None
    whole: Plan
    plan: Plan
    why: str = ""

    def beside(self, tuning: Tunes, bench: Bench, result: Tuned, interrupted: bool) -> Tuned:
        """Return a result with one that is fixed to the measured sizes, or with the reason why there is none.

        Args:
            tuning: The search for the result.
            bench: Where the program is measured.
            result: The result with open sizes.
            interrupted: Whether the user waits.
        """
        if self.program is None or interrupted:
            return replace(result, no_fixed=self.why)
        left_s = self.whole.left_s - comparing_s(self.whole)
        if left_s < self.whole.least_s:
            return replace(result, no_fixed="no time was left: give more --seconds")
        try:
            fixed = _searched(self.program, tuning, bench, result, left_s)
            return self._judged(self.program, bench, result, fixed)
        except IrgymError as error:  # the result with open sizes stands
            return replace(result, no_fixed=str(error))

    def _judged(self, program: Fixable, bench: Bench, result: Tuned, fixed: Tuned) -> Tuned:
        """Return the result with the fixed one, if that is right and faster beyond the noise."""
        if not fixed.validated:
            why = fixed.validation.blind if fixed.validation else "validation is off"
            return replace(result, no_fixed=f"its results could not be checked: {why}")
        share_s = self.whole.left_s / COMPARISONS
        patience = Patience(whole_s=share_s, run_s=self.whole.run_s, prepare_s=self.whole.prepare_s)
        rounds = max(FEWEST_ROUNDS, patience.comparison(ROUNDS))  # `comparing_s` was set aside
        call = program.fixed_call(result.state, fixed.task, fixed.state, rounds)
        found: list[Versus] = [bench.call(call) for _ in range(COMPARISONS)]
        versus = replace(found[0], ratios=tuple(ratio for timed in found for ratio in timed.ratios))
        low, _ = median_interval(versus.ratios)
        if low <= 1.0 or versus.ratio < 1.0 + GAIN:
            why = f"for {program.fixed_sizes()} alone it is not faster beyond the noise ({versus.ratio:.2f}x)"
            return replace(result, no_fixed=why)
        return replace(result, fixed=Fixed(program.fixed_sizes(), fixed, versus))


def fixing_of(tuning: Tunes, task: Task[Any], plan: Plan, given: bool) -> Fixing:
    """Return how the time is divided.

    Args:
        tuning: The search for a result with open sizes.
        task: The program.
        plan: Plan of the whole.
        given: Whether the program was given as an object, which results stand for at any size.
    """
    offered = tuning.searching.fixed and not given and task.objective.timed and math.isfinite(plan.seconds)
    if not offered or not isinstance(task, Fixable) or not task.fixed_uri():
        return Fixing(None, plan, plan)
    needed = needed_s(plan, plan.seconds - plan.left_s)
    if needed > SHARE * plan.seconds:
        enough = math.ceil(needed / SHARE)
        return Fixing(None, plan, plan, f"not tried for lack of time: give --seconds {enough} or more")
    return Fixing(task, plan, plan.without(SHARE * plan.seconds))


def _searched(program: Fixable, tuning: Tunes, bench: Bench, result: Tuned, seconds: float) -> Tuned:
    """Return the result of a search on the program with fixed sizes, which begins with the other's schedule.

    Raises:
        IrgymError: The program cannot be fixed, or its result is wrong.
    """
    searching = replace(tuning.searching, fixed=False, evaluated=None)
    limits = Budget(tuning.limits.evaluations, seconds)
    inner = tuning.from_now(time.monotonic(), searching, limits, CHECKS)
    task = tuning.measuring.task(tuning.environment, program.fixed_uri())
    validator = Validator(bench, tuning.environment.validation_inputs, tuning.seed)
    known = [_applicable(task, result.actions)]
    return inner.searched(bench, task, known, 0, validator, None)


def _applicable(task: Task[Any], schedule: Schedule) -> Schedule:
    """Return the actions of a schedule that apply in turn."""
    state, kept = task.initial(), Schedule()
    for action in schedule.actions:
        if task.space.allows(task.mask(state), action):
            state, kept = task.step(state, action), kept.then(action)
    return kept
