"""Played episodes: their cost requests, and their rewards and outcomes once costs are known."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from irgym.agents.episodes.trajectories import Trajectories
from irgym.core.actions import Action
from irgym.core.cost import Job, Measurement
from irgym.core.limits import unlimited
from irgym.core.reward import EpisodeCosts, Reward, Transition, asks
from irgym.core.schedule import Schedule, states_along
from irgym.core.task import Task


@dataclass(frozen=True)
class Episodes:
    """N episodes without rewards yet.

    Without `states`, they hold nothing that is large or belongs to one process, so they can be sent to
    others.

    Attributes:
        trajectories: Their steps, whose rewards are still 0.
        jobs: Requests for the costs of distinct states.
        actions: The actions of each episode.
        states: The states of each episode; empty where they are left out.
        asked: For each episode, the places in `jobs` of the states whose costs the reward needs, in order.
        potentials: For each episode the potentials of its states; none unless the reward is shaped.
        references: For each episode the place in `jobs` of `irgym.core.reward.reference_state`; None where
            the reward needs none.
    """

    trajectories: Trajectories
    jobs: list[Job]
    actions: list[list[Action]]
    states: list[list[Any]]
    asked: list[list[int]]
    potentials: list[list[float]]
    references: list[int | None]

    def way(self, number: int, task: Task[Any]) -> Sequence[Any]:
        """Return the states of an episode on its task; those that are left out are made when asked for."""
        return self.states[number] if self.states else _Replayed(task, self.actions[number])


class _Replayed(Sequence[Any]):
    """The states along some actions, from the first use on."""

    def __init__(self, task: Task[Any], actions: Sequence[Action]) -> None:
        self._task = task
        self._actions = tuple(actions)

    @cached_property
    def _states(self) -> Sequence[Any]:
        return states_along(self._task, Schedule(self._actions))

    def __len__(self) -> int:
        return len(self._actions) + 1

    @overload
    def __getitem__(self, place: int) -> Any: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Any]: ...
    def __getitem__(self, place: int | slice) -> Any:
        return self._states[place]


@dataclass(frozen=True)
class Outcomes:
    """Outcomes of N episodes.

    Attributes:
        first: Shape [N]; cost of the initial state, infinite where its evaluation failed.
        last: Shape [N]; cost of the final state, infinite also where it was only predicted.
        best: Shape [N]; least cost among the states measured.
        returns: Shape [N]; sum of the rewards.
        steps: Number of steps of all episodes.
        evaluations: Number of distinct states whose cost was asked for.
        cached: How many of them the cost cache answered.
        failures: How many of them had no cost.
        predicted: Number of further states whose cost was predicted instead.
        collecting_s: Seconds for playing the episodes.
        measuring_s: Seconds for evaluating the costs that they ask for.
    """

    first: NDArray[np.float64]
    last: NDArray[np.float64]
    best: NDArray[np.float64]
    returns: NDArray[np.float64]
    steps: int
    evaluations: int
    cached: int
    failures: int
    predicted: int
    collecting_s: float = 0.0
    measuring_s: float = 0.0


def settle(
    episodes: Episodes,
    tasks: Sequence[Task[Any]],
    measurements: Sequence[Measurement],
    reward: Reward,
    ideals: Sequence[float | None],
) -> tuple[Trajectories, Outcomes]:
    """Return the trajectories with rewards, and the outcomes of the episodes.

    Args:
        episodes: The played episodes.
        tasks: The task of each.
        measurements: One for each of their jobs.
        reward: The reward that the episodes were played for.
        ideals: For each episode a lower bound on the cost, or None where none is known.
    """
    costs = [[measurements[place].cost for place in row] for row in episodes.asked]
    trajectories = episodes.trajectories
    lengths = np.bincount(trajectories.episode, minlength=len(costs))
    rewards = np.zeros((len(costs), max(1, int(lengths.max()))), dtype=np.float32)
    for number, (row, length) in enumerate(zip(costs, lengths.tolist(), strict=True)):
        # Rewards are relative to the first cost: an episode without one has reward 0.
        if length == 0 or math.isinf(row[0]):
            continue
        place = episodes.references[number]
        known = ideals[number], None if place is None else measurements[place].cost
        rewards[number, :length] = _episode_rewards(reward, row, episodes, tasks[number], number, known)
    seen = [
        [math.inf if measurements[place].predicted else measurements[place].cost for place in row]
        for row in episodes.asked
    ]
    predicted = sum(measurement.predicted for measurement in measurements)
    outcomes = Outcomes(
        first=np.array([row[0] for row in seen]),
        last=np.array([row[-1] for row in seen]),
        best=np.array([min(row) for row in seen]),
        returns=rewards.sum(axis=1, dtype=np.float64),
        steps=int(lengths.sum()),
        evaluations=len(measurements) - predicted,
        cached=sum(measurement.cached for measurement in measurements),
        failures=sum(not measurement.ok for measurement in measurements),
        predicted=predicted,
    )
    return replace(trajectories, rewards=rewards[trajectories.episode, trajectories.step]), outcomes


def lost(count: int) -> Outcomes:
    """Return the outcomes of episodes whose process died: each counts as one evaluation that failed."""
    nothing = np.full(count, math.inf)
    return Outcomes(nothing, nothing, nothing, np.zeros(count), 0, count, 0, count, 0)


def add_up(parts: Sequence[Outcomes]) -> Outcomes:
    """Return the outcomes of all parts, in order; a state in two parts counts twice."""
    return Outcomes(
        first=np.concatenate([part.first for part in parts]),
        last=np.concatenate([part.last for part in parts]),
        best=np.concatenate([part.best for part in parts]),
        returns=np.concatenate([part.returns for part in parts]),
        steps=sum(part.steps for part in parts),
        evaluations=sum(part.evaluations for part in parts),
        cached=sum(part.cached for part in parts),
        failures=sum(part.failures for part in parts),
        predicted=sum(part.predicted for part in parts),
    )


def _episode_rewards(
    reward: Reward,
    costs: Sequence[float],
    episodes: Episodes,
    task: Task[Any],
    number: int,
    known: tuple[float | None, float | None],
) -> list[float]:
    """Return the rewards of one episode.

    Args:
        reward: The reward.
        costs: Costs of the states that the reward needs; the first is finite.
        episodes: All episodes.
        task: The program.
        number: Place of the episode.
        known: The lower bound on the cost and the cost after the reward's pipeline; None where unknown.
    """
    potentials, actions = episodes.potentials[number], episodes.actions[number]
    ideal, reference = known
    states, length, task = episodes.way(number, task), len(actions), unlimited(task)
    rewards: list[float] = []
    waiting = iter(costs)
    current = next(waiting)
    for step in range(1, length + 1):
        final = step == length
        asked = asks(reward.every, step, final)
        previous, current = current, next(waiting) if asked else current
        shaping = (potentials[step - 1], potentials[step]) if potentials else (0.0, 0.0)
        paid = EpisodeCosts(costs[0], previous, current, ideal, shaping, asked, reference)
        rewards.append(reward(Transition(task, states, step - 1, actions[step - 1], paid, final)))
    return rewards
