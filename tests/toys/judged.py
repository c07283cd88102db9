"""A small environment whose costs are computed, and a bench that runs calls in this process."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from irgym.base.errors import IrgymError, ProgramError
from irgym.core.actions import Action, ActionSpace, Mask
from irgym.core.baseline import Baseline, Versus
from irgym.core.cost import Call, Job, Measurement, Outcome, Validation
from irgym.core.dataset import Dataset
from irgym.core.environment import BackendStatus, Environment
from irgym.core.kinds import ActionKind
from irgym.core.observation import array_view, views_of
from irgym.core.reward import LogSpeedup
from irgym.core.target import Target
from irgym.core.task import Task

TARGETS = {"toy://easy": (1, 1), "toy://hard": (3, 2), "toy://broken": (2, 2), "toy://wrong": (2, 2)}


def cost_of(uri: str, values: tuple[int, int]) -> float:
    target = TARGETS[uri]
    return 1000.0 * (1 + abs(values[0] - target[0]) + abs(values[1] - target[1]))


def measure(uri: str, values: tuple[int, int]) -> Measurement:
    if uri == "toy://broken" and values != (0, 0):
        return Measurement(Outcome.CRASH, detail="it <crashed> & burnt")
    cost = cost_of(uri, values)
    return Measurement(Outcome.OK, (1.5 * cost, cost), compile_s=0.001)


def validate(uri: str, values: tuple[int, int], inputs: int) -> Validation:
    return Validation(uri != "toy://wrong" or values == (0, 0), 0.0, "equality", inputs)


def baseline(name: str, uri: str) -> Measurement:
    if name == "absent":
        raise IrgymError("absent is not installed: run pip install 'absent[all]'")
    return Measurement(Outcome.OK, ({"numpy": 2000.0, "other": 4000.0}[name],))


def versus(name: str, uri: str, values: tuple[int, int]) -> Versus:
    ours, theirs = measure(uri, values).cost, baseline(name, uri).cost
    return Versus(
        tuple(theirs / ours * noise for noise in (0.99, 1.0, 1.3)), theirs, ours, "numpy 9, 1 thread"
    )


FUNCTIONS = {
    "toy:measure": measure,
    "toy:validate": validate,
    "toy:versus": versus,
}


@dataclass(frozen=True)
class Pair:
    values: tuple[int, int]
    stopped: bool = False


class PairTask(Task[Pair]):
    space = ActionSpace((ActionKind("set", ((0, 1), (1, 2, 3))), ActionKind("stop", ends="episode")))
    horizon = 5

    def __init__(self, uri: str) -> None:
        self.uri = uri

    def initial(self) -> Pair:
        return Pair((0, 0))

    def mask(self, state: Pair) -> Mask:
        return self.space.mask([not state.stopped] * 2, [not state.stopped] * 5)

    def step(self, state: Pair, action: Action) -> Pair:
        if self.space.kinds[action.kind].name == "stop":
            return Pair(state.values, stopped=True)
        values = list(state.values)
        values[action.params[0]] = (1, 2, 3)[action.params[1]]
        return Pair((values[0], values[1]))

    def terminal(self, state: Pair) -> bool:
        return state.stopped

    views = views_of(array_view("values", "", (2,), lambda task, state: state.values))

    def key(self, state: Pair) -> str:
        return str(state.values)

    def job(self, state: Pair) -> Job:
        return Job(
            Call("toy:measure", (self.uri, state.values)), self.uri, self.key(state), "toy 1", target=""
        )

    def validation(self, state: Pair, inputs: int, seed: int) -> Call:
        return Call("toy:validate", (self.uri, state.values, inputs))

    def baseline_call(self, name: str, state: Pair, rounds: int = 15) -> Call:
        return Call("toy:versus", (name, self.uri, state.values))

    def describe(self, state: Pair) -> str:
        return f"for <i> in {state.values}"

    def export(self, state: Pair, path: Path) -> list[Path]:
        raise NotImplementedError


class ToyEnvironment(Environment):
    name = "toy"
    summary = "two numbers"
    default_dataset = "all"
    default_reward = LogSpeedup()
    reference_baseline = "numpy"
    baselines = tuple(Baseline(name, "1 thread") for name in ("numpy", "other", "absent"))

    def backends(self) -> list[BackendStatus]:
        return [BackendStatus("toy", True, "1")]

    def task(
        self,
        uri: str,
        backend: str | None = None,
        target: Target | str | None = None,
        objective: str | None = None,
    ) -> PairTask:
        if uri not in TARGETS:
            raise ProgramError(f"{uri} does not exist: choose another")
        return PairTask(uri).under(objective)

    def dataset_names(self) -> list[str]:
        return ["all"]

    def dataset(self, name: str) -> Dataset:
        return Dataset("all", "everything", (), tuple(TARGETS))

    def observations(self) -> Mapping[str, Any]:
        return {}

    def bench(self, farm: str | None = None, backend: str | None = None) -> "ToyBench":
        return ToyBench()

    def policies(self) -> Mapping[str, Path]:
        return {}


class ToyBench:
    machine = "a toy <machine>, 1 thread"
    conditions = "a toy"
    peak_gflops = 1.0

    def prepare(self, *calls: Call, candidates: Call | None = None) -> None:
        """Nothing needs to be started."""

    def settle(self) -> None:
        """Nothing was begun."""

    @property
    def evaluator(self) -> "ToyBench":
        return self

    def evaluate(self, jobs: Sequence[Job]) -> list[Measurement]:
        return [self.call(job.call) for job in jobs]

    def measure(self, jobs: Sequence[Job]) -> list[Measurement]:
        return self.evaluate(jobs)

    def call(self, call: Call, timeout_s: float | None = None, told: Any = None) -> Any:
        return FUNCTIONS[call.function](*call.arguments)

    def close(self) -> None:
        pass

    def __enter__(self) -> "ToyBench":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class SetThenStop:
    """Sets the first value to 3, then to 1, then stops: passes through better states than its last."""

    observation = ""

    def __init__(self, space: ActionSpace) -> None:
        self.space = space

    def act(
        self, observations: Sequence[Any], masks: Sequence[Mask], rng: Any, temperature: float = 1.0
    ) -> list[Action]:
        if rng is not None:
            return [self.space.sample(mask, rng) for mask in masks]
        following = {0: "set_0_3", 3: "set_0_1", 1: "stop"}
        return [self.space.parse(following[values[0]]) for values in observations]


@pytest.fixture
def environment() -> ToyEnvironment:
    return ToyEnvironment()


@pytest.fixture
def bench() -> ToyBench:
    return ToyBench()


@pytest.fixture
def load_policy():
    def load(name: str, task: PairTask) -> SetThenStop:
        if name != "mine":
            raise IrgymError(f"there is no policy {name!r}: name another")
        return SetThenStop(task.space)

    return load
