"""States of an order of passes under construction."""

from dataclasses import dataclass, field

from irgym.envs.llvm.compiling.modules import Node
from irgym.measure.passes.store import Path


@dataclass(frozen=True)
class LlvmState:
    """A module, given by the passes that made it, and the memory of the episode.

    States are equal if the passes that changed the module are. The memory of the episode (passes that changed
    nothing, the number of steps) is not compared: it matters to masks and observations, not to the program.

    Attributes:
        path: Kinds of the passes that changed the module, in order.
        stopped: Whether `stop` was taken.
        failure: Why the last pass failed; empty if it did not fail. A failed state is terminal.
        node: The module; after a failure, the one before it.
        before: The module before the last step.
        tried: Kinds that have had no effect since the module last changed.
        last: Kind of the last step, -1 at the start.
        steps: Number of steps taken, including those without effect.
    """

    path: Path
    stopped: bool = False
    failure: str = ""
    node: Node = field(compare=False, kw_only=True)
    before: Node = field(compare=False, kw_only=True)
    tried: frozenset[int] = field(default=frozenset(), compare=False, kw_only=True)
    last: int = field(default=-1, compare=False, kw_only=True)
    steps: int = field(default=0, compare=False, kw_only=True)
