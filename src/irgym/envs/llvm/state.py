"""States of an order of LLVM's passes under construction."""

from dataclasses import dataclass

from irgym.envs.llvm.compiling.modules import Node
from irgym.measure.passes.state import PassState


@dataclass(frozen=True)
class LlvmState(PassState[Node]):
    """A module, given by the passes of LLVM that made it."""
