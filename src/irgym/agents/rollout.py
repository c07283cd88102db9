"""Rollouts: all episodes in lockstep, one policy call a step and one evaluator call for everything.

No action depends on a cost, so all costs are asked for at the end, when the evaluator can spread and
deduplicate the most. The steps of all episodes are taken together too, so that a task can spread them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from irgym.agents.problem import Problem
from irgym.agents.trajectories import FloatArray, Trajectories
from irgym.core.actions import Action, BoolArray
from irgym.core.cost import Job
from irgym.core.errors import IrgymError
from irgym.core.reward import EpisodeCosts
from irgym.core.task import Task
from irgym.nets.encoders import Batch, Encoder
from irgym.nets.heads import Draw
from irgym.nets.layout import ActionLayout, IntArray

Choose = Callable[[Batch, BoolArray], Draw]


@dataclass(frozen=True)
class Outcomes:
    """How N episodes went.

    Attributes:
        first: Shape [N]; cost of the initial state, infinite where its evaluation failed.
        last: Shape [N]; cost of the final state.
        best: Shape [N]; least cost among the states measured.
        returns: Shape [N]; sum of the rewards.
        steps: Number of steps of all episodes.
        evaluations: Number of distinct states whose cost was asked for.
        cached: How many of them the cost cache answered.
        failures: How many of them had no cost.
    """

    first: NDArray[np.float64]
    last: NDArray[np.float64]
    best: NDArray[np.float64]
    returns: NDArray[np.float64]
    steps: int
    evaluations: int
    cached: int
    failures: int


def draw_tasks(tasks: Sequence[Task[Any]], count: int, rng: np.random.Generator) -> list[Task[Any]]:
    """Return `count` tasks, none again before all were drawn."""
    rounds = -(-count // len(tasks))
    places = np.concatenate([rng.permutation(len(tasks)) for _ in range(rounds)])[:count]
    return [tasks[place] for place in places.tolist()]


def privileged_of(tasks: Sequence[Task[Any]], states: Sequence[Any]) -> FloatArray:
    """Return the analysis of a state of each of the tasks, shape [B, K].

    Raises:
        IrgymError: A task has no analysis.
    """
    rows: list[NDArray[np.float64]] = []
    for task, state in zip(tasks, states, strict=True):
        row = task.analysis(state)
        if row is None:
            raise IrgymError(f"no cheap model analyses the cost of {task.uri}: set value_features to false")
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
        choose: Draws choices for a batch of observations and its mask of shape [B, S, W].
        privileged: Whether the trajectories hold what only a critic sees: the tasks' analysis.

    Raises:
        IrgymError: No task lets any action be taken, or one has no analysis.
    """
    reward = problem.reward
    if privileged or reward.shaped:
        analysed = {id(task): task.analysed() for task in tasks}
        tasks = [analysed[id(task)] for task in tasks]
    every_state = reward.every_step or reward.shaped
    steps, trails = _play(tasks, encoder, layout, choose, every_state=every_state, privileged=privileged)
    if not steps:
        raise IrgymError("no action applies to any of the programs: choose other programs")
    episode = np.concatenate([step.episodes for step in steps]).astype(np.int64)
    number = np.repeat(np.arange(len(steps)), [len(step.episodes) for step in steps])
    lengths = np.bincount(episode, minlength=len(tasks))
    rewards, outcomes = _reward(tasks, trails, lengths, problem)
    trajectories = Trajectories(
        observations=encoder.join([step.observations for step in steps]),
        legal=np.concatenate([step.legal for step in steps]),
        choices=np.concatenate([step.draw.choices for step in steps]),
        policy_logp=np.concatenate([step.draw.policy_logp for step in steps]),
        behaviour_logp=np.concatenate([step.draw.behaviour_logp for step in steps]),
        rewards=rewards[episode, number],
        episode=episode,
        step=number,
        privileged=np.concatenate([step.privileged for step in steps]),
    )
    return trajectories, outcomes


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
        legal = layout.legal([task.mask(state) for task, state in zip(playing, states, strict=True)])
        seen = privileged_of(playing, states) if privileged else np.zeros((len(live), 0), dtype=np.float32)
        draw = choose(batch, legal)
        steps.append(_Step(batch, legal, draw, live, seen))
        states = _advance(playing, states, layout.actions(draw.choices))
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
    for sort in classes:
        own = [type(task) is sort for task in tasks]
        chosen = list(compress(tasks, own)), list(compress(states, own)), list(compress(actions, own))
        for place, state in zip(compress(range(len(tasks)), own), sort.step_many(*chosen), strict=True):
            stepped[place] = state
    return stepped


class _Found(NamedTuple):
    """What measuring gave: costs of each episode's states, first to last, and some counts."""

    costs: list[list[float]]
    evaluations: int
    cached: int
    failures: int


def _measure(tasks: Sequence[Task[Any]], trails: Sequence[Sequence[Any]], problem: Problem) -> _Found:
    """Return the cost of every state of the trails, or of the first and the last where they suffice."""
    places: dict[tuple[int, Any], int] = {}
    jobs: list[Job] = []
    found: list[list[int]] = []
    for task, trail in zip(tasks, trails, strict=True):
        row: list[int] = []
        for state in trail if problem.reward.every_step or len(trail) < 2 else (trail[0], trail[-1]):
            place = places.setdefault((id(task), state), len(jobs))
            if place == len(jobs):
                jobs.append(task.job(state))
            row.append(place)
        found.append(row)
    measurements = problem.evaluator.evaluate(jobs)
    costs = [measurement.cost for measurement in measurements]
    cached = sum(measurement.cached for measurement in measurements)
    failures = sum(not measurement.ok for measurement in measurements)
    return _Found([[costs[place] for place in row] for row in found], len(jobs), cached, failures)


def _reward(
    tasks: Sequence[Task[Any]], trails: Sequence[Sequence[Any]], lengths: IntArray, problem: Problem
) -> tuple[FloatArray, Outcomes]:
    """Return the rewards, shape [N, longest episode], and the outcomes."""
    found = _measure(tasks, trails, problem)
    peak = problem.peak_gflops
    ideals = {id(task): None if peak is None else task.ideal_cost(peak) for task in tasks}
    rewards = np.zeros((len(tasks), max(1, int(lengths.max()))), dtype=np.float32)
    for number, (task, costs, length) in enumerate(zip(tasks, found.costs, lengths.tolist(), strict=True)):
        # Without a first cost nothing is relative to anything: such an episode is rewarded with 0.
        if length == 0 or math.isinf(costs[0]):
            continue
        potentials: list[float] = []
        if problem.reward.shaped:
            potentials = [task.potential(state) for state in trails[number]]
        path = costs if problem.reward.every_step else [*[costs[0]] * length, costs[-1]]
        rewards[number, :length] = _episode_rewards(problem, path, potentials, ideals[id(task)])
    return rewards, Outcomes(
        first=np.array([costs[0] for costs in found.costs]),
        last=np.array([costs[-1] for costs in found.costs]),
        best=np.array([min(costs) for costs in found.costs]),
        returns=rewards.sum(axis=1, dtype=np.float64),
        steps=int(lengths.sum()),
        evaluations=found.evaluations,
        cached=found.cached,
        failures=found.failures,
    )


def _episode_rewards(
    problem: Problem, costs: Sequence[float], potentials: Sequence[float], ideal: float | None
) -> list[float]:
    """Return the rewards of one episode from the costs of all its states, of which the first is finite.

    Args:
        problem: Gives the reward.
        costs: One for each state; the first one again where a state was not measured.
        potentials: One for each state, or none.
        ideal: Lower bound on the cost.
    """
    reward, last = problem.reward, len(costs) - 1
    rewards = [0.0] * last
    # Without either, only the end of an episode is rewarded.
    dense = reward.every_step or reward.shaped
    for place in range(0 if dense else last - 1, last):
        shaping = (potentials[place], potentials[place + 1]) if potentials else (0.0, 0.0)
        step = EpisodeCosts(costs[0], costs[place], costs[place + 1], ideal, shaping)
        rewards[place] = reward(step, place == last - 1)
    return rewards
