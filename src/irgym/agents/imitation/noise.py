"""Demonstrations with noise: good schedules that recover from random actions.

A policy cloned from good schedules alone knows only their states: a single wrong action leads it to states
without demonstrations (DART: Laskey et al., arXiv 1703.09327).
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
"""Attempts at adding noise to a demonstration."""


def noisy(shown: Demonstration, rng: np.random.Generator) -> Demonstration | None:
    """Return a schedule with random actions in between, marked as noise; None if no attempt succeeds.

    It has the demonstrated actions as far as they apply, and results in the same program.
    """
    task = shown.task
    wanted = task.key(replay(task, shown.schedule))
    for _ in range(TRIES):
        found, end = _drawn(shown, rng)
        if found.noise and task.key(end) == wanted:
            return found
    return None


def _drawn(shown: Demonstration, rng: np.random.Generator) -> tuple[Demonstration, Any]:
    """Return the schedule with random actions in between, and its final state."""
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
    """Return a random action that does not end the episode; None if there is none."""
    mask = task.space.onward(task.mask(state))
    return task.space.sample(mask, rng) if task.space.takeable(mask) else None
