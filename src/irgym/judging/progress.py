"""Progress of a search for the user, with the time of the checks after it."""

from collections.abc import Callable
from typing import Any

from irgym.core.task import Task
from irgym.judging.units import progress_text
from irgym.search.progress import SearchProgress


class Progress:
    """Notes where a search stands, and how long the checks after it take at most.

    Args:
        task: The program.
        search: The search in words.
        checks_s: Seconds that the checks take at most.
        note: Called with each line.
    """

    def __init__(self, task: Task[Any], search: str, checks_s: float, note: Callable[[str], None]) -> None:
        self._task = task
        self._search = search
        self._checks = f"then checks, at most {checks_s:.0f} s"
        self._note = note

    def __call__(self, progress: SearchProgress) -> None:
        """Note the progress."""
        words = progress_text(progress, self._task.objective)
        self._note(f"{self._task.uri}: {self._search}, {words}, {self._checks}")
