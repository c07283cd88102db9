"""A program along a schedule: what `irgym show` prints."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from irgym.api.checks import check_options
from irgym.api.requests import Measuring, checked
from irgym.base.errors import IrgymError, ScheduleError
from irgym.core.catalogue import locate
from irgym.core.schedule import Schedule, states_along
from irgym.core.task import Task


@dataclass(frozen=True)
class Shown:
    """A program after each action of a schedule.

    Attributes:
        task: The program.
        actions: Texts of the actions; empty for the original program, which comes first.
        texts: The program after each of them, as a person reads it.
        costs: Its costs in the objective's unit, infinite where it fails; None where nothing was measured.
    """

    task: Task[Any]
    actions: tuple[str, ...]
    texts: tuple[str, ...]
    costs: tuple[float, ...] | None

    def to_json(self) -> dict[str, Any]:
        """Return plain data; a program that fails has no cost."""
        costs = self.costs or (None,) * len(self.actions)
        rows = zip(self.actions, self.texts, costs, strict=True)
        return {
            "program": self.task.uri,
            "objective": self.task.objective.name,
            "unit": self.task.objective.unit,
            "steps": [
                {
                    "action": action,
                    "text": text,
                    "cost": cost if cost is not None and math.isfinite(cost) else None,
                }
                for action, text, cost in rows
            ],
        }


def shown(
    program: object,
    schedule: str = "",
    *inputs: Any,
    environment: str | None = None,
    measure: bool = False,
    measuring: Measuring = Measuring(),
    note: Callable[[str], None] | None = None,
) -> Shown:
    """Return a program after each action of a schedule.

    Args:
        program: As for `tune`, and so are the other arguments.
        schedule: Text of a schedule: actions separated by blanks or commas.
        inputs: Arguments of an object.
        environment: Name of the environment that is to take an object.
        measure: Whether to measure the costs. Those that the states know, such as numbers of operations, are
            there anyway.
        measuring: Objective, back end, target and farm.
        note: Called with a line of text when something new begins.

    Raises:
        ScheduleError: The schedule does not parse, or an action does not apply.
        IrgymError: As for `tune`; or the program has several parts, and none is named.
    """
    check_options(environment=environment)
    checked(measuring, Measuring).check_unlimited("show")
    if not isinstance(schedule, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ScheduleError(f"a schedule is a text, not {schedule!r}: give actions such as those of `tune`")
    home, uri = locate(program, inputs, environment)
    if parts := home.parts(uri, checked(measuring, Measuring).target):
        raise IrgymError(f"{uri} has {len(parts)} parts: show one of them, such as {parts[0]}")
    task = measuring.task(home, uri)
    parsed = Schedule.parse(schedule, task.space)
    states = states_along(task, parsed)
    jobs = [task.job(state) for state in states]
    known = [job.known for job in jobs]
    costs: tuple[float, ...] | None = None
    if measuring.farm is not None and (not measure or known[0] is not None):
        raise IrgymError(
            f"nothing is measured on the farm {measuring.farm!r}: leave it out, or add --measure"
        )
    if all(measurement is not None for measurement in known):
        costs = tuple(measurement.cost for measurement in known if measurement is not None)
    elif measure:
        if note is not None:
            note(f"{uri}: measuring {len(jobs)} programs")
        with measuring.bench(home) as bench:
            costs = tuple(measurement.cost for measurement in bench.evaluator.evaluate(jobs))
    actions = ("", *(task.space.text(action) for action in parsed.actions))
    return Shown(task, actions, tuple(task.describe(state) for state in states), costs)
