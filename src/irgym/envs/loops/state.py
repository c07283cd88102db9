"""The states of a loop nest under way."""

from dataclasses import dataclass

from irgym.envs.loops.nest import Nest

HISTORY = 5
"""Number of past actions that a state remembers, for LoopTune's `5_prev_actions_tensor`."""


@dataclass(frozen=True)
class LoopsState:
    """A nest, the place of the cursor, the last few actions, and whether `stop` was taken.

    Attributes:
        nest: The loops.
        cursor: Place of the loop that actions apply to.
        previous: Places in `SPACE.flat` of the last `HISTORY` actions, the latest last.
        stopped: Whether the schedule has ended.
    """

    nest: Nest
    cursor: int = 0
    previous: tuple[int, ...] = ()
    stopped: bool = False
