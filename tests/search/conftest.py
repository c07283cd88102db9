"""A small deceptive task: a cursor over cells whose values pay only in pairs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irgym.core.actions import Action, ActionSpace, Mask
from irgym.core.cost import Call, Job, Measurement, Outcome
from irgym.core.kinds import ActionKind
from irgym.core.observation import array_view, views_of
from irgym.core.task import Task

CELLS = 4
VALUES = (1, 2, 4, 8)
OPTIMUM = 10.0


@dataclass(frozen=True)
class Cells:
    cursor: int
    values: tuple[int, ...]
    stopped: bool = False


def cost_of(values: Sequence[int]) -> float:
    """One half of a pair costs more than none; the whole pair of the right values pays; all eights fail."""
    if all(value == 8 for value in values):
        return math.inf
    cost = 100.0
    for left, right, best in ((0, 1, (4, 2)), (2, 3, (2, 8))):
        if (values[left], values[right]) == best:
            cost -= 45.0
        else:
            cost += 3.0 * (values[left] != 1) + 3.0 * (values[right] != 1)
    return cost


class PairTask(Task[Cells]):
    uri = "toy://pairs"
    space = ActionSpace(
        (
            ActionKind("left"),
            ActionKind("right"),
            ActionKind("set", (VALUES,)),
            ActionKind("stop", ends="episode"),
        )
    )
    horizon = 12

    def initial(self) -> Cells:
        return Cells(0, (1,) * CELLS)

    def mask(self, state: Cells) -> Mask:
        on = not state.stopped
        choices = [value != state.values[state.cursor] for value in VALUES]
        return self.space.mask([on and state.cursor > 0, on and state.cursor < CELLS - 1, on, on], choices)

    def step(self, state: Cells, action: Action) -> Cells:
        assert self.space.allows(self.mask(state), action)
        name = self.space.kinds[action.kind].name
        if name == "stop":
            return Cells(state.cursor, state.values, stopped=True)
        if name == "set":
            values = list(state.values)
            values[state.cursor] = VALUES[action.params[0]]
            return Cells(state.cursor, tuple(values))
        return Cells(state.cursor + (1 if name == "right" else -1), state.values)

    def terminal(self, state: Cells) -> bool:
        return state.stopped

    def cost_features(self, state: Cells) -> np.ndarray:
        return np.array(state.values, dtype=float)

    def recorded(self, schedule: str) -> Cells:
        return Cells(0, tuple(map(int, schedule.split())))

    views = views_of(array_view("cells", "", (0,), lambda task, state: state))

    def key(self, state: Cells) -> str:
        return " ".join(map(str, state.values))

    def job(self, state: Cells) -> Job:
        return Job(Call("toy:cost", (state.values,)), self.uri, self.key(state), "toy 1", target="")

    def validation(self, state: Cells, inputs: int, seed: int) -> Call:
        raise NotImplementedError

    def describe(self, state: Cells) -> str:
        return str(state.values)

    def export(self, state: Cells, path: Path) -> list[Path]:
        raise NotImplementedError


class CountingEvaluator:
    """Costs in line; remembers what it was asked, batch by batch."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def evaluate(self, jobs: Sequence[Job]) -> list[Measurement]:
        self.batches.append([job.schedule for job in jobs])
        costs = [cost_of(job.call.arguments[0]) for job in jobs]
        return [
            Measurement(Outcome.OK, (cost,)) if math.isfinite(cost) else Measurement(Outcome.CRASH)
            for cost in costs
        ]


class MaskedUniformPolicy:
    """Every legal action equally likely; taken for the most probable one: the last but `stop`."""

    observation = ""

    def __init__(self, space: ActionSpace) -> None:
        self.space = space

    def act(
        self, observations: Sequence[Any], masks: Sequence[Mask], rng: Any, temperature: float = 1.0
    ) -> list[Action]:
        if rng is None:
            return [self.space.legal(mask)[-2] for mask in masks]
        return [self.space.sample(mask, rng) for mask in masks]


@pytest.fixture
def task() -> PairTask:
    return PairTask()


@pytest.fixture
def evaluator() -> CountingEvaluator:
    return CountingEvaluator()


@pytest.fixture
def policy(task: PairTask) -> MaskedUniformPolicy:
    return MaskedUniformPolicy(task.space)


@pytest.fixture
def optimum() -> float:
    return OPTIMUM
