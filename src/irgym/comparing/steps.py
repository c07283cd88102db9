"""The program before and after each action of a schedule: what a report shows of one result."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from irgym.base.errors import StorageError
from irgym.base.json_files import read_json, write_json
from irgym.base.values import conform
from irgym.comparing.rows import CostOrNone
from irgym.core.capabilities import Drawn, ask, drawing
from irgym.core.cost import Evaluator
from irgym.core.drawing import Drawing
from irgym.core.objective import TIME, Objective
from irgym.core.schedule import Schedule, states_along
from irgym.core.task import Task
from irgym.judging.gains import MOST, groups_of, join, label_of


@dataclass(frozen=True)
class Step:
    """The program after an action.

    Attributes:
        program: URI.
        action: Text of the action, or a group of actions in words; empty for the original program.
        text: The program as text; empty where it is drawn.
        cost: Its cost; None where it failed.
        objective: What the cost is.
        drawing: A picture of the program, at the first step and at the last, where it can be drawn.
    """

    program: str
    action: str
    text: str
    cost: CostOrNone
    objective: Objective = TIME
    drawing: Drawing | None = None


def steps_of(task: Task[Any], evaluator: Evaluator, schedule: Schedule) -> list[Step]:
    """Return the original program and after each action of a schedule.

    Programs that can be drawn have long schedules of small changes: there it is the program after each group
    of actions, as `irgym.judging.gains` makes them.

    Raises:
        ScheduleError: An action does not apply.
    """
    states = states_along(task, schedule)
    if ask(task, Drawn) is not None:
        return _drawn_steps(task, evaluator, schedule, states)
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


def _drawn_steps(
    task: Task[Any], evaluator: Evaluator, schedule: Schedule, states: Sequence[Any]
) -> list[Step]:
    groups = join(groups_of(task, schedule), MOST)
    ends = [0, *(group.end for group in groups)]
    texts = [task.space.text(action) for action in schedule.actions]
    labels = ["", *(label_of(group, texts) for group in groups)]
    measurements = evaluator.evaluate([task.job(states[end]) for end in ends])
    return [
        Step(
            task.uri,
            label,
            "",
            measurement.cost if measurement.ok else None,
            task.objective,
            drawing(task, states[end]) if end in (0, len(states) - 1) else None,
        )
        for label, end, measurement in zip(labels, ends, measurements, strict=True)
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
    except ValueError as error:  # drawings that make no sense among them
        raise StorageError(
            f"{path} is damaged: these are not the steps of a schedule ({error}): write them again"
        ) from error
