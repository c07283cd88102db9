"""Rollouts: all episodes in lockstep, one policy call a step and one evaluator call for everything.

No action depends on a cost, so all costs are asked for at the end, when the evaluator can spread and
deduplicate the most. The steps of all episodes are taken together too, so that a task can spread them.
"""

from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from irgym.agents.episodes import Episodes, Outcomes, settle
from irgym.agents.problem import Problem
from irgym.agents.trajectories import FloatArray, Trajectories, join_legal
from irgym.core import capabilities
from irgym.core.actions import Action, BoolArray
from irgym.core.cost import Job
from irgym.core.errors import IrgymError
from irgym.core.reward import Reward
from irgym.core.task import Task
from irgym.nets.encoders import Batch, Encoder
from irgym.nets.heads import Draw
from irgym.nets.layout import ActionLayout

Choose = Callable[[Batch, BoolArray], Draw]
T = TypeVar("T")


def draw_tasks(tasks: Sequence[T], count: int, rng: np.random.Generator) -> list[T]:
    """Return `count` tasks, or what stands for them, none again before all were drawn."""
    rounds = -(-count // len(tasks))
    places = np.concatenate([rng.permutation(len(tasks)) for _ in range(rounds)])[:count]
    return [tasks[place] for place in places.tolist()]


def privileged_of(tasks: Sequence[Task[Any]], states: Sequence[Any]) -> FloatArray:
    """Return what costs of a state of each of the tasks can be told from, shape [B, K].

    Raises:
        IrgymError: Nothing is known of a task.
    """
    rows: list[NDArray[np.float64]] = []
    for task, state in zip(tasks, states, strict=True):
        row = capabilities.cost_features(task, state)
        if row is None:
            raise IrgymError(f"{task.uri} has no cost features: set value_features to false")
        rows.append(row)
    return np.stack(rows).astype(np.float32)


class _Step(NamedTuple):
    """One step of all episodes that were still running."""

    observations: Batch
    legal: BoolArray
    draw: Draw
    episodes: list[int]
    privileged: FloatArray


def rollout(
    tasks: Sequence[Task[Any]],
    problem: Problem,
    encoder: Encoder,
    layout: ActionLayout,
    choose: Choose,
    *,
    privileged: bool = False,
) -> tuple[Trajectories, Outcomes]:
    """Run one episode on each of `tasks`.

    Args:
        tasks: At least one; they may repeat.
        problem: Gives the evaluator and the reward; its own tasks are not used.
        encoder: Makes batches of observations.
        layout: Turns choices into actions.
        choose: Draws choices for a batch of observations and its mask, see `ActionLayout.legal`.
        privileged: Whether the trajectories hold what only a critic sees: the tasks' cost features.

    Raises:
        IrgymError: No task lets any action be taken, or one has no cost features.
    """
    episodes = play(tasks, problem.reward, encoder, layout, choose, privileged=privileged)
    measurements = problem.evaluator.evaluate(episodes.jobs)
    return settle(episodes, measurements, problem.reward, ideal_costs(tasks, problem.peak_gflops))


def ideal_costs(tasks: Sequence[Task[Any]], peak_gflops: float | None) -> list[float | None]:
    """Return a lower bound on each task's cost; None where none is known."""
    if peak_gflops is None:
        return [None] * len(tasks)
    ideals = {id(task): capabilities.ideal_cost(task, peak_gflops) for task in tasks}
    return [ideals[id(task)] for task in tasks]


def play(
    tasks: Sequence[Task[Any]],
    reward: Reward,
    encoder: Encoder,
    layout: ActionLayout,
    choose: Choose,
    *,
    privileged: bool = False,
) -> Episodes:
    """Play one episode on each of `tasks`, without asking for any cost.

    Args:
        tasks: At least one; they may repeat.
        reward: Says of which states the costs and potentials are needed.
        encoder: Makes batches of observations.
        layout: Turns choices into actions.
        choose: Draws choices for a batch of observations and its mask, see `ActionLayout.legal`.
        privileged: Whether the trajectories hold what only a critic sees.

    Raises:
        IrgymError: No task lets any action be taken, or one has no cost features.
    """
    if privileged or reward.shaped:
        analysed = {id(task): capabilities.analysed(task) for task in tasks}
        tasks = [analysed[id(task)] for task in tasks]
    every_state = reward.every_step or reward.shaped
    steps, trails = _play(tasks, encoder, layout, choose, every_state=every_state, privileged=privileged)
    if not steps:
        raise IrgymError("no action applies to any of the programs: choose other programs")
    episode = np.concatenate([step.episodes for step in steps]).astype(np.int64)
    trajectories = Trajectories(
        observations=encoder.join([step.observations for step in steps]),
        legal=join_legal([step.legal for step in steps]),
        choices=np.concatenate([step.draw.choices for step in steps]),
        policy_logp=np.concatenate([step.draw.policy_logp for step in steps]),
        behaviour_logp=np.concatenate([step.draw.behaviour_logp for step in steps]),
        rewards=np.zeros(len(episode), dtype=np.float32),
        episode=episode,
        step=np.repeat(np.arange(len(steps)), [len(step.episodes) for step in steps]),
        privileged=np.concatenate([step.privileged for step in steps]),
    )
    jobs, asked = _jobs(tasks, trails, every_step=reward.every_step)
    potentials: list[list[float]] = [[] for _ in tasks]
    if reward.shaped:
        potentials = [
            [capabilities.potential(task, state) for state in trail]
            for task, trail in zip(tasks, trails, strict=True)
        ]
    return Episodes(trajectories, jobs, asked, potentials)


def _play(
    tasks: Sequence[Task[Any]],
    encoder: Encoder,
    layout: ActionLayout,
    choose: Choose,
    *,
    every_state: bool,
    privileged: bool,
) -> tuple[list[_Step], list[list[Any]]]:
    """Return the steps, and for each episode all its states or the first and the last."""
    initial = {id(task): task.initial() for task in tasks}
    trails = [[initial[id(task)]] for task in tasks]
    live: list[int] = [
        place for place, task in enumerate(tasks) if task.horizon > 0 and not task.terminal(initial[id(task)])
    ]
    playing = [tasks[place] for place in live]
    states = [trails[place][0] for place in live]
    steps: list[_Step] = []
    while live:
        batch = encoder.collate([task.observe(state) for task, state in zip(playing, states, strict=True)])
        masks = [task.mask(state) for task, state in zip(playing, states, strict=True)]
        legal = layout.legal(masks)
        seen = privileged_of(playing, states) if privileged else np.zeros((len(live), 0), dtype=np.float32)
        draw = choose(batch, legal)
        steps.append(_Step(batch, legal, draw, live, seen))
        states = _advance(playing, states, layout.actions(draw.choices, masks))
        running = [
            len(steps) < task.horizon and not task.terminal(state)
            for task, state in zip(playing, states, strict=True)
        ]
        if every_state or not all(running):
            for place, state, going in zip(live, states, running, strict=True):
                if every_state or not going:
                    trails[place].append(state)
        if not all(running):
            states = list(compress(states, running))
            live = list(compress(live, running))
            playing = list(compress(playing, running))
    return steps, trails


def _advance(tasks: Sequence[Task[Any]], states: Sequence[Any], actions: Sequence[Action]) -> list[Any]:
    """Step all states, those of one class of tasks in one call."""
    classes = {type(task) for task in tasks}
    if len(classes) == 1:
        return classes.pop().step_many(tasks, states, actions)
    stepped: list[Any] = list(states)
    for kind in classes:
        own = [type(task) is kind for task in tasks]
        chosen = list(compress(tasks, own)), list(compress(states, own)), list(compress(actions, own))
        for place, state in zip(compress(range(len(tasks)), own), kind.step_many(*chosen), strict=True):
            stepped[place] = state
    return stepped


def _jobs(
    tasks: Sequence[Task[Any]], trails: Sequence[Sequence[Any]], *, every_step: bool
) -> tuple[list[Job], list[list[int]]]:
    """Return requests for the costs that rewards need, and the places among them of each trail's states."""
    places: dict[tuple[int, Any], int] = {}
    jobs: list[Job] = []
    asked: list[list[int]] = []
    for task, trail in zip(tasks, trails, strict=True):
        row: list[int] = []
        for state in trail if every_step or len(trail) < 2 else (trail[0], trail[-1]):
            place = places.setdefault((id(task), task.identity(state)), len(jobs))
            if place == len(jobs):
                jobs.append(task.job(state))
            row.append(place)
        asked.append(row)
    return jobs, asked
