"""Shorter schedules for the same program (after CompilerGym's trajectory minimisation)."""

from collections.abc import Sequence
from typing import Any

from irgym.core.actions import Action
from irgym.core.schedule import Schedule
from irgym.core.task import Task


def minimise(task: Task[Any], schedule: Schedule) -> Schedule:
    """Leave out actions, and pairs of neighbours, that the resulting program does not need.

    Nothing is evaluated: equal `Job.schedule` texts mean equal programs.

    Args:
        task: The program.
        schedule: A schedule that applies.

    Returns:
        A schedule to the same program, from which no action and no pair of neighbours can be left out.
    """
    actions = list(schedule.actions)
    states = [task.initial()]
    for action in actions:
        states.append(task.step(states[-1], action))
    target = task.job(states[-1]).schedule
    place = len(actions) - 1
    while place >= 0:
        for span in (1, 2):
            tail = _states(task, states[place], actions[place + span :])
            if tail and task.job(tail[-1]).schedule == target:
                actions[place : place + span] = []
                states[place:] = tail
                place = len(actions)
                break
        place -= 1
    return Schedule(tuple(actions))


def _states(task: Task[Any], state: Any, actions: Sequence[Action]) -> list[Any]:
    """Return the states from `state` on along `actions`; none where an action does not apply."""
    states = [state]
    for action in actions:
        if not task.space.allows(task.mask(states[-1]), action):
            return []
        states.append(task.step(states[-1], action))
    return states
