"""States of an order of XLA's passes under construction."""

from dataclasses import dataclass

from irgym.envs.hlo.compiling.modules import Node
from irgym.measure.passes.state import PassState


@dataclass(frozen=True)
class HloState(PassState[Node]):
    """A module, given by the passes of XLA that made it."""
