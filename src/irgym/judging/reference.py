"""Reference pipelines: a compiler's default schedule and its cost."""

import time
from dataclasses import dataclass
from typing import Any

from irgym.base.errors import UnknownPipelineError
from irgym.core import capabilities
from irgym.core.bench import Bench
from irgym.core.environment import Environment
from irgym.core.schedule import Candidate, Schedule, candidate_of
from irgym.core.task import Task
from irgym.judging.trials import Trials


@dataclass(frozen=True)
class Reference:
    """A program after its environment's reference pipeline.

    Attributes:
        name: Name of the pipeline.
        candidate: The program.
        program: Canonical text of the program.
        cost: Cost of the program.
        seconds: Wall-clock time for finding the schedule.
    """

    name: str
    candidate: Candidate
    program: str
    cost: float
    seconds: float


def reference_of(environment: Environment, bench: Bench, task: Task[Any]) -> Reference | None:
    """Return a program after the reference pipeline; None if there is none, or it is not known.

    Raises:
        IrgymError: The pipeline fails on this program.
    """
    started = time.perf_counter()
    name = environment.reference(task.objective)
    schedule = None if name is None else _schedule_of(name, task)
    if schedule is None or name is None:
        return None
    seconds = time.perf_counter() - started
    candidate = candidate_of(task, schedule)
    [cost] = Trials(bench, task).costs([candidate.state])
    return Reference(name, candidate, task.job(candidate.state).schedule, cost, seconds)


def default_schedules(environment: Environment, task: Task[Any]) -> list[Schedule]:
    """Return the schedules that a search starts with, so that it never ends worse than the compiler.

    Raises:
        IrgymError: The pipeline fails on this program.
    """
    names = environment.beginnings(task.objective)
    return [schedule for name in names if (schedule := _schedule_of(name, task)) is not None]


def pipeline_schedules(environment: Environment, task: Task[Any]) -> list[Schedule]:
    """Return the schedules of all pipelines that are known on a program, if costs are exact; else none.

    Raises:
        IrgymError: A pipeline fails on this program.
    """
    names = [pipeline.name for pipeline in environment.pipelines] if task.objective.exact else []
    return [schedule for name in names if (schedule := _schedule_of(name, task)) is not None]


def _schedule_of(name: str, task: Task[Any]) -> Schedule | None:
    """Return the schedule of a pipeline; None if it is not known."""
    try:
        return capabilities.pipeline(task, name)
    except UnknownPipelineError:
        return None
