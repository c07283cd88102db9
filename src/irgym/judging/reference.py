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
    schedule = _default_schedule(environment, task)
    name = environment.reference_pipeline
    if schedule is None or name is None:
        return None
    seconds = time.perf_counter() - started
    candidate = candidate_of(task, schedule)
    [cost] = Trials(bench, task).costs([candidate.state])
    return Reference(name, candidate, task.job(candidate.state).schedule, cost, seconds)


def default_schedules(environment: Environment, task: Task[Any]) -> list[Schedule]:
    """Return the schedules that a search starts with if costs are exact, else none.

    They are those of the environment's `first_pipelines`, by default of the reference. So a search never ends
    worse than the compiler. Where costs are measured, the compiler runs its pipeline after every schedule
    anyway.

    Raises:
        IrgymError: The pipeline fails on this program.
    """
    first = environment.first_pipelines or (environment.reference_pipeline,)
    names = [name for name in first if name is not None and task.objective.exact]
    return [schedule for name in names if (schedule := _schedule_of(name, task)) is not None]


def pipeline_schedules(environment: Environment, task: Task[Any]) -> list[Schedule]:
    """Return the schedules of all pipelines that are known on a program, if costs are exact; else none.

    Raises:
        IrgymError: A pipeline fails on this program.
    """
    names = [pipeline.name for pipeline in environment.pipelines] if task.objective.exact else []
    return [schedule for name in names if (schedule := _schedule_of(name, task)) is not None]


def _default_schedule(environment: Environment, task: Task[Any]) -> Schedule | None:
    """Return the schedule of the reference pipeline; None if there is none, or it is not known."""
    name = environment.reference_pipeline
    return None if name is None else _schedule_of(name, task)


def _schedule_of(name: str, task: Task[Any]) -> Schedule | None:
    """Return the schedule of a pipeline; None if it is not known."""
    try:
        return capabilities.pipeline(task, name)
    except UnknownPipelineError:
        return None
