"""States: what was chosen so far."""

from dataclasses import dataclass


@dataclass(frozen=True)
class CseState:
    """What of a function is shared. In what order it was chosen makes no difference.

    Attributes:
        shared: The places of the candidates that are shared.
        stopped: Whether the schedule ended.
    """

    shared: frozenset[int] = frozenset()
    stopped: bool = False
