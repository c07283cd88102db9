"""Limits of episodes: how many steps they have, and which actions may be taken in them.

They concern whoever chooses actions: searches, policies, learners. Programs, costs and schedules are those of
the task itself, so a schedule found within limits replays without them.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

import numpy as np

from irgym.base.errors import IrgymError
from irgym.base.values import Range
from irgym.core.actions import Action, Mask
from irgym.core.allowed import Allowed, steps_of
from irgym.core.candidates import CandidateObservation
from irgym.core.capabilities import (
    AnalysedForm,
    Demonstrations,
    Finishing,
    Parts,
    Sketches,
    Turns,
    ask,
)
from irgym.core.cost import Call, Job
from irgym.core.graph_observation import GraphObservation
from irgym.core.lockstep import begin_all, step_all
from irgym.core.observation import ObservationView
from irgym.core.schedule import Schedule
from irgym.core.target import Target
from irgym.core.task import Task

C = TypeVar("C")

ALL = "all"
"""The text that allows all actions, whatever a policy was trained with."""

REMEMBERED = 4096
"""Masks that a limited task remembers."""


@dataclass(frozen=True)
class Limits:
    """Limits of episodes, as a user gives them and as files of policies hold them.

    Attributes:
        horizon: Number of steps after which an episode is cut off; None for the task's. A program that is
            made of smaller ones is scheduled by an episode on each.
        actions: The actions that may be taken: `all`, or in the form that `steps_of` reads; None: open.
    """

    horizon: Annotated[int | None, Range(low=1)] = None
    actions: str | None = None

    def over(self, others: "Limits") -> "Limits":
        """Return these, with what they leave open as others say it."""
        return Limits(
            others.horizon if self.horizon is None else self.horizon,
            others.actions if self.actions is None else self.actions,
        )


UNLIMITED = Limits()
"""Limits that change nothing."""


def limits_of(task: Task[Any]) -> Limits:
    """Return the limits of a task."""
    return task.limits if isinstance(task, Limited) else UNLIMITED


def limited(task: Task[Any], limits: Limits) -> Task[Any]:
    """Return a task within limits; those that it has already take precedence.

    Raises:
        IrgymError: There is no such action, or states do not count the steps that the limits tell apart.
    """
    if isinstance(task, Limited):
        return limited(task.wrapped, task.limits.over(limits))
    return task if limits == UNLIMITED else Limited(task, limits)


def unlimited(task: Task[Any]) -> Task[Any]:
    """Return a task without its limits."""
    return task.wrapped if isinstance(task, Limited) else task


def within(task: Task[Any], schedule: Schedule) -> bool:
    """Say whether a schedule keeps to the limits of a task."""
    if not isinstance(task, Limited):
        return True
    return len(schedule) <= task.horizon and len(task.kept(schedule.actions)) == len(schedule)


def kept(task: Task[Any], schedule: Schedule) -> Schedule:
    """Return what the limits of a task leave of a schedule."""
    return Schedule(tuple(task.kept(schedule.actions))) if isinstance(task, Limited) else schedule


def is_ordered(task: Task[Any]) -> bool:
    """Say whether a task allows different actions at different steps: none can be left out of a schedule."""
    return isinstance(task, Limited) and task.ordered


class Limited(Task[Any]):
    """A task within limits: its states and schedules are the task's, its masks and horizon are not.

    Where the limits leave no action of those that apply, the state is terminal.

    Args:
        task: The task.
        limits: Its limits.

    Attributes:
        limits: Its limits.
        ordered: Whether different actions are allowed at different steps.

    Raises:
        IrgymError: As for `limited`.
    """

    def __init__(self, task: Task[Any], limits: Limits) -> None:
        self._task = task
        self.limits = limits
        self.uri = task.uri
        self.space = task.space
        self.horizon = task.horizon if limits.horizon is None else limits.horizon
        self.objectives = task.objectives
        self.objective = task.objective
        self.forms = task.forms
        self.gradual = task.gradual
        self.runs_beside = task.runs_beside
        free = limits.actions is None or limits.actions == ALL
        self._steps: Sequence[Allowed] = () if free else steps_of(str(limits.actions), task.space)
        self.ordered = len(self._steps) > 1
        self._turns = ask(task, Turns)
        self._masks: dict[int, tuple[Any, Mask]] = {}
        if self.ordered and self._turns is None:
            scheme = task.uri.partition(":")[0]
            raise IrgymError(
                f"the states of {scheme} do not count steps, so the order {limits.actions!r} cannot be kept: "
                "leave out the semicolons"
            )

    def _allowed(self, state: Any) -> Allowed | None:
        """Return what is allowed in a state; None for everything."""
        if not self._steps:
            return None
        if self._turns is None or not self.ordered:
            return self._steps[0]
        return self._steps[min(self._turns.taken(state), len(self._steps) - 1)]

    def mask(self, state: Any) -> Mask:
        """Return which of the allowed actions apply."""
        allowed = self._allowed(state)
        if allowed is None:
            return self.wrapped.mask(state)
        held = self._masks.get(id(state))
        if held is None:  # which keeps the state, so that no other gets its address
            if len(self._masks) >= REMEMBERED:
                self._masks.clear()
            held = self._masks[id(state)] = (state, allowed.restricted(self.wrapped.mask(state)))
        return held[1]

    def terminal(self, state: Any) -> bool:
        """Say whether the episode ended here, or no allowed action applies."""
        return self.wrapped.terminal(state) or (
            bool(self._steps) and not self.space.takeable(self.mask(state))
        )

    def accepts(self, state: Any, action: Action) -> bool:
        """Say whether the task itself can step an action."""
        return self.wrapped.accepts(state, action)

    def initial(self) -> Any:
        """Return the original program."""
        return self.wrapped.initial()

    def step(self, state: Any, action: Action) -> Any:
        """Return the state after an action."""
        return self.wrapped.step(state, action)

    @classmethod
    def step_many(
        cls, tasks: Sequence[Task[Any]], states: Sequence[Any], actions: Sequence[Action]
    ) -> list[Any]:
        """Step states of the tasks within."""
        return step_all([cast(Limited, task).wrapped for task in tasks], states, actions)

    @classmethod
    def begin_many(
        cls, tasks: Sequence[Task[Any]], states: Sequence[Any], actions: Sequence[Action]
    ) -> Callable[[], list[Any]]:
        """Begin to step states of the tasks within."""
        return begin_all([cast(Limited, task).wrapped for task in tasks], states, actions)

    @property
    def wrapped(self) -> Task[Any]:
        """The task within."""
        return self._task

    @property
    def views(self) -> Mapping[str, ObservationView]:
        """The observations by name, without the candidates that may not be taken."""
        return self._views

    @cached_property
    def _views(self) -> Mapping[str, ObservationView]:
        return {name: _limited_view(view) for name, view in self.wrapped.views.items()}

    def shown(self, observation: Any, state: Any) -> Any:
        """Return an observation of a state without the candidates that may not be taken."""
        allowed = self._allowed(state)
        if allowed is None or not self.space.has_candidates:
            return observation
        mask = self.wrapped.mask(state)
        places = allowed.kept(mask)
        return observation if len(places) == len(mask.candidates) else _keeping(observation, places)

    def key(self, state: Any) -> str:
        """Return the task's key."""
        return self.wrapped.key(state)

    def job(self, state: Any) -> Job:
        """Return the task's job."""
        return self.wrapped.job(state)

    def validation(self, state: Any, inputs: int, seed: int) -> Call:
        """Return the task's validation."""
        return self.wrapped.validation(state, inputs, seed)

    def describe(self, state: Any) -> str:
        """Return the program in a state as text."""
        return self.wrapped.describe(state)

    def export(self, state: Any, path: Path) -> list[Path]:
        """Write the program in a state."""
        return self.wrapped.export(state, path)

    def under(self, objective: str | None) -> "Limited":
        """Return the same program within the same limits, with another objective."""
        return Limited(self.wrapped.under(objective), self.limits)

    @property
    def target(self) -> Target | None:
        """Target of its code."""
        return self.wrapped.target

    def identity(self, state: Any) -> Hashable:
        """Return what searches tell states apart by; the number of steps counts where it matters."""
        own = self.wrapped.identity(state)
        return (own, self._turns.taken(state)) if self.ordered and self._turns is not None else own

    def kept(self, actions: Sequence[Action]) -> list[Action]:
        """Return those of some actions that apply in turn and are allowed, at most `horizon`."""
        state, taken = self.initial(), list[Action]()
        for action in actions:
            if len(taken) >= self.horizon or self.terminal(state):
                break
            if self.space.allows(self.mask(state), action):
                state = self.step(state, action)
                taken.append(action)
        return taken

    # Capabilities that differ within limits; `ask` offers them only where the task within does.

    def sketch(self, rng: np.random.Generator) -> Sequence[Action]:
        """Return what the limits allow of a sketch of the task."""
        return self.kept(_capability(self.wrapped, Sketches).sketch(rng))

    def recorded_actions(self, key: str) -> Sequence[Action] | None:
        """Return the actions to a state with that key; None where they break the limits."""
        actions = _capability(self.wrapped, Demonstrations).recorded_actions(key)
        return actions if actions is not None and within(self, Schedule(tuple(actions))) else None

    def analysed(self) -> Task[Any]:
        """Return this task in a form that has the analysis of every state at hand."""
        return Limited(_capability(self.wrapped, AnalysedForm).analysed(), self.limits)

    def parts(self) -> Sequence[Task[Any]]:
        """Return the smaller programs, within the same limits; equal ones stay one task."""
        parts = _capability(self.wrapped, Parts).parts()
        made = {id(part): Limited(part, self.limits) for part in parts}
        return [made[id(part)] for part in parts]

    def joined(self, schedules: Sequence[Schedule]) -> Schedule:
        """Return the schedule of the whole program."""
        return _capability(self.wrapped, Parts).joined(schedules)

    def finishing(self, state: Any) -> Schedule:
        """Return the compiler's final passes; none where the actions are restricted."""
        return Schedule() if self._steps else _capability(self.wrapped, Finishing).finishing(state)


def _capability(task: Task[Any], capability: type[C]) -> C:
    found = ask(task, capability)
    assert found is not None
    return found


def _limited_view(view: ObservationView) -> ObservationView:
    """Return a view for limited tasks, which environments see as the tasks within."""
    value, of_cost = view.value, view.of_cost

    def seen(task: Limited, state: Any) -> Any:
        assert value is not None
        return task.shown(value(task.wrapped, state), state)

    def seen_of_cost(task: Limited, cost: float) -> Any:
        assert of_cost is not None
        return of_cost(task.wrapped, cost)

    return replace(
        view, value=None if value is None else seen, of_cost=None if of_cost is None else seen_of_cost
    )


def _keeping(observation: Any, places: Sequence[int]) -> Any:
    """Return an observation with some of its candidates, where it has any."""
    if isinstance(observation, CandidateObservation):
        return replace(observation, candidates=observation.candidates[list(places)])
    if isinstance(observation, GraphObservation):
        new = np.full(len(observation.candidates), -1, dtype=np.int64)
        new[list(places)] = np.arange(len(places))
        members = observation.members[new[observation.members[:, 0]] >= 0].copy()
        members[:, 0] = new[members[:, 0]]
        return replace(observation, candidates=observation.candidates[list(places)], members=members)
    return observation
