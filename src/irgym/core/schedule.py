"""Schedules: the actions taken from a task's initial state, with a text form that parses back."""

from dataclasses import dataclass, field
from typing import Any, TypeVar

from irgym.base.errors import ScheduleError
from irgym.core.actions import Action, ActionSpace
from irgym.core.task import Task

S = TypeVar("S")


@dataclass(frozen=True)
class Schedule:
    """A sequence of actions."""

    actions: tuple[Action, ...] = ()

    def then(self, action: Action) -> "Schedule":
        """Return this schedule with one more action."""
        return Schedule((*self.actions, action))

    def __len__(self) -> int:
        return len(self.actions)

    def text(self, space: ActionSpace) -> str:
        """Return the readable form: the actions' texts, separated by blanks."""
        return " ".join(space.text(action) for action in self.actions)

    @staticmethod
    def parse(text: str, space: ActionSpace) -> "Schedule":
        """Read what `text` wrote; commas between actions will do too.

        Raises:
            ScheduleError: An action does not exist.
        """
        return Schedule(tuple(space.parse(word) for word in text.replace(",", " ").split()))


def states_along(task: Task[S], schedule: Schedule) -> list[S]:
    """Return the states that `schedule` passes through, the initial one first.

    Raises:
        ScheduleError: An action does not apply; the message names it and its place.
    """
    states = [task.initial()]
    for place, action in enumerate(schedule.actions, start=1):
        state = states[-1]
        if not task.accepts(state, action):
            legal = task.space.options(task.mask(state))
            raise ScheduleError(
                f"action {place} of the schedule, {task.space.text(action)}, does not apply there: "
                f"choose among {legal or 'none (the schedule has stopped)'}"
            )
        states.append(task.step(state, action))
    return states


def replay(task: Task[S], schedule: Schedule) -> S:
    """Return the state that `schedule` leads to.

    Raises:
        ScheduleError: An action does not apply; the message names it and its place.
    """
    return states_along(task, schedule)[-1]


@dataclass(frozen=True)
class Candidate:
    """A scheduled program: a state of a task, and a schedule that leads to it.

    The nodes of a search are candidates, and so are its results: no schedule has to be replayed. Candidates
    of one task are equal if their schedules are; to compare states, use `Task.identity`.
    """

    state: Any = field(repr=False, compare=False)
    schedule: Schedule


def candidate_of(task: Task[Any], schedule: Schedule) -> Candidate:
    """Return the candidate of a schedule.

    Raises:
        ScheduleError: An action does not apply; the message names it and its place.
    """
    return Candidate(replay(task, schedule), schedule)


def original_of(task: Task[Any]) -> Candidate:
    """Return the original program as a candidate."""
    return Candidate(task.initial(), Schedule())
