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
        cost: Its cost.
        noise: Places of actions that are only context, not to be imitated.
    """

    task: Task[Any]
    schedule: Schedule
    cost: float
    noise: frozenset[int] = frozenset()
