"""irgym's batched episodes as the vector environment that Stable-Baselines3's learners step."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from irgym.agents.episodes.greedy import course_of
from irgym.agents.episodes.played import Outcomes
from irgym.agents.problem import Problem
from irgym.base.errors import IrgymError
from irgym.core.cost import Evaluator, Job, Measurement
from irgym.gym.batched import Batched
from irgym.gym.spaces import gym_space


@dataclass
class Counting:
    """An evaluator that counts what it is asked for.

    Attributes:
        evaluator: Evaluates the costs.
        evaluations: Costs asked for.
        cached: How many of them the cost cache answered.
        failures: How many of them had no cost.
    """

    evaluator: Evaluator
    evaluations: int = 0
    cached: int = 0
    failures: int = 0

    def evaluate(self, jobs: Sequence[Job]) -> list[Measurement]:
        """Return one measurement for each job, in order."""
        measurements = self.evaluator.evaluate(jobs)
        self.evaluations += len(jobs)
        self.cached += sum(measurement.cached for measurement in measurements)
        self.failures += sum(not measurement.ok for measurement in measurements)
        return measurements


@dataclass
class Finished:
    """Episodes that ended since they were taken last.

    Attributes:
        rows: Of each episode the first, last and least cost, and the return.
        steps: Steps of all episodes.
    """

    rows: list[tuple[float, ...]] = field(default_factory=list[tuple[float, ...]])
    steps: int = 0

    def take(self, counting: Counting) -> Outcomes:
        """Return the outcomes, and forget them."""
        first, last, best, returns = np.array(self.rows).T
        outcomes = Outcomes(
            first,
            last,
            best,
            returns,
            self.steps,
            counting.evaluations,
            counting.cached,
            counting.failures,
            0,
        )
        self.rows, self.steps = [], 0
        counting.evaluations = counting.cached = counting.failures = 0
        return outcomes


class Sb3Episodes(VecEnv):
    """A problem's episodes, each of which begins where one ended.

    Attributes:
        finished: The episodes that ended.
        counting: Counts the costs.
    """

    def __init__(self, problem: Problem, observation: str, count: int, seed: int) -> None:
        self.counting = Counting(problem.evaluator)
        course = course_of(problem, observation, self.counting)
        shown: Any = course.views[0].space()
        if not isinstance(shown, Box):
            arrays = [name for name, view in course.tasks[0].views.items() if isinstance(view.space(), Box)]
            remedy = f"set observation to {' or '.join(arrays)}" if arrays else "choose an agent of irgym"
            raise IrgymError(f"{course.views[0].name} is no array, as Stable-Baselines3 reads: {remedy}")
        self._batched = Batched(course, count)
        for place in range(count):
            self._batched.seed(place, seed + place)
        self.finished = Finished()
        self._problem = problem
        self._returns = np.zeros(count)
        self._actions: Any = None
        super().__init__(  # pyright: ignore[reportUnknownMemberType]
            count, shown, gym_space(problem.tasks[0].space)
        )

    def reset(self) -> Any:
        """Begin all episodes."""
        self._batched.begin(range(self.num_envs))
        self._returns[:] = 0.0
        return self._seen()

    def step_async(self, actions: NDArray[Any]) -> None:
        """Take the actions of the next step."""
        self._actions = actions

    def step_wait(self) -> tuple[Any, NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Step all episodes, and begin others where they ended."""
        self._problem.deadline.check()
        rewards, ended, cut = self._batched.step(range(self.num_envs), self._actions)
        self._returns += rewards
        self.finished.steps += self.num_envs
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        over = ended | cut
        places: list[int] = np.flatnonzero(over).tolist()
        for place in places:
            episode = self._batched.episode(place)
            infos[place] = {
                "terminal_observation": self._batched.observation(place)[0],
                "TimeLimit.truncated": bool(cut[place]),
                "episode": {"r": float(self._returns[place]), "l": episode.steps, "t": 0.0},
            }
            best = min(episode.costs.values(), default=episode.first)
            self.finished.rows.append((episode.first, episode.last, best, float(self._returns[place])))
        if places:
            self._batched.begin(places)
            self._returns[places] = 0.0
        return self._seen(), rewards.astype(np.float32), over, infos

    def _seen(self) -> NDArray[Any]:
        return np.stack([self._batched.observation(place)[0] for place in range(self.num_envs)])

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """Return the masks of actions, the one method that learners call."""
        del args, kwargs
        if method_name != "action_masks":
            raise AttributeError(method_name)
        return [self._batched.episode(place).node.shown for place in self._get_indices(indices)]

    def has_attr(self, attr_name: str) -> bool:
        """Say whether the environments have an attribute."""
        return attr_name == "action_masks"

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of each environment; they have none but a `render_mode` of None."""
        if attr_name != "render_mode":
            raise AttributeError(attr_name)
        return [None for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute, of which there is none."""
        raise AttributeError(attr_name)

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Say for each environment whether it is wrapped."""
        return [False for _ in self._get_indices(indices)]

    def close(self) -> None:
        """Leave the evaluator to its owner."""
