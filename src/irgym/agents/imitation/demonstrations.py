"""Demonstrations: programs, and good schedules for them."""

from dataclasses import dataclass
from typing import Any

from irgym.core.schedule import Schedule
from irgym.core.task import Task


@dataclass(frozen=True)
class Demonstration:
    """A program and a good schedule for it.

    Attributes:
        task: The program.
        schedule: The schedule.
        cost: What it costs.
        noise: Places of actions that are not to be learnt, only to be gone on from.
    """

    task: Task[Any]
    schedule: Schedule
    cost: float
    noise: frozenset[int] = frozenset()
