"""Rollouts: all episodes in lockstep, one policy call a step and one evaluator call for everything.

No action depends on a cost, so all costs are asked for at the end, when the evaluator can spread and
deduplicate the most.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from irgym.agents.problem import Problem
from irgym.core.actions import Action, BoolArray
from irgym.core.cost import Job
from irgym.core.errors import IrgymError
from irgym.core.reward import EpisodeCosts
from irgym.core.task import Task
from irgym.nets.encoders import Batch, Encoder
from irgym.nets.heads import Draw
from irgym.nets.layout import ActionLayout, IntArray

FloatArray = NDArray[np.float32]
Choose = Callable[[Batch, BoolArray], Draw]


@dataclass(frozen=True)
class Trajectories:
    """The M steps of N episodes, in any order. S and W are the layout's segments and width.

    An episode ends in a terminal state or at its task's horizon, where its reward is paid: there is
    nothing to bootstrap from after its last step.

    Attributes:
        observations: The encoder's batch of M rows.
        legal: Shape [M, S, W].
        choices: Shape [M, S].
        policy_logp: Shape [M]; log-probabilities under the policy at the time.
        behaviour_logp: Shape [M]; log-probabilities under what was sampled from.
        rewards: Shape [M].
        episode: Shape [M]; from 0 to N - 1.
        step: Shape [M]; from 0.
    """

    observations: Batch
    legal: BoolArray
    choices: IntArray
    policy_logp: FloatArray
    behaviour_logp: FloatArray
    rewards: FloatArray
    episode: IntArray
    step: IntArray

    def __len__(self) -> int:
        return len(self.episode)

    @property
    def episodes(self) -> int:
        """N, the number of episodes."""
        return int(self.episode.max()) + 1 if len(self) else 0

    def grid(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return per-step values as an array of shape [longest episode, N], 0 after an episode's end."""
        padded = np.zeros((int(self.step.max()) + 1, self.episodes), dtype=values.dtype)
        padded[self.step, self.episode] = values
        return padded

    def returns(self) -> NDArray[np.float64]:
        """Return the sum of the rewards of each episode, shape [N]."""
        returns = np.zeros(self.episodes)
        np.add.at(returns, self.episode, self.rewards)
        return returns


ARRAYS = ("legal", "choices", "policy_logp", "behaviour_logp", "rewards", "episode", "step")


def select_episodes(trajectories: Trajectories, episodes: IntArray, encoder: Encoder) -> Trajectories:
    """Return the given episodes, numbered anew in that order."""
    numbers = np.full(trajectories.episodes, -1, dtype=np.int64)
    numbers[episodes] = np.arange(len(episodes))
    rows = np.flatnonzero(numbers[trajectories.episode] >= 0)
    arrays = {name: getattr(trajectories, name)[rows] for name in ARRAYS}
    arrays["episode"] = numbers[arrays["episode"]]
    return Trajectories(encoder.select(trajectories.observations, torch.as_tensor(rows)), **arrays)


def join(older: Trajectories, newer: Trajectories, encoder: Encoder) -> Trajectories:
    """Return the episodes of both, the older first."""
    arrays = {name: np.concatenate([getattr(older, name), getattr(newer, name)]) for name in ARRAYS}
    arrays["episode"][len(older) :] += older.episodes
    return Trajectories(encoder.join([older.observations, newer.observations]), **arrays)


def trajectories_state(trajectories: Trajectories) -> dict[str, Any]:
    """Return everything as tensors, for a checkpoint."""
    arrays = {name: torch.as_tensor(getattr(trajectories, name)) for name in ARRAYS}
    return {"observations": trajectories.observations, **arrays}


def trajectories_from_state(state: dict[str, Any]) -> Trajectories:
    """Return what `trajectories_state` was given."""
    return Trajectories(state["observations"], **{name: state[name].numpy() for name in ARRAYS})


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
    """Return `count` tasks, none again before all were drawn, equal ones side by side."""
    rounds = -(-count // len(tasks))
    places = np.concatenate([rng.permutation(len(tasks)) for _ in range(rounds)])[:count]
    return [tasks[place] for place in np.sort(places).tolist()]


class _Step(NamedTuple):
    """One step of all episodes that were still running."""

    observations: Batch
    legal: BoolArray
    draw: Draw
    episodes: list[int]


def rollout(
    tasks: Sequence[Task[Any]], problem: Problem, encoder: Encoder, layout: ActionLayout, choose: Choose
) -> tuple[Trajectories, Outcomes]:
    """Run one episode on each of `tasks`.

    Args:
        tasks: At least one; equal ones side by side are stepped together.
        problem: Gives the evaluator and the reward; its own tasks are not used.
        encoder: Makes batches of observations.
        layout: Turns choices into actions.
        choose: Draws choices for a batch of observations and its mask of shape [B, S, W].

    Raises:
        IrgymError: No task lets any action be taken.
    """
    steps, trails = _play(tasks, encoder, layout, choose, every_state=problem.reward.every_step)
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
    )
    return trajectories, outcomes


def _play(
    tasks: Sequence[Task[Any]], encoder: Encoder, layout: ActionLayout, choose: Choose, *, every_state: bool
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
        draw = choose(batch, legal)
        steps.append(_Step(batch, legal, draw, live))
        states = _advance(playing, states, layout.actions(draw.choices))
        running = [
            len(steps) < task.horizon and not task.terminal(state)
            for task, state in zip(playing, states, strict=True)
        ]
        if every_state or not all(running):
            for place, state, going in zip(live, states, running, strict=True):
                if every_state or not going:
                    trails[place].append(state)
            states = list(compress(states, running))
            live = list(compress(live, running))
            playing = list(compress(playing, running))
    return steps, trails


def _advance(tasks: Sequence[Task[Any]], states: Sequence[Any], actions: Sequence[Action]) -> list[Any]:
    """Step each state, those of one task together."""
    stepped: list[Any] = []
    end = 0
    while end < len(tasks):
        start = end
        task = tasks[start]
        while end < len(tasks) and tasks[end] is task:
            end += 1
        stepped += task.step_batch(states[start:end], actions[start:end])
    return stepped


def _measure(
    tasks: Sequence[Task[Any]], trails: Sequence[Sequence[Any]], problem: Problem
) -> tuple[list[list[float]], int, int, int]:
    """Return the cost of every state, and how many evaluations, cached answers and failures it took."""
    places: dict[tuple[int, Any], int] = {}
    jobs: list[Job] = []
    for task, trail in zip(tasks, trails, strict=True):
        for state in trail:
            if places.setdefault((id(task), state), len(jobs)) == len(jobs):
                jobs.append(task.job(state))
    measurements = problem.evaluator.evaluate(jobs)
    costs = [measurement.cost for measurement in measurements]
    found = [
        [costs[places[id(task), state]] for state in trail] for task, trail in zip(tasks, trails, strict=True)
    ]
    cached = sum(measurement.cached for measurement in measurements)
    failures = sum(not measurement.ok for measurement in measurements)
    return found, len(jobs), cached, failures


def _reward(
    tasks: Sequence[Task[Any]], trails: Sequence[Sequence[Any]], lengths: IntArray, problem: Problem
) -> tuple[FloatArray, Outcomes]:
    """Return the rewards, shape [N, longest episode], and the outcomes."""
    found, evaluations, cached, failures = _measure(tasks, trails, problem)
    peak = problem.peak_gflops
    ideals = {id(task): None if peak is None else task.ideal_cost(peak) for task in tasks}
    rewards = np.zeros((len(tasks), max(1, int(lengths.max()))), dtype=np.float32)
    for number, (task, costs) in enumerate(zip(tasks, found, strict=True)):
        # Without a first cost nothing is relative to anything: such an episode is rewarded with 0.
        if math.isinf(costs[0]):
            continue
        # With a reward only at the end, the one pair of costs belongs to the last step.
        shift = int(lengths[number]) - (len(costs) - 1)
        for place in range(1, len(costs)):
            episode_costs = EpisodeCosts(costs[0], costs[place - 1], costs[place], ideals[id(task)])
            rewards[number, place - 1 + shift] = problem.reward(episode_costs, place == len(costs) - 1)
    return rewards, Outcomes(
        first=np.array([costs[0] for costs in found]),
        last=np.array([costs[-1] for costs in found]),
        best=np.array([min(costs) for costs in found]),
        returns=rewards.sum(axis=1, dtype=np.float64),
        steps=int(lengths.sum()),
        evaluations=evaluations,
        cached=cached,
        failures=failures,
    )
