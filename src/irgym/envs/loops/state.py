"""States of a loop nest under construction."""

from dataclasses import dataclass

from irgym.envs.loops.nest import Nest

HISTORY = 5
"""Number of past actions in a state, for LoopTune's `5_prev_actions_tensor`."""


@dataclass(frozen=True)
class LoopsState:
    """A nest, a cursor, the last few actions, and whether `stop` was taken.

    Attributes:
        nest: The loops.
        cursor: Position of the loop to which actions apply.
        previous: Indices in `SPACE.flat` of the last `HISTORY` actions, the latest last.
        stopped: Whether the schedule has ended.
    """

    nest: Nest
    cursor: int = 0
    previous: tuple[int, ...] = ()
    stopped: bool = False
