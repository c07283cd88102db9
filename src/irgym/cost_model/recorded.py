"""Training data from recorded costs, for a cost model before any measurement."""

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
"""Number of records that a search learns from, the newest. Reading more takes too long."""

PROGRAMS = 64
"""Number of programs whose records a search learns from, the newest. Each program must be loaded."""

TaskOf = Callable[[str], Task[Any] | None]
"""Maps a URI to its task, or to None to skip its records."""


def recorded_samples(
    history: CostHistory, task: Task[Any], task_of: TaskOf, limit: int | None = RECORDS
) -> Samples:
    """Return samples from records of programs of a task's environment, for its objective and target.

    Omitted are unmodified programs, which say nothing about schedules; programs without a measurement of the
    original; records of other versions of a program or the toolchain; and records whose text cannot be read
    back.

    Args:
        history: The records.
        task: Selects environment, objective and target.
        task_of: Returns the tasks to learn from.
        limit: Greatest number of records to read, the newest; None for all.
    """
    parts: list[Samples] = []
    for program, records in records_by_program(history, task, limit).items():
        own = task_of(program)
        if own is not None and len((part := _samples(history, own, records)).targets):
            parts.append(part)
    # In one step: adding program by program would copy all samples each time.
    return Samples(*map(np.concatenate, zip(*parts, strict=True))) if parts else NONE


def records_by_program(history: CostHistory, task: Task[Any], limit: int | None) -> dict[str, list[Record]]:
    """Return the newest records of programs of a task's environment, under its objective and for its target.

    Args:
        history: The records.
        task: Selects environment, objective and target.
        limit: Greatest number of records; None for all.
    """
    grouped: dict[str, list[Record]] = {}
    job = task.job(task.initial())
    for record in history.records(task.uri.partition(":")[0], job.objective, job.target, limit):
        grouped.setdefault(record.program, []).append(record)
    return grouped


def _samples(history: CostHistory, task: Task[Any], records: Sequence[Record]) -> Samples:
    """Return the samples of one program."""
    original = task.job(task.initial())
    [first] = history.recall([original])
    if first is None or not first.ok:
        return NONE
    rows: list[FloatArray] = []
    targets: list[float] = []
    for record in records:
        if record.toolchain != original.toolchain or record.schedule == original.schedule:
            continue
        row = cost_features_of(task, record.schedule)
        if row is not None:
            rows.append(row)
            targets.append(log_ratio(record.measurement.cost, first.cost))
    return Samples(np.stack(rows), np.array(targets)) if rows else NONE


def cost_features_of(task: Task[Any], schedule: str) -> FloatArray | None:
    """Return the cost features of a schedule, shape [K]; None if its text cannot be read back."""
    state = capabilities.recorded(task, schedule)
    cost_features = None if state is None else capabilities.cost_features(task, state)
    return None if cost_features is None else cost_features.astype(np.float32)


def tasks_beside(task: Task[Any]) -> TaskOf:
    """Return a function from URIs to tasks of a task's environment, for the first `PROGRAMS` URIs.

    The task itself stands for its URI. Programs that no longer exist, such as deleted files, map to None.
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
