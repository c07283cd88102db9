"""A toy of pass ordering: op counts that the states know, passes without effect, masked once tried."""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from irgym.base.errors import BackendError, IrgymError, ProgramError
from irgym.core.actions import Action, ActionSpace, Mask
from irgym.core.baseline import Pipeline
from irgym.core.bench import Bench
from irgym.core.cost import Call, Job, Measurement, Outcome, Validation
from irgym.core.dataset import Dataset, dataset_of
from irgym.core.environment import BackendStatus, Environment
from irgym.core.kinds import ActionKind
from irgym.core.objective import TIME, Objective
from irgym.core.observation import ObservationView, array_view, views_of
from irgym.core.reward import NegativeCost, RelativeImprovement, Reward
from irgym.core.schedule import Schedule
from irgym.core.target import Target
from irgym.core.task import Task
from irgym.measure.bench import MeasuringBench

SORTS = 8
"""Sorts of redundant operations. Pass `fold_k` removes kind k and leaves half as many of the next one."""
PASSES = (*(f"fold{k}" for k in range(SORTS)), *(f"expand{k}" for k in range(SORTS)))
IDLE = tuple(f"idle{k}" for k in range(44))
SPACE = ActionSpace((*map(ActionKind, (*PASSES, *IDLE)), ActionKind("stop", ends="episode")))
BASE_OPS = 100.0


@dataclass(frozen=True)
class Module:
    """The program after the passes so far, the passes, and those that do nothing to it."""

    ops: tuple[int, ...]
    path: tuple[str, ...] = ()
    idle: frozenset[str] = frozenset()
    stopped: bool = False


def apply(name: str, ops: tuple[int, ...]) -> tuple[int, ...]:
    """Run a pass. An expansion moves a kind to another, at the price of an operation."""
    after = list(ops)
    kind = int(name.lstrip("abcdefghijklmnopqrstuvwxyz"))
    if name.startswith("fold"):
        after[kind] = 0
        if kind + 1 < SORTS:
            after[kind + 1] += ops[kind] // 2
    elif name.startswith("expand") and ops[kind]:
        after[kind] = 0
        after[(kind + 3) % SORTS] += ops[kind] + 1
    return tuple(after)


def measure(count: float) -> Measurement:
    """Pretend to measure time: ten nanoseconds an op."""
    return Measurement(Outcome.OK, (10.0 * count,))


def validate(right: bool, inputs: int) -> Validation:
    """Pretend to compare."""
    return Validation(right, 0.0 if right else 1.0, "equality", inputs)


OPS = Objective("ops", "", "number of operations", exact=True, timed=False)


class PassTask(Task[Module]):
    """URI `passes://FAMILY/OPS` with eight counts joined by `-`; only the original of `wrong` validates."""

    space = SPACE
    objectives = (OPS, TIME)
    forms: ClassVar = {".txt": "text"}
    horizon = 40

    def __init__(self, uri: str, objective: Objective = OPS, pause_s: float = 0.0) -> None:
        family, _, counts = uri.removeprefix("passes://").partition("/")
        if not re.fullmatch(rf"passes://[a-z0-9\[\]]+/[0-9]{{1,9}}(-[0-9]{{1,9}}){{{SORTS - 1}}}", uri):
            raise ProgramError(f"{uri!r} is no module: choose another")
        self.uri = uri
        self.objective = objective
        self.family = family
        self.pause_s = pause_s
        self.ops = tuple(map(int, counts.split("-")))
        self.steps = 0

    def initial(self) -> Module:
        return Module(self.ops)

    def mask(self, state: Module) -> Mask:
        return SPACE.mask([not state.stopped and kind.name not in state.idle for kind in SPACE.kinds])

    def step(self, state: Module, action: Action) -> Module:
        self.steps += 1
        if self.pause_s:
            time.sleep(self.pause_s)
        name = SPACE.kinds[action.kind].name
        if name == "stop":
            return Module(state.ops, state.path, state.idle, stopped=True)
        ops = state.ops if name in IDLE else apply(name, state.ops)
        if ops == state.ops:
            return Module(ops, state.path, state.idle | {name})
        return Module(ops, (*state.path, name))

    def identity(self, state: Module) -> Any:
        return state.ops

    def terminal(self, state: Module) -> bool:
        return state.stopped

    @property
    def views(self) -> Mapping[str, ObservationView]:
        length = len(self.initial().ops)
        return views_of(
            array_view("ops", "", (length,), lambda task, state: np.array(state.ops, dtype=np.float32)),
            array_view("total", "", (1,), lambda task, state: np.array([sum(state.ops)], dtype=np.float32)),
            ObservationView("text", "", lambda: None, lambda task, state: task.describe(state)),
            ObservationView("cost", "", lambda: None, of_cost=lambda task, cost: np.array([cost])),
        )

    def key(self, state: Module) -> str:
        return "-".join(map(str, state.ops))

    def job(self, state: Module) -> Job:
        count = BASE_OPS + sum(state.ops)
        known = measure(count / 10.0) if self.objective.exact else None
        return Job(
            Call("passes:measure", (count,)),
            self.uri,
            self.key(state),
            "toy 1",
            self.objective.name,
            known,
            target="",
        )

    def validation(self, state: Module, inputs: int, seed: int) -> Call:
        return Call("passes:validate", (self.family != "wrong" or state.ops == self.ops, inputs))

    def pipeline(self, name: str) -> Schedule:
        if name != "core":
            raise IrgymError(f"there is no pipeline {name!r}: choose core")
        return Schedule.parse(" ".join(f"fold{k}" for k in (0, 1, 2, 3)), SPACE)

    def describe(self, state: Module) -> str:
        return str(state.ops)

    def export(self, state: Module, path: Path) -> list[Path]:
        path.write_text(str(state.ops))
        return [path]


class PassEnvironment(Environment):
    """Its default schedule folds each kind once, in order."""

    name = "passes"
    summary = "a toy of pass ordering"
    default_dataset = "all"
    default_reward: Reward = RelativeImprovement()
    rewards: Mapping[str, Reward] = MappingProxyType({"negative": NegativeCost()})
    objectives = PassTask.objectives
    pipelines = (Pipeline("core", "folds each kind once, in order"),)
    default_methods = ("base", "core", "greedy")
    reference_pipeline = "core"
    validation_inputs = 1

    def backends(self) -> list[BackendStatus]:
        return [BackendStatus("toy", True, "1")]

    def task(
        self,
        uri: str,
        backend: str | None = None,
        target: Target | str | None = None,
        objective: str | None = None,
    ) -> PassTask:
        if backend not in (None, "toy"):
            raise BackendError(f"passes has no back end {backend!r}: choose toy")
        return PassTask(uri).under(objective)

    def dataset_names(self) -> list[str]:
        return ["all"]

    def dataset(self, name: str) -> Dataset:
        return dataset_of({"all": lambda: Dataset("all", "modules", URIS, URIS)}, name)

    def observations(self) -> Mapping[str, Any]:
        return {}

    def family(self, uri: str) -> str:
        return PassTask(uri).family

    def bench(self, farm: str | None = None, backend: str | None = None) -> Bench:
        return PassBench() if farm is None else MeasuringBench(farm=farm)


class PassBench:
    """Counts what it is asked."""

    machine = "a toy"
    conditions = "a toy"
    peak_gflops = 1.0

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.measured: list[Job] = []

    def prepare(self, *calls: Call, candidates: Call | None = None) -> None:
        """Nothing needs to be started."""

    def settle(self) -> None:
        """Nothing was begun."""

    @property
    def evaluator(self) -> "PassBench":
        return self

    def evaluate(self, jobs: Sequence[Job]) -> list[Measurement]:
        return [job.known or self.call(job.call) for job in jobs]

    def measure(self, jobs: Sequence[Job]) -> list[Measurement]:
        self.measured += [job for job in jobs if not job.known]
        return self.evaluate(jobs)

    def call(self, call: Call, timeout_s: float | None = None, told: Any = None) -> Any:
        name = call.function.removeprefix("passes:")
        self.calls.append(name)
        return {"measure": measure, "validate": validate}[name](*call.arguments)

    def close(self) -> None:
        pass

    def __enter__(self) -> "PassBench":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


URIS = (
    "passes://mlp/40-0-20-0-0-7-0-0",
    "passes://mlp/0-64-0-9-0-0-30-0",
    "passes://gpt2/80-40-20-10-5-3-2-1",
    "passes://late/0-0-0-0-0-0-30-30",
)
"""The default schedule reduces nothing of the last."""

PASSES = PassEnvironment()
"""The environment."""
