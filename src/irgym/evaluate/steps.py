"""The program before and after each action of a schedule: what a report shows of one result."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from irgym.core.cost import Evaluator
from irgym.core.errors import StorageError
from irgym.core.schedule import Schedule, states_along
from irgym.core.task import Task


@dataclass(frozen=True)
class Step:
    """The program after an action.

    Attributes:
        program: URI.
        action: Text of the action; empty for the program as written.
        nest_text: The program as text.
        cost_ns: Its cost in nanoseconds; None where it failed.
    """

    program: str
    action: str
    nest_text: str
    cost_ns: float | None


def steps_of(task: Task[Any], evaluator: Evaluator, schedule: Schedule) -> list[Step]:
    """Return the program as written and after each action of a schedule.

    Raises:
        ScheduleError: An action does not apply.
    """
    states = states_along(task, schedule)
    actions = ["", *(task.space.text(action) for action in schedule.actions)]
    measurements = evaluator.evaluate([task.job(state) for state in states])
    return [
        Step(task.uri, action, task.describe(state), measurement.cost if measurement.ok else None)
        for action, state, measurement in zip(actions, states, measurements, strict=True)
    ]


def read_steps(data: Any) -> list[Step]:
    """Read a list of objects with the fields of `Step`; `program` may be missing.

    Raises:
        StorageError: It is something else.
    """
    try:
        return [_step(entry) for entry in data]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StorageError(f"these are not the steps of a schedule ({error!r}): write them again") from error


def _step(entry: Mapping[str, Any]) -> Step:
    cost = entry["cost_ns"]
    return Step(
        program=str(entry.get("program", "")),
        action=str(entry["action"] or ""),
        nest_text=str(entry["nest_text"]),
        cost_ns=None if cost is None else float(cost),
    )
