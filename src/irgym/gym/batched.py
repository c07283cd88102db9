"""Episodes side by side: one call for all transitions of a step, and one for all its costs.

This is what `irgym.gym.env` (one episode), `irgym.gym.vector` and Stable-Baselines3's learners step.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from gymnasium.utils import seeding
from numpy.typing import NDArray

from irgym.core import capabilities
from irgym.core.actions import Action, BoolArray
from irgym.core.cost import Evaluator
from irgym.core.limits import unlimited
from irgym.core.observation import ObservationView
from irgym.core.reward import EpisodeCosts, Reward, Transition, asks
from irgym.core.task import Task
from irgym.gym.nodes import Node, Nodes
from irgym.gym.spaces import action_of


@dataclass
class Course:
    """Programs, observations, costs and rewards that all episodes share.

    Attributes:
        tasks: The programs to draw from; the sequence may be lazy.
        views: The observations of a state.
        evaluator: Where costs come from.
        reward: The reward.
        ideal: Returns a lower bound on a task's cost, None where none is known.
        horizon: Steps of an episode; None for the task's own number.
        analysis: Whether `info` has the compiler's counts, where it counts.
    """

    tasks: Sequence[Task[Any]]
    views: Sequence[ObservationView]
    evaluator: Evaluator
    reward: Reward
    ideal: Callable[[Task[Any]], float | None]
    horizon: int | None = None
    analysis: bool = False


def counts_of(task: Task[Any]) -> capabilities.CostAnalysis | None:
    """Return what counts operations and bytes of a task's states; None where nothing does."""
    return capabilities.ask(task, capabilities.CostAnalysis)


@dataclass
class Episode:
    """An episode in progress.

    Attributes:
        node: Its present state.
        first: Cost of its first state; infinite where that failed.
        last: The cost that was asked for last.
        reference: Cost after the pipeline that the reward names; None where it needs none.
        steps: Steps so far.
        actions: The actions applied.
        text: The same as text.
        costs: The costs asked for, by the text of what was measured.
        applied: Whether the last action applied.
    """

    node: Node
    first: float = math.nan
    last: float = math.nan
    reference: float | None = None
    steps: int = 0
    actions: list[Action] = field(default_factory=list[Action])
    text: str = ""
    costs: dict[str, float] = field(default_factory=dict[str, float])
    applied: bool = True

    def know(self, cost: float) -> None:
        """Keep the cost of the present state."""
        self.costs[self.node.job.schedule] = cost

    @property
    def cost(self) -> float | None:
        """Cost of the present state, where it is known."""
        return self.costs.get(self.node.job.schedule) if self.node.known is None else self.node.known


class Batched:
    """A number of episodes side by side.

    Args:
        course: What all episodes share.
        count: Number of places.
    """

    def __init__(self, course: Course, count: int) -> None:
        self.course = course
        self._nodes = Nodes(course.views, course.evaluator, count)
        self._randoms = [seeding.np_random()[0] for _ in range(count)]
        self._episodes: dict[int, Episode] = {}

    def episode(self, place: int) -> Episode:
        """Return the episode of a place; before any has begun, at the first state of the first program."""
        episode = self._episodes.get(place)
        if episode is None:
            episode = self._episodes[place] = Episode(self._start(self.course.tasks[0]))
        return episode

    def seed(self, place: int, seed: int) -> None:
        """Seed the draws of programs at a place."""
        self._randoms[place] = seeding.np_random(seed)[0]

    def begin(self, places: Sequence[int], task: Task[Any] | None = None) -> None:
        """Begin episodes at some places, on programs drawn at random or on one that is given."""
        tasks = self.course.tasks
        for place in places:
            own = tasks[int(self._randoms[place].integers(len(tasks)))] if task is None else task
            self._episodes[place] = Episode(self._start(own))
        begun = [self._episodes[place] for place in places]
        references = {
            place: node
            for place in places
            if (node := self._nodes.reference(self._episodes[place].node.task, self.course.reward))
        }
        costs = self._nodes.costs([*(episode.node for episode in begun), *references.values()])
        for episode, cost in zip(begun, costs, strict=False):
            episode.first = episode.last = cost
            episode.know(cost)
        for place, cost in zip(references, costs[len(begun) :], strict=True):
            self._episodes[place].reference = cost

    def step(
        self, places: Sequence[int], choices: Sequence[Any]
    ) -> tuple[NDArray[np.float64], BoolArray, BoolArray]:
        """Take an action at each of some places.

        Args:
            places: Where.
            choices: Actions, or elements of `gym_space`; one that does not apply costs a step, and changes
                nothing.

        Returns:
            Rewards, whether episodes ended, and whether they were cut off, each of shape [len(places)].

        Raises:
            IrgymError: There is no such action.
        """
        episodes = [self.episode(place) for place in places]
        befores = [episode.node for episode in episodes]
        taken = self._move(episodes, choices)
        count = len(episodes)
        rewards = np.zeros(count)
        ended, cut = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
        asked: list[int] = []
        for number, (episode, before) in enumerate(zip(episodes, befores, strict=True)):
            episode.steps += 1
            ended[number] = episode.node.terminal
            horizon = self.course.horizon or episode.node.task.horizon
            cut[number] = not ended[number] and episode.steps >= horizon
            final = bool(cut[number]) or (episode.node.terminal and not before.terminal)
            if math.isfinite(episode.first) and asks(self.course.reward.every, episode.steps, final):
                asked.append(number)
        costs = self._nodes.costs([episodes[number].node for number in asked])
        known = dict(zip(asked, costs, strict=True))
        for number, (episode, before) in enumerate(zip(episodes, befores, strict=True)):
            final = bool(cut[number]) or (episode.node.terminal and not before.terminal)
            rewards[number] = self._reward(episode, before, taken[number], known.get(number), final)
        return rewards, ended, cut

    def _move(self, episodes: Sequence[Episode], choices: Sequence[Any]) -> list[Action]:
        """Apply the actions that apply; return all that were chosen."""
        moving: list[tuple[Episode, Action]] = []
        chosen: list[Action] = []
        for episode, choice in zip(episodes, choices, strict=True):
            node = episode.node
            action = choice if isinstance(choice, Action) else action_of(node.task.space, choice, node.mask)
            episode.applied = node.task.space.allows(node.mask, action)
            chosen.append(action)
            if episode.applied:
                moving.append((episode, action))
        nodes = self._nodes.step([episode.node for episode, _ in moving], [action for _, action in moving])
        for (episode, action), node in zip(moving, nodes, strict=True):
            episode.node = node
            episode.actions.append(action)
            # Word by word: to write the whole schedule at each step would take quadratic time.
            episode.text = f"{episode.text} {node.task.space.text(action)}".lstrip()
        return chosen

    def restore(
        self, place: int, task: Task[Any], actions: Sequence[Action], progress: Mapping[str, Any]
    ) -> None:
        """Put an episode at a place: the actions that it applied, and its other attributes by name."""
        episode = self._episodes[place] = Episode(self._start(task))
        for action in actions:
            self._move([episode], [action])
        for name, value in progress.items():
            setattr(episode, name, value)

    def _reward(
        self, episode: Episode, before: Node, action: Action, cost: float | None, final: bool
    ) -> float:
        """Return the reward of a step, after which the cost is known where it was asked for."""
        if math.isinf(episode.first):
            return 0.0
        previous = episode.last
        if cost is not None:
            episode.last = cost
            episode.know(cost)
        reward = self.course.reward
        potentials = (before.potential, episode.node.potential) if reward.shaped else (0.0, 0.0)
        ideal = self.course.ideal(episode.node.task)
        asked, reference = cost is not None, episode.reference
        costs = EpisodeCosts(episode.first, previous, episode.last, ideal, potentials, asked, reference)
        task, states = unlimited(episode.node.task), (before.state, episode.node.state)
        return float(reward(Transition(task, states, 0, action, costs, final)))

    def cost(self, place: int) -> float:
        """Return the cost of the state at a place, measuring it if need be; infinite if it failed."""
        episode = self.episode(place)
        if episode.cost is None:
            episode.know(self._nodes.costs([episode.node])[0])
        return float(cast(float, episode.cost))

    def observation(self, place: int) -> tuple[Any, ...]:
        """Return the values of all views at a place."""
        episode = self.episode(place)
        seen = self._nodes.observations(episode.node)
        if self._nodes.of_cost:
            episode.know(self._nodes.costs([episode.node])[0])
        return seen

    def info(self, place: int) -> dict[str, Any]:
        """Return the `info` of a place, as `TaskEnv` documents it."""
        episode = self.episode(place)
        node = episode.node
        info = {
            "action_mask": node.shown,
            "uri": node.task.uri,
            "schedule": episode.text,
            "applied": episode.applied,
            "objective": node.task.objective.name,
            **node.info,
        }
        if self.course.analysis and (counts := counts_of(node.task)) is not None:
            info["analysis"] = counts.cost_analysis(node.state)
        cost = episode.cost
        if cost is None or math.isinf(episode.first):
            return info
        return info | {"cost": cost, "speedup": episode.first / cost}

    def _start(self, task: Task[Any]) -> Node:
        return self._nodes.root(task)
