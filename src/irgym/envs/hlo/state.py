"""The states of an order of passes under way."""

from dataclasses import dataclass, field

from irgym.envs.hlo.compiling.modules import Node, PassPath


@dataclass(frozen=True)
class HloState:
    """A module, by the passes that made it, and what an episode remembers.

    States are equal where the passes that changed the module are. What the episode remembers beyond that
    (passes that changed nothing, the number of steps) is left out of the comparison: it bears on what is
    worth trying and on what a policy sees, not on what the program is.

    Attributes:
        path: Kinds of the passes that changed the module, in order.
        stopped: Whether `stop` was taken.
        failure: Why the last pass failed; empty where none did. A failed state is terminal.
        node: What is known of the module; of the one before the failure, if there was one.
        before: What is known of the module before the last step.
        tried: Kinds that changed nothing since the module was last changed.
        last: Kind of the last step, -1 at the start.
        steps: Number of steps taken, those without effect included.
    """

    path: PassPath
    stopped: bool = False
    failure: str = ""
    node: Node = field(compare=False, kw_only=True)
    before: Node = field(compare=False, kw_only=True)
    tried: frozenset[int] = field(default=frozenset(), compare=False, kw_only=True)
    last: int = field(default=-1, compare=False, kw_only=True)
    steps: int = field(default=0, compare=False, kw_only=True)
