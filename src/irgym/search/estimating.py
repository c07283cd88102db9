"""Measuring the promising ones of some programs, and estimating the others."""

import math
from collections.abc import Sequence
from statistics import median
from typing import Any, NamedTuple

from irgym.core import capabilities
from irgym.core.cost import Evaluator, Job
from irgym.core.task import Task

PROMISING = 1.05
"""Greatest estimate of a program that is measured, as a multiple of the least cost so far."""

RECENT = 16
"""Number of programs both estimated and measured that tell how far estimates are off."""


class Found(NamedTuple):
    """Cost of a program.

    Attributes:
        cost: The cost, infinite for failures.
        measured: Whether it was measured; otherwise it is an estimate, and above the least cost.
    """

    cost: float
    measured: bool


class Estimating:
    """Finds the costs of the states of a task; where it can estimate them, only promising ones are measured.

    Args:
        task: The program.
        evaluator: Source of costs.
    """

    def __init__(self, task: Task[Any], evaluator: Evaluator) -> None:
        self._estimates = capabilities.ask(task, capabilities.Estimates)
        self._evaluator = evaluator
        self._off: list[float] = []

    def costs(self, asked: Sequence[tuple[Any, Job]], least: float) -> list[Found]:
        """Return the costs of some states.

        Args:
            asked: The states, each with its job.
            least: The least cost so far; infinite for none, and then all are measured.
        """
        estimated = self._estimated([state for state, _ in asked]) if math.isfinite(least) else {}
        scale = median(self._off[-RECENT:]) if self._off else 1.0
        far = {place: scale * cost for place, cost in estimated.items() if scale * cost > PROMISING * least}
        near = [place for place in range(len(asked)) if place not in far]
        measurements = self._evaluator.evaluate([asked[place][1] for place in near]) if near else []
        measured = {place: found.cost for place, found in zip(near, measurements, strict=True)}
        self._off += [
            cost / estimated[place]
            for place, cost in measured.items()
            if place in estimated and math.isfinite(cost)
        ]
        return [
            Found(far[place], False) if place in far else Found(measured[place], True)
            for place in range(len(asked))
        ]

    def _estimated(self, states: Sequence[Any]) -> dict[int, float]:
        """Return the estimates that there are, by place; a failure leaves a state to be measured."""
        if self._estimates is None:
            return {}
        asked = {place: self._estimates.estimate(state) for place, state in enumerate(states)}
        jobs = {place: job for place, job in asked.items() if job is not None}
        found = self._evaluator.evaluate(list(jobs.values())) if jobs else []
        return {place: each.cost for place, each in zip(jobs, found, strict=True) if each.ok}
