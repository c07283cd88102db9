"""What a cost model can learn before anything is measured: the costs that were recorded in the past."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irgym.base.errors import IrgymError
from irgym.core import capabilities
from irgym.core.catalogue import ENVIRONMENTS
from irgym.core.cost import CostHistory, Record
from irgym.core.task import Task
from irgym.cost_model.model import NONE, FloatArray, Samples, log_ratio

RECORDS = 4096
"""Records that a search learns from: the newest. It has no time to read more."""

PROGRAMS = 64
"""Programs whose records a search learns from: those measured last. Each has to be read again."""

TaskOf = Callable[[str], Task[Any] | None]
"""Returns the task of a URI, or None where its records do not matter."""


def recorded_samples(
    history: CostHistory, task: Task[Any], task_of: TaskOf, limit: int | None = RECORDS
) -> Samples:
    """Return what was recorded of programs of a task's environment, under its objective and for its target.

    Left out are programs as written, which say nothing about schedules, and those never measured as such;
    records of other versions of a program or of the toolchain; and those whose text cannot be read back.

    Args:
        history: Where the records are.
        task: Says which environment, objective and target.
        task_of: Returns the tasks to learn from.
        limit: Greatest number of records to read, the newest; None for all.
    """
    parts: list[Samples] = []
    for program, records in records_by_program(history, task, limit).items():
        own = task_of(program)
        if own is not None and len((part := _samples(history, own, records)).targets):
            parts.append(part)
    # At once: adding one program after the other copies all samples for each.
    return Samples(*map(np.concatenate, zip(*parts, strict=True))) if parts else NONE


def records_by_program(history: CostHistory, task: Task[Any], limit: int | None) -> dict[str, list[Record]]:
    """Return the newest records of programs of a task's environment, under its objective and for its target.

    Args:
        history: Where the records are.
        task: Says which environment, objective and target.
        limit: Greatest number of records; None for all.
    """
    grouped: dict[str, list[Record]] = {}
    job = task.job(task.initial())
    for record in history.records(task.uri.partition(":")[0], job.objective, job.target, limit):
        grouped.setdefault(record.program, []).append(record)
    return grouped


def _samples(history: CostHistory, task: Task[Any], records: Sequence[Record]) -> Samples:
    """Return what is recorded of one program."""
    written = task.job(task.initial())
    [first] = history.recall([written])
    if first is None or not first.ok:
        return NONE
    rows: list[FloatArray] = []
    targets: list[float] = []
    for record in records:
        if record.toolchain != written.toolchain or record.schedule == written.schedule:
            continue
        row = cost_features_of(task, record.schedule)
        if row is not None:
            rows.append(row)
            targets.append(log_ratio(record.measurement.cost, first.cost))
    return Samples(np.stack(rows), np.array(targets)) if rows else NONE


def cost_features_of(task: Task[Any], schedule: str) -> FloatArray | None:
    """Return what a schedule's cost is predicted from, shape [K]; None where its text cannot be read back."""
    state = capabilities.recorded(task, schedule)
    cost_features = None if state is None else capabilities.cost_features(task, state)
    return None if cost_features is None else cost_features.astype(np.float32)


def tasks_beside(task: Task[Any]) -> TaskOf:
    """Return what finds the tasks of other programs of a task's environment, the first `PROGRAMS` of them.

    Its own program is the task itself. Programs that are not to be had any more, such as files, are left out.
    """
    environment = task.uri.partition(":")[0]
    known: dict[str, Task[Any] | None] = {task.uri: task}

    def find(uri: str) -> Task[Any] | None:
        if uri not in known:
            known[uri] = None
            if environment in ENVIRONMENTS and len(known) <= PROGRAMS:
                try:
                    known[uri] = ENVIRONMENTS.load(environment).task(
                        uri, target=task.target, objective=task.objective.name
                    )
                except IrgymError:
                    return None
        return known[uri]

    return find
