"""The program before and after each action of a schedule: what a report shows of one result."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from irgym.core.cost import Evaluator
from irgym.core.errors import StorageError
from irgym.core.json_files import read_json, write_json
from irgym.core.objective import TIME, Objective
from irgym.core.schedule import Schedule, states_along
from irgym.core.task import Task
from irgym.core.values import MismatchError, conform
from irgym.evaluation.rows import CostOrNone


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
    cost: CostOrNone
    objective: Objective = TIME


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


def write_steps(path: Path, steps: Sequence[Step]) -> None:
    """Write steps, for `read_steps`.

    Raises:
        StorageError: The file cannot be written.
    """
    write_json(path, [asdict(step) for step in steps])


def read_steps(path: Path) -> list[Step]:
    """Read the steps in a file; none where there is no file.

    Raises:
        StorageError: It cannot be read, or it is damaged.
    """
    data = read_json(path)
    try:
        return [] if data is None else list(conform(tuple[Step, ...], data))
    except MismatchError as error:
        raise StorageError(
            f"{path} is damaged: these are not the steps of a schedule ({error}): write them again"
        ) from error
