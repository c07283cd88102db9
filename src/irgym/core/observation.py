"""Named observations of a task's states, for Gymnasium environments to select from."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from irgym.core.task import Task


@dataclass(frozen=True)
class ObservationView:
    """One way to see a state.

    Attributes:
        name: What it is selected by.
        description: One line, with the shape.
        space: Returns the Gymnasium space that every value lies in.
        value: Returns the value for a task, a state and a function that returns the state's cost (only
            called by views that need it, since it measures).
    """

    name: str
    description: str
    space: Callable[[], Any]
    value: Callable[[Task[Any], Any, Callable[[], float]], Any]
