"""States of an order of passes under construction, for the tasks of compilers whose actions are passes."""

from dataclasses import dataclass, field
from typing import Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from irgym.measure.passes.store import Failure, Path

N = TypeVar("N")


@dataclass(frozen=True)
class PassState(Generic[N]):
    """A module, given by the passes that made it, and the memory of the episode.

    States are equal if the passes that changed the module are. The memory of the episode (passes that changed
    nothing, the number of steps) is not compared: it matters to masks and observations, not to the program.

    Attributes:
        path: Kinds of the passes that changed the module, in order.
        stopped: Whether `stop` was taken.
        failure: Why the last pass failed; empty if it did not fail. A failed state is terminal.
        node: The task's knowledge of the module; after a failure, of the module before it.
        before: The same of the module before the last step.
        tried: Kinds that have had no effect since the module last changed.
        last: Kind of the last step, -1 at the start.
        steps: Number of steps taken, including those without effect.
    """

    path: Path
    stopped: bool = False
    failure: str = ""
    node: N = field(compare=False, kw_only=True)
    before: N = field(compare=False, kw_only=True)
    tried: frozenset[int] = field(default=frozenset(), compare=False, kw_only=True)
    last: int = field(default=-1, compare=False, kw_only=True)
    steps: int = field(default=0, compare=False, kw_only=True)

    @property
    def terminal(self) -> bool:
        """Whether `stop` was taken or a pass failed."""
        return self.stopped or bool(self.failure)

    def fill_features(self, vector: NDArray[np.float32], passes: int) -> None:
        """Fill in the features of the passes.

        Args:
            vector: Zeros, shape [3 * passes]. It receives for each pass how often it changed the module
                (divided by 3, at most 1); then whether it ran last; then whether it has had no effect since
                the module last changed.
            passes: Number of passes; further kinds have no features.
        """
        for kind in set(self.path):
            vector[kind] = min(self.path.count(kind) / 3.0, 1.0)
        if 0 <= self.last < passes:
            vector[passes + self.last] = 1.0
        for kind in self.tried:
            vector[2 * passes + kind] = 1.0

    def moved(self, kind: int, *, stopped: bool) -> Self:
        """Return the state after a step that leaves the module as it is."""
        tried = self.tried if stopped else self.tried | {kind}
        node, steps = self.node, self.steps + 1
        return type(self)(self.path, stopped, node=node, before=node, tried=tried, last=kind, steps=steps)

    def after(self, kind: int, result: N | Failure | None) -> Self:
        """Return the state after a pass that led to another module, failed, or changed nothing (None)."""
        if result is None:
            return self.moved(kind, stopped=False)
        node, steps = self.node, self.steps + 1
        if isinstance(result, Failure):
            return type(self)(
                self.path, failure=result.reason, node=node, before=node, last=kind, steps=steps
            )
        return type(self)((*self.path, kind), node=result, before=node, last=kind, steps=steps)
