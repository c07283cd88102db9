"""Observers that keep what a comparison tells in lists; and policies given by functions."""

from collections.abc import Callable
from typing import Any

from irgym.comparing.comparison import ComparisonObserver
from irgym.comparing.results import Comparison
from irgym.core.task import Task
from irgym.policies.policy import Policy


class Kept(ComparisonObserver):
    def __init__(self) -> None:
        self.computed: list[tuple[str, str]] = []
        self.recorded: list[Comparison] = []
        self.said: list[str] = []

    def progress(self, program: str, method: str) -> None:
        self.computed.append((program, method))

    def record(self, comparison: Comparison) -> None:
        self.recorded.append(comparison)

    def note(self, text: str) -> None:
        self.said.append(text)


class Given:
    """Policies, and what tells them apart."""

    def __init__(
        self,
        load: Callable[[str, Task[Any]], Policy],
        identify: Callable[[str, Task[Any]], str | None] = lambda name, task: None,
    ) -> None:
        self.load = load
        self.identify = identify
