"""Functions that see how a training gets on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from irgym.agents.metrics import Metrics


def unseen(seen: object) -> None:
    """See nothing."""


@dataclass(frozen=True)
class TrainingObserver:
    """Functions that see how a training gets on.

    Attributes:
        note: Called with a line that says what is trained, and on which machine; and at the end with one if
            the policy changes no program.
        progress: Called with the metrics of each iteration.
        activity: Called with a line on the progress within an iteration that takes long.
    """

    note: Callable[[str], None] = unseen
    progress: "Callable[[Metrics], None]" = unseen
    activity: Callable[[str], None] = unseen
