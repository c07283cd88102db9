"""Learners' rollouts: episodes in lockstep as trajectories, and one evaluator call for all their costs.

No action depends on a cost, so all costs are requested at the end, where the evaluator can parallelise and
deduplicate most.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from irgym.agents.episodes.played import Episodes, Outcomes, settle
from irgym.agents.episodes.trajectories import FloatArray, Trajectories, join_legal
from irgym.agents.problem import Problem
from irgym.base.errors import IrgymError
from irgym.core import capabilities, lockstep
from irgym.core.actions import Action, BoolArray
from irgym.core.cost import Job
from irgym.core.lockstep import Turn
from irgym.core.reward import Reward, asks, potential, reference_state
from irgym.core.task import Task
from irgym.networks.encoders import Batch, Encoder
from irgym.policies.heads import Draw
from irgym.policies.layout import ActionLayout

Choose = Callable[[Batch, BoolArray], Draw]
T = TypeVar("T")


def draw_tasks(tasks: Sequence[T], count: int, rng: np.random.Generator) -> list[T]:
    """Return `count` random tasks (or their indices); none repeats before all were drawn."""
    rounds = -(-count // len(tasks))
    places = np.concatenate([rng.permutation(len(tasks)) for _ in range(rounds)])[:count]
    return [tasks[place] for place in places.tolist()]


def privileged_of(tasks: Sequence[Task[Any]], states: Sequence[Any]) -> FloatArray:
    """Return the cost features of a state of each task, shape [B, K].

    Raises:
        IrgymError: A task has no cost features.
    """
    rows: list[NDArray[np.float64]] = []
    for task, state in zip(tasks, states, strict=True):
        row = capabilities.cost_features(task, state)
        if row is None:
            raise IrgymError(f"{task.uri} has no cost features: set value_features to false")
        rows.append(row)
    return np.stack(rows).astype(np.float32)


class Guide(Protocol):
    """Makes some choices of episodes in place of the policy, such as `irgym.agents.archive.following`."""

    def draw(self, episodes: Sequence[int], legal: BoolArray, choose: Callable[[BoolArray], Draw]) -> Draw:
        """Return a draw for some episodes.

        Args:
            episodes: Their places among the tasks of the rollout.
            legal: See `ActionLayout.legal`.
            choose: Draws the policy's choices, given the legal ones.
        """
        ...


def _go_on(progress: str) -> None:
    """Let all episodes go on."""


class _Step(NamedTuple):
    """One step of episodes that were still running."""

    observations: Batch
    legal: BoolArray
    draw: Draw
    episodes: list[int]
    number: int
    privileged: FloatArray


def rollout(
    tasks: Sequence[Task[Any]],
    problem: Problem,
    encoder: Encoder,
    layout: ActionLayout,
    choose: Choose,
    *,
    privileged: bool = False,
    guide: Guide | None = None,
) -> tuple[Trajectories, Outcomes]:
    """Run one episode on each of `tasks`.

    Args:
        tasks: At least one; they may repeat.
        problem: Evaluator, reward and deadline; its tasks are not used.
        encoder: Makes batches of observations.
        layout: Turns choices into actions.
        choose: Draws choices for a batch of observations and its mask, see `ActionLayout.legal`.
        privileged: Whether the trajectories hold the critic's additional inputs: the tasks' cost features.
        guide: Makes some choices in place of `choose`, such as the first ones of an episode.

    Raises:
        IrgymError: No task lets any action be taken, or one has no cost features.
        OutOfTimeError: The problem's deadline has passed.
    """
    started = time.perf_counter()
    episodes = play(
        tasks,
        problem.reward,
        encoder,
        layout,
        choose,
        privileged=privileged,
        guide=guide,
        check=problem.deadline.check,
    )
    played = time.perf_counter()
    measurements = problem.evaluator.evaluate(episodes.jobs)
    measured = time.perf_counter()
    trajectories, outcomes = settle(
        episodes, tasks, measurements, problem.reward, ideal_costs(tasks, problem.peaks)
    )
    return trajectories, replace(outcomes, collecting_s=played - started, measuring_s=measured - played)


def ideal_costs(tasks: Sequence[Task[Any]], peaks: Mapping[str, float]) -> list[float | None]:
    """Return a lower bound on each task's cost; None where none is known.

    Args:
        tasks: The tasks; they may repeat.
        peaks: As in `Problem`.
    """

    def ideal(task: Task[Any]) -> float | None:
        peak = None if task.target is None else peaks.get(task.target.name)
        return None if peak is None else capabilities.ideal_cost(task, peak)

    ideals = {id(task): ideal(task) for task in tasks}
    return [ideals[id(task)] for task in tasks]


def play(
    tasks: Sequence[Task[Any]],
    reward: Reward,
    encoder: Encoder,
    layout: ActionLayout,
    choose: Choose,
    *,
    privileged: bool = False,
    guide: Guide | None = None,
    check: Callable[[str], None] = _go_on,
) -> Episodes:
    """Play one episode on each of `tasks`, without evaluating any cost.

    Arguments as for `rollout`; the reward determines the states whose costs and potentials are needed.
    `check` is called with the progress in words, again and again; an exception ends all episodes.

    Raises:
        IrgymError: No task lets any action be taken, or one has no cost features.
    """
    if privileged or reward.shaped:
        analysed = {id(task): capabilities.analysed(task) for task in tasks}
        tasks = [analysed[id(task)] for task in tasks]
    steps: list[_Step] = []

    def take(turn: Turn) -> list[Action]:
        batch, masks = encoder.collate(turn.observations(encoder.observation)), turn.masks
        legal = layout.legal(masks)
        seen = privileged_of(turn.tasks, turn.states) if privileged else np.zeros((len(masks), 0), np.float32)
        if guide is None:
            draw = choose(batch, legal)
        else:
            draw = guide.draw(turn.episodes, legal, lambda allowed: choose(batch, allowed))
        steps.append(_Step(batch, legal, draw, turn.episodes, turn.step, seen))
        return layout.actions(draw.choices, masks)

    def go_on() -> None:
        number = steps[-1].number + 2 if steps else 1
        check(f"playing {len(tasks)} episodes, step {number}")

    played = lockstep.play(tasks, take, go_on)
    trails = [episode.states for episode in played]
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
        step=np.repeat([step.number for step in steps], [len(step.episodes) for step in steps]),
        privileged=np.concatenate([step.privileged for step in steps]),
    )
    jobs, asked, references = _jobs(tasks, trails, reward)
    potentials = [
        [potential(task, state) for state in trail] if reward.shaped else []
        for task, trail in zip(tasks, trails, strict=True)
    ]
    actions = [episode.actions for episode in played]
    return Episodes(trajectories, jobs, actions, trails, asked, potentials, references)


def _jobs(
    tasks: Sequence[Task[Any]], trails: Sequence[Sequence[Any]], reward: Reward
) -> tuple[list[Job], list[list[int]], list[int | None]]:
    """Return requests for the costs that a reward needs, and in them the places of trails and references."""
    places: dict[tuple[int, Any], int] = {}
    jobs: list[Job] = []

    def place_of(task: Task[Any], state: Any) -> int:
        place = places.setdefault((id(task), task.identity(state)), len(jobs))
        if place == len(jobs):
            jobs.append(task.job(state))
        return place

    asked: list[list[int]] = []
    for task, trail in zip(tasks, trails, strict=True):
        last = len(trail) - 1
        needed = [state for step, state in enumerate(trail) if asks(reward.every, step, step == last)]
        asked.append([place_of(task, state) for state in needed])
    states = {id(task): reference_state(reward, task) for task in tasks}
    references = [None if states[id(task)] is None else place_of(task, states[id(task)]) for task in tasks]
    return jobs, asked, references
