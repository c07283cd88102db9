"""The toy of rewriting with times: costs are not known to states, but stages can be timed, and are drawn."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from rewriting import Rewriting, State, cost

from irgym.base.errors import IrgymError
from irgym.core.cost import Call, Job
from irgym.core.drawing import Arrow, Box, Drawing
from irgym.core.objective import TIME


@dataclass(frozen=True)
class Staged(Rewriting):
    objective = TIME

    def job(self, state: State) -> Job:
        return replace(super().job(state), known=None, objective="time")

    def stage_call(self, before: State, after: State) -> Call:
        return Call("staged:stages", (before, after))

    def drawing(self, state: State) -> Drawing:
        boxes = [Box(name, op, op, f"{name} of a chain") for name, op in state.chain]
        names = [box.name for box in boxes]
        arrows = tuple(Arrow(name, other, "a number") for name, other in pairwise(names))
        return Drawing(tuple(boxes), arrows, ("scale", "shift", "both"), "operators")


@dataclass
class Stages:
    """A bench that times stages: what they cost, in microseconds, with noise that is the same for all.

    Attributes:
        seconds: What a call takes by its clock.
        broken: Costs of programs that do not run.
    """

    seconds: float = 0.0
    broken: frozenset[float] = frozenset()
    calls: list[tuple[float, float]] = field(default_factory=list)

    def call(self, call: Call, timeout_s: float | None = None, told: Any = None) -> Any:
        before, after = (cost(state) for state in call.arguments)
        self.calls.append((before, after))
        if after in self.broken:
            raise IrgymError(f"a program of cost {after} does not run")
        return [(1e3 * before * noise, 1e3 * after) for noise in (0.97, 0.98, 0.99, 1.0, 1.01, 1.02, 1.03)]

    def clock(self) -> Callable[[], float]:
        return lambda: self.seconds * len(self.calls)
