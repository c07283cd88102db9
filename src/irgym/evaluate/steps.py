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
        text: The program as text.
        cost: Its cost; None where it failed.
        objective: What the cost is.
    """

    program: str
    action: str
    text: str
    cost: float | None
    objective: str = "time"


def steps_of(task: Task[Any], evaluator: Evaluator, schedule: Schedule) -> list[Step]:
    """Return the program as written and after each action of a schedule.

    Raises:
        ScheduleError: An action does not apply.
    """
    states = states_along(task, schedule)
    actions = ["", *(task.space.text(action) for action in schedule.actions)]
    measurements = evaluator.evaluate([task.job(state) for state in states])
    return [
        Step(
            task.uri,
            action,
            task.describe(state),
            measurement.cost if measurement.ok else None,
            task.objective,
        )
        for action, state, measurement in zip(actions, states, measurements, strict=True)
    ]


def read_steps(data: Any) -> list[Step]:
    """Read a list of objects with the fields of `Step`; `program` and `objective` may be missing.

    Raises:
        StorageError: It is something else.
    """
    try:
        return [_step(entry) for entry in data]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StorageError(f"these are not the steps of a schedule ({error!r}): write them again") from error


def _step(entry: Mapping[str, Any]) -> Step:
    cost = entry["cost"]
    return Step(
        program=str(entry.get("program", "")),
        action=str(entry["action"] or ""),
        text=str(entry["text"]),
        cost=None if cost is None else float(cost),
        objective=str(entry.get("objective", "time")),
    )
