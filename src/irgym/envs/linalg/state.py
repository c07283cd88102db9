"""States of an episode: the operations as scheduled so far, and whose turn it is."""

from dataclasses import dataclass

from irgym.envs.linalg.scheduling.transformations import Scheduled


@dataclass(frozen=True)
class LinalgState:
    """The operations and the transformations applied to them.

    Attributes:
        operations: All operations, in the program's order.
        turn: Place of the current operation in `Transitions.order`; past the end in a terminal state.
        placed: Loops placed by an unfinished interchange, the outermost first.
        spent: Actions taken on the current operation, ineffective ones included.
        barred: Kinds of actions that are masked as useless: those without effect since the last change, and
            a second interchange in a row.
    """

    operations: tuple[Scheduled, ...]
    turn: int = 0
    placed: tuple[int, ...] = ()
    spent: int = 0
    barred: frozenset[int] = frozenset()
