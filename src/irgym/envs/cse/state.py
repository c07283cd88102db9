"""States: the choice so far."""

from dataclasses import dataclass


@dataclass(frozen=True)
class CseState:
    """The choice so far. The order in which candidates were shared makes no difference.

    Attributes:
        shared: Places of the shared candidates.
        stopped: Whether the schedule has ended.
    """

    shared: frozenset[int] = frozenset()
    stopped: bool = False
