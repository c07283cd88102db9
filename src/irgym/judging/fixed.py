"""Results that are fixed to one size, beside results that keep a program's sizes open."""

from typing import Any, Protocol, runtime_checkable

from irgym.core.cost import Call
from irgym.core.task import Task
from irgym.judging.plan import Plan
from irgym.measure.timing import FEWEST_ROUNDS

SHARE = 0.3
"""Share of the time of the whole for a result that is fixed to one size."""

GAIN = 0.03
"""Relative gain from which on such a result is offered."""

CHECKS = 0.75
"""Share of the time left after evaluating the original with fixed sizes that checks get: the search begins
with the schedule found for open sizes, and results that are not checked are not offered."""

ENOUGH = 0.8
"""Share of the bound on checks that they should have."""

COMPARISONS = 2
"""Comparisons in turn of the two results: a program loaded once more may be faster by some percent."""


@runtime_checkable
class Fixable(Protocol):
    """Tasks of programs with open sizes, which can be fixed to those that they are measured at."""

    def fixed_uri(self) -> str:
        """Return the URI of the program with fixed sizes; empty if none is open, or several are measured."""
        ...

    def fixed_sizes(self) -> str:
        """Return the sizes to which it is fixed, in words."""
        ...

    def fixed_call(self, state: Any, fixed: Task[Any], fixed_state: Any, rounds: int) -> Call:
        """Return the call that times a state of the program with fixed sizes in turn with one of this.

        Its `Versus` has this state as the baseline.

        Args:
            state: The state of this task.
            fixed: The task of `fixed_uri`.
            fixed_state: Its state.
            rounds: Number of rounds in which the two are timed.
        """
        ...


def comparing_s(plan: Plan) -> float:
    """Return about how many seconds the comparisons of the two results take at least."""
    return 1.0 + COMPARISONS * (2 * plan.prepare_s + 4 * (FEWEST_ROUNDS + 1) * plan.run_s)


def needed_s(plan: Plan, opened_s: float) -> float:
    """Return about how many seconds a result takes that is fixed to one size.

    Args:
        plan: The plan of the result with open sizes.
        opened_s: Seconds that it took to read the program and to evaluate the original.
    """
    return opened_s + max(plan.least_s, ENOUGH * plan.bound_s / CHECKS) + comparing_s(plan)
