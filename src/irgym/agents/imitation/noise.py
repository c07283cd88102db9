"""Demonstrations with noise: what a good schedule goes on with after actions that it did not choose.

A policy that is cloned from good schedules alone knows no states but theirs: one other action, and it is
where nothing was shown (DART: Laskey et al., arXiv 1703.09327).
"""

from dataclasses import replace
from typing import Any

import numpy as np

from irgym.agents.imitation.demonstrations import Demonstration
from irgym.core.actions import Action
from irgym.core.schedule import Schedule, replay
from irgym.core.task import Task

SHARE = 0.15
"""Probability that a random action comes before an action of the schedule."""

TRIES = 8
"""How often noise is drawn for a demonstration before it is given up."""


def noisy(shown: Demonstration, rng: np.random.Generator) -> Demonstration | None:
    """Return a schedule with random actions between, which are not to be learnt; None where none was found.

    It makes the same program as the schedule that was shown, whose actions it has as far as they apply.
    """
    task = shown.task
    wanted = task.key(replay(task, shown.schedule))
    for _ in range(TRIES):
        found, end = _drawn(shown, rng)
        if found.noise and task.key(end) == wanted:
            return found
    return None


def _drawn(shown: Demonstration, rng: np.random.Generator) -> tuple[Demonstration, Any]:
    """Return the schedule with random actions between, and the state that it leads to, whatever that is."""
    task = shown.task
    state, taken, noise = task.initial(), list[Action](), list[int]()
    for action in shown.schedule.actions:
        room = len(taken) < task.horizon - 1
        other = _other(task, state, rng) if room and rng.random() < SHARE else None
        if other is not None:
            noise.append(len(taken))
            taken.append(other)
            state = task.step(state, other)
        if len(taken) < task.horizon and task.accepts(state, action):
            taken.append(action)
            state = task.step(state, action)
    return replace(shown, schedule=Schedule(tuple(taken)), noise=frozenset(noise)), state


def _other(task: Task[Any], state: Any, rng: np.random.Generator) -> Action | None:
    """Return a random action that ends nothing; None where there is none."""
    mask = task.space.onward(task.mask(state))
    return task.space.sample(mask, rng) if task.space.takeable(mask) else None
