"""The states of a schedule under way."""

from dataclasses import dataclass

from irgym.envs.linalg.scheduling.transformations import Scheduled


@dataclass(frozen=True)
class LinalgState:
    """The operations and what was done to them.

    Attributes:
        operations: All operations, in the program's order.
        turn: Place in `Transitions.order` of the operation at hand; past its end when all had their turn.
        placed: Loops that an interchange under way has placed, the outermost first.
        spent: Actions taken on the operation at hand, those without effect included.
        barred: Kinds of actions that would lead nowhere: those that had no effect since the last change, and
            an interchange after another.
    """

    operations: tuple[Scheduled, ...]
    turn: int = 0
    placed: tuple[int, ...] = ()
    spent: int = 0
    barred: frozenset[int] = frozenset()
