"""A toy of pass ordering: each pass shrinks one kind of op, fully only after the passes that it needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from irgym.agents.problem import Problem
from irgym.base.registry import Registry
from irgym.core.actions import Action, ActionSpace, Mask
from irgym.core.cost import Call, Job, Measurement, Outcome
from irgym.core.dataset import Dataset
from irgym.core.environment import BackendStatus, Environment
from irgym.core.kinds import ActionKind
from irgym.core.objective import Objective
from irgym.core.observation import ObservationView, array_view, views_of
from irgym.core.reward import RelativeImprovement, Reward
from irgym.core.target import Target
from irgym.core.task import Task

State = tuple[tuple[int, ...], tuple[bool, ...]]
OPS = Objective("ops", "", "operations", exact=True, timed=False)


def needs(passes: int) -> list[list[int]]:
    """Return for each pass the one or two that must run before it; the hidden order is a permutation."""
    rng = np.random.default_rng(0)
    order = rng.permutation(passes).tolist()
    needed: list[list[int]] = [[] for _ in order]
    for place, number in enumerate(order):
        if place > 0:
            needed[number] = sorted(set(rng.choice(order[:place], size=2).tolist()))
    return needed


def space_of(passes: int) -> ActionSpace:
    return ActionSpace(tuple(ActionKind(f"pass{number}") for number in range(passes)))


SPACES = {passes: space_of(passes) for passes in (4, 10, 20)}
NEEDS = {passes: needs(passes) for passes in SPACES}


@dataclass(frozen=True, eq=False)
class Passes(Task[State]):
    """State: the ops left of each kind, and which passes have run; a second run changes nothing.

    A pass removes all ops of its kind if those that it needs have run, and otherwise a third of them, for
    good: what is left can't be removed any more.
    """

    seed: int
    passes: int = 20
    padding: int = 0
    objective: Objective = OPS

    @cached_property
    def space(self) -> ActionSpace:
        return SPACES[self.passes]

    @cached_property
    def horizon(self) -> int:
        return self.passes + self.passes // 4

    @cached_property
    def uri(self) -> str:
        return f"passes://{self.seed}"

    @cached_property
    def first(self) -> State:
        counts = np.random.default_rng(self.seed).integers(10, 200, size=self.passes)
        return tuple(counts.tolist()), (False,) * self.passes

    @cached_property
    def everything(self) -> Mask:
        return self.space.mask([True] * self.passes)

    def initial(self) -> State:
        return self.first

    def mask(self, state: State) -> Mask:
        return self.everything

    def step(self, state: State, action: Action) -> State:
        counts, done = state
        number = action.kind
        if done[number]:
            return state
        ready = all(done[other] for other in NEEDS[self.passes][number])
        left = 0 if ready else counts[number] - counts[number] // 3
        return (
            (*counts[:number], left, *counts[number + 1 :]),
            (*done[:number], True, *done[number + 1 :]),
        )

    def terminal(self, state: State) -> bool:
        return False

    @cached_property
    def views(self) -> Mapping[str, ObservationView]:
        length = 2 * self.passes + self.padding
        return views_of(array_view("counts", "", (length,), lambda task, state: task.features(state)))

    def features(self, state: State) -> np.ndarray:
        return np.array([*state[0], *state[1], *[0.0] * self.padding], dtype=np.float32)

    def analysis(self, state: State) -> np.ndarray:
        first = self.first[0]
        half = len(first) // 2
        parts = ((state[0][:half], first[:half]), (state[0][half:], first[half:]))
        return np.array([sum(left) / sum(whole) for left, whole in parts])

    def cost(self, state: State) -> Measurement:
        return Measurement(Outcome.OK, (100.0 + sum(state[0]),))

    def key(self, state: State) -> str:
        return repr(state)

    def job(self, state: State) -> Job:
        return Job(
            Call("", ()), self.uri, self.key(state), "", self.objective.name, self.cost(state), target=""
        )

    def validation(self, state: State, inputs: int, seed: int) -> Call:
        raise NotImplementedError

    def describe(self, state: State) -> str:
        return repr(state)

    def export(self, state: State, path: Path) -> list[Path]:
        raise NotImplementedError


class Known:
    """Answers with what the states know."""

    def evaluate(self, jobs: Sequence[Job]) -> list[Measurement]:
        measurements = [job.known for job in jobs]
        assert None not in measurements
        return [measurement for measurement in measurements if measurement is not None]


def problem(count: int = 6, passes: int = 20, reward: Reward | None = None, padding: int = 0) -> Problem:
    tasks = [Passes(seed, passes, padding) for seed in range(count)]
    return Problem(tasks, Known(), reward or RelativeImprovement())


def best_return(tasks: Sequence[Passes]) -> float:
    """Return the mean of RelativeImprovement where every pass runs after those that it needs."""
    return float(np.mean([1 - 100.0 / task.cost(task.first).cost for task in tasks]))


class Ordering(Environment):
    """The toy as an environment; `passes://SEED`."""

    name = "ordering"
    summary = "a toy of pass ordering"
    default_dataset = "all"
    default_reward: Reward = RelativeImprovement()

    def backends(self) -> list[BackendStatus]:
        return []

    def task(
        self,
        uri: str,
        backend: str | None = None,
        target: Target | str | None = None,
        objective: str | None = None,
    ) -> Passes:
        return Passes(int(uri.removeprefix("passes://"))).under(objective)

    def dataset_names(self) -> list[str]:
        return ["all"]

    def dataset(self, name: str) -> Dataset:
        uris = tuple(f"passes://{seed}" for seed in range(6))
        return Dataset("all", "", uris, uris)

    def bench(self, farm: str | None = None, backend: str | None = None) -> Any:
        raise NotImplementedError


ORDERING = Ordering()
ENVIRONMENTS: Registry[Environment] = Registry("environment", "none", {"ordering": "ordering:ORDERING"})
