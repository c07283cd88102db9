"""Trials: an agent's short trainings on small programs, as the rules about agents look at them."""

import random
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy, deepcopy
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from irgym.agents.episodes.played import Outcomes
from irgym.agents.learner import AgentConfig, Learner, Statistics
from irgym.agents.optimisation import seeded
from irgym.agents.problem import Problem
from irgym.core.actions import Action
from irgym.core.task import Task
from irgym.networks import storage


class Iteration(NamedTuple):
    """The results of one iteration."""

    outcomes: Outcomes
    statistics: Statistics


class Course(NamedTuple):
    """A training: its learner at the end, the results of its iterations, and its state after half of them."""

    learner: Learner
    iterations: list[Iteration]
    middle: dict[str, Any]


@dataclass(frozen=True)
class Trial:
    """An agent on trial.

    Attributes:
        config: Its configuration.
        problem: What it learns.
        iterations: Length of its training, at least 2.
        folder: Folder for files of the trial.
        forbidden: Actions that the training took where the mask forbids them, in words.
    """

    config: AgentConfig
    problem: Problem
    iterations: int
    folder: Path
    forbidden: list[str] = field(default_factory=list[str])

    @property
    def values(self) -> dict[str, Any]:
        """The hyper-parameters by name."""
        return asdict(cast(Any, self.config))

    def changed(self, values: Mapping[str, Any]) -> AgentConfig:
        """Return the configuration with other values of some hyper-parameters."""
        return cast(AgentConfig, replace(cast(Any, self.config), **values))

    @property
    def half(self) -> int:
        """Iterations of half of the training."""
        return self.iterations // 2

    @cached_property
    def whole(self) -> Course:
        """The training without an interruption."""
        tasks = [_watched(task, self.forbidden) for task in self.problem.tasks]
        learner = self.config.build(replace(self.problem, tasks=tasks))
        iterations = iterate(learner, self.half)
        middle = deepcopy(learner.state_dict())
        return Course(learner, [*iterations, *iterate(learner, self.iterations - self.half)], middle)

    def begun(self, config: AgentConfig) -> Course:
        """Return half of a training."""
        learner = config.build(self.problem)
        iterations = iterate(learner, self.half)
        return Course(learner, iterations, learner.state_dict())

    def resumed(self) -> Course:
        """Return the second half of the training, from the state after the first half, read from a file."""
        middle = self.stored(self.whole.middle)
        learner = self.config.build(self.problem)
        learner.load_state_dict(middle)
        return Course(learner, iterate(learner, self.iterations - self.half), middle)

    def stored(self, state: dict[str, Any]) -> dict[str, Any]:
        """Return what a file gives back of a state."""
        file = self.folder / "state.pt"
        storage.write(file, {"kind": "state", "learner": state})
        return storage.read(file, "state")["learner"]


def iterate(learner: Learner, count: int) -> list[Iteration]:
    """Return the results of some iterations."""
    return [Iteration(*learner.iterate()) for _ in range(count)]


def differing(first: Sequence[Iteration], second: Sequence[Iteration]) -> str:
    """Return the first result in which the iterations of two trainings differ; empty where they are equal."""
    for number, pair in enumerate(zip(first, second, strict=True), start=1):
        ours, theirs = map(_values, pair)
        for name, value in ours.items():
            if storage.difference(value, theirs[name]):
                return f"`{name}` in iteration {number}"
    return ""


def _values(iteration: Iteration) -> dict[str, Any]:
    """Return what must be equal in equal trainings; durations and hits of the cost cache may differ."""
    values = {**asdict(iteration.outcomes), **asdict(iteration.statistics)}
    return {name: value for name, value in values.items() if name != "cached" and not name.endswith("_s")}


@contextmanager
def elsewhere(seed: int) -> Generator[None]:
    """Give the process's own generators of random numbers another state inside: no training may use them."""
    # The old interface of numpy, for learners that use it.
    states = random.getstate(), cast(Any, np.random.get_state())  # noqa: NPY002
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    try:
        with seeded(seed):
            yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002


def _watched(task: Task[Any], forbidden: list[str]) -> Task[Any]:
    """Return a copy of a task that notes the actions which it takes although its mask forbids them."""
    kind = type(task)

    def note(tasks: Sequence[Task[Any]], states: Sequence[Any], actions: Sequence[Action]) -> None:
        for own, state, action in zip(tasks, states, actions, strict=True):
            if not own.space.allows(own.mask(state), action):
                forbidden.append(f"{own.space.text(action)!r} on {own.uri}")

    def step_many(
        cls: type[Task[Any]], tasks: Sequence[Task[Any]], states: Sequence[Any], actions: Sequence[Action]
    ) -> list[Any]:
        note(tasks, states, actions)
        return kind.step_many(tasks, states, actions)

    def begin_many(
        cls: type[Task[Any]], tasks: Sequence[Task[Any]], states: Sequence[Any], actions: Sequence[Action]
    ) -> Callable[[], list[Any]]:
        note(tasks, states, actions)
        return kind.begin_many(tasks, states, actions)

    watched = copy(task)
    # Another class, since tasks answer for their capabilities by their classes.
    members = {
        "__slots__": (),
        "step_many": classmethod(step_many),
        "begin_many": classmethod(begin_many),
    }
    object.__setattr__(watched, "__class__", type(kind.__name__, (kind,), members))
    return watched
