"""Reference costs of a program: those of the reference pipeline, and those under other objectives."""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from irgym.base.errors import IrgymError
from irgym.comparing.methods import Outcome
from irgym.comparing.rows import Row, Side
from irgym.core.bench import Bench
from irgym.core.environment import Environment
from irgym.core.task import Task
from irgym.judging.finding import gain_ratio, over
from irgym.judging.reference import Reference, reference_of
from irgym.judging.trials import Trials


class ReferenceCosts:
    """The reference of one program, and costs under other objectives; each distinct program measured once.

    Attributes:
        task: The program.
        reference: What the reference pipeline makes of it; None without one, and where it fails.
    """

    def __init__(self, environment: Environment, bench: Bench, task: Task[Any], also: Sequence[str]) -> None:
        """Run the reference pipeline.

        Raises:
            IrgymError: The program has no cost under one of the objectives in `also`.
        """
        self.task = task
        self.reference: Reference | None = None
        # A pipeline that fails leaves its ratios out; as a method of the comparison it says why.
        with suppress(IrgymError):
            self.reference = reference_of(environment, bench, task)
        self._family = environment.family(task.uri)
        self._bench = bench
        self._others = {objective: task.under(objective) for objective in also}
        self._costs: dict[tuple[str, str], float | None] = {}

    def complete(self, outcome: Outcome) -> Row:
        """Return the row of an outcome with its family, ratios to the reference, and other objectives."""
        row = replace(outcome.row, family=self._family)
        if row.cost is None:
            return row
        if self.reference is not None:
            row = replace(row, **self._ratios(row.cost, row.speedup, self.reference, outcome.state))
            if row.method == self.reference.name:
                # Whoever asks a second time is answered from what the task remembers.
                row = replace(row, seconds=self.reference.seconds)
        if outcome.state is None:
            return row
        return replace(row, also={name: self._side(name, outcome.state) for name in self._others})

    def _ratios(
        self, cost: float, speedup: float | None, reference: Reference, state: Any
    ) -> dict[str, float | None]:
        """Return the reference's cost and the ratios to it; its program is no better than itself."""
        same = state is not None and self.task.job(state).schedule == reference.program
        theirs = cost if same else reference.cost
        # As measured in turn with this row.
        first = math.nan if speedup is None else cost * speedup
        return {
            "reference_cost": theirs,
            "reference_ratio": _finite(over(theirs, cost)),
            "gain_ratio": gain_ratio(first, theirs, cost),
        }

    def _side(self, objective: str, state: Any) -> Side:
        """Return the cost of a state under another objective."""
        cost = self._cost(objective, state)
        if cost is None:
            return Side(None)
        first = self._cost(objective, self.task.initial())
        theirs = None
        if self.reference is not None:
            theirs = self._cost(objective, self.reference.candidate.state)
        return Side(
            cost,
            None if first is None else _finite(over(first, cost)),
            None if theirs is None else _finite(over(theirs, cost)),
        )

    def _cost(self, objective: str, state: Any) -> float | None:
        """Return the least of some costs measured again; None where the program fails."""
        other = self._others[objective]
        key = objective, other.job(state).schedule
        if key not in self._costs:
            self._costs[key] = None
            with suppress(IrgymError):
                self._costs[key] = Trials(self._bench, other).costs([state])[0]
        return self._costs[key]


def _finite(ratio: float) -> float | None:
    return ratio if math.isfinite(ratio) and ratio > 0.0 else None
