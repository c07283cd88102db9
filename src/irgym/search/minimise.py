"""Shorter schedules for the same program (after CompilerGym's trajectory minimisation)."""

import math
import time
from collections.abc import Hashable, Sequence
from typing import Any

from irgym.base.errors import ScheduleError
from irgym.core.actions import Action
from irgym.core.schedule import Candidate, Schedule
from irgym.core.task import Task

MOST = 4000
"""Steps of trying to shorten a schedule after which it is left as it is."""


def minimise(task: Task[Any], candidate: Candidate, seconds: float = math.inf) -> Candidate:
    """Leave out actions, and pairs of neighbours, that the resulting program does not need.

    Nothing is evaluated: states with equal keys are equal programs.

    Args:
        task: The program.
        candidate: The program and a schedule that applies.
        seconds: Time for it.

    Returns:
        The same program with a schedule from which no action and no pair of neighbours can be left out; if
        finding out takes more than `MOST` steps or the time, as far as that goes.

    Raises:
        ScheduleError: The schedule does not apply, since a compiler's pass has not always the same result.
    """
    due = time.monotonic() + seconds
    actions = list(candidate.schedule.actions)
    states = _states(task, task.initial(), actions)
    if not states:
        raise ScheduleError(
            f"{task.uri}: the schedule that was found does not apply when it is run again, since a pass of "
            "the compiler does not always give the same program: search with another seed; it is "
            f"{candidate.schedule.text(task.space)}"
        )
    target = task.key(states[-1])
    direct = _without_detours(task, actions, states)
    if len(direct) < len(actions) and _leads(task, path := _states(task, states[0], direct), target):
        actions, states = direct, path
    changed, steps = True, 0
    while changed:
        changed = False
        place = len(actions) - 1
        while place >= 0 and steps < MOST and time.monotonic() < due:
            for span in (1, 2):
                steps += len(actions) - place - span
                tail = _states(task, states[place], actions[place + span :])
                if _leads(task, tail, target):
                    actions[place : place + span] = []
                    states[place:] = tail
                    changed = True
                    break
            place = min(place, len(actions)) - 1
    return Candidate(states[-1], Schedule(tuple(actions)))


def _without_detours(task: Task[Any], actions: Sequence[Action], states: Sequence[Any]) -> list[Action]:
    """Return the actions without those between two visits to one state, actions without effect among them."""
    identities = [task.identity(state) for state in states]
    last: dict[Hashable, int] = {identity: place for place, identity in enumerate(identities)}
    direct: list[Action] = []
    place = last[identities[0]]
    while place < len(actions):
        direct.append(actions[place])
        place = last[identities[place + 1]]
    return direct


def _leads(task: Task[Any], states: Sequence[Any], target: str) -> bool:
    """Say whether the states end at the program `target`."""
    return bool(states) and task.key(states[-1]) == target


def _states(task: Task[Any], state: Any, actions: Sequence[Action]) -> list[Any]:
    """Return the states from `state` on along `actions`; none where an action does not apply."""
    states = [state]
    for action in actions:
        if not task.accepts(states[-1], action):
            return []
        states.append(task.step(states[-1], action))
    return states
