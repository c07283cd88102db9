"""Cases: a task, a schedule and the states along it, as the rules look at them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from irgym.core.actions import Action, Mask
from irgym.core.bench import Bench
from irgym.core.schedule import Schedule
from irgym.core.task import Task
from irgym.measure.evaluators import identity_of

DRAWN = 4
"""Actions that a rule tries in a state."""


class Snapshot(NamedTuple):
    """All that a task tells of a state, as values that later steps cannot change."""

    key: str
    description: str
    mask: tuple[bytes, bytes, tuple[tuple[int, str], ...]]
    terminal: bool
    job: tuple[str, ...]

    def difference(self, other: "Snapshot") -> str:
        """Return the name of the first field in which two snapshots differ; empty where they are equal."""
        return next((name for name in self._fields if getattr(self, name) != getattr(other, name)), "")


def snapshot(task: Task[Any], state: Any) -> Snapshot:
    """Return what a task tells of a state."""
    mask = task.mask(state)
    seen = mask.kinds.tobytes(), mask.params.tobytes(), tuple(mask.candidates)
    return Snapshot(
        task.key(state), task.describe(state), seen, task.terminal(state), identity_of(task.job(state))
    )


def seen_in(task: Task[Any], state: Any) -> dict[str, Any]:
    """Return the observations of policies by the name of the view, without views of costs."""
    return {view.name: view.seen(task, state) for view in task.views.values() if view.value is not None}


@dataclass(frozen=True)
class Case:
    """A schedule of a task.

    Attributes:
        task: The task.
        actions: The actions from its initial state.
        seed: Seed of all that a rule draws.
        bench: Measures states; None where nothing is to be measured.
    """

    task: Task[Any]
    actions: tuple[Action, ...]
    seed: int
    bench: Bench | None = None

    @cached_property
    def state(self) -> Any:
        """The state after the actions, which are stepped from the initial state."""
        state = self.task.initial()
        for action in self.actions:
            state = self.task.step(state, action)
        return state

    @cached_property
    def mask(self) -> Mask:
        """The mask of the state."""
        return self.task.mask(self.state)

    @cached_property
    def seen(self) -> Mapping[str, Any]:
        """The observations of policies by the name of the view, without views of costs."""
        return seen_in(self.task, self.state)

    @cached_property
    def elements(self) -> Mapping[str, Any]:
        """The element of the Gymnasium space of each view; costs are 1."""
        return {
            name: view.shown(self.seen[name])
            if name in self.seen
            else view.element(self.task, self.state, lambda: 1.0)
            for name, view in self.task.views.items()
        }

    @property
    def schedule(self) -> Schedule:
        """The actions as a schedule."""
        return Schedule(self.actions)

    @property
    def rng(self) -> np.random.Generator:
        """A generator that draws the same numbers for each rule."""
        return np.random.default_rng([self.seed, len(self.actions)])

    @cached_property
    def legal(self) -> Sequence[Action]:
        """Some distinct legal actions: those that end a turn or the episode, and `DRAWN` others at most."""
        space, mask, rng = self.task.space, self.mask, self.rng
        kinds = space.takeable(mask)
        if not kinds:
            return ()
        ends = [Action(kind) for kind in kinds if space.kinds[kind].ends]
        drawn = [space.sample(mask, rng) for _ in range(DRAWN)]
        return tuple(dict.fromkeys([*ends, *drawn]))
