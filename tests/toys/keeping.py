"""A toy that keeps all rules of conformance, to plant violations in: two registers.

They are set, doubled and, where they are even, halved: `halve@a`. The cost is their sum.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from irgym.base.errors import ProgramError, ScheduleError
from irgym.core.actions import Action, ActionSpace, Mask
from irgym.core.baseline import Pipeline
from irgym.core.candidates import CandidateObservation, candidate_view
from irgym.core.cost import Call, Job, Measurement, Outcome, Validation
from irgym.core.dataset import Dataset, dataset_of
from irgym.core.environment import BackendStatus, Environment, check_only_backend
from irgym.core.kinds import ActionKind
from irgym.core.objective import Objective
from irgym.core.observation import ObservationView, array_view, views_of
from irgym.core.reward import LogSpeedup
from irgym.core.schedule import Schedule
from irgym.core.target import Target
from irgym.core.task import Task, form_of
from irgym.measure.evaluators import Inline, resolve

SPACE = ActionSpace(
    (
        ActionKind("set", ((0, 1), (1, 2, 3, 4))),
        ActionKind("double", ((0, 1),)),
        ActionKind("halve", candidates=True),
        ActionKind("stop", ends="episode"),
    ),
    capacity=4,
)
SET, DOUBLE, HALVE, STOP = range(4)
SUM = Objective("sum", "", "sum of the registers", exact=True, timed=False)
NAMES = ("a", "b")


@dataclass(frozen=True)
class Registers:
    values: tuple[int, int]
    stopped: bool = False


def cost(values: tuple[int, int]) -> Measurement:
    return Measurement(Outcome.OK, (float(sum(values)),))


def validate(values: tuple[int, int], inputs: int) -> Validation:
    return Validation(True, 0.0, "equality", inputs)


def with_value(state: Registers, place: int, value: int) -> Registers:
    values = list(state.values)
    values[place] = value
    return Registers((values[0], values[1]))


class RegisterTask(Task[Registers]):
    """`keeping://A-B`: the values of the registers at the start."""

    space = SPACE
    objectives = (SUM,)
    horizon = 10
    forms: ClassVar[Mapping[str, str]] = {".txt": "text"}

    def __init__(self, values: tuple[int, int]) -> None:
        self.values = values
        self.uri = f"keeping://{values[0]}-{values[1]}"

    def initial(self) -> Registers:
        return Registers(self.values)

    def mask(self, state: Registers) -> Mask:
        if state.stopped:
            return SPACE.mask([False] * 4, [False] * SPACE.param_count)
        even = [(HALVE, name) for name, value in zip(NAMES, state.values, strict=True) if value % 2 == 0]
        small = [value < 100 for value in state.values]
        return SPACE.mask([True, any(small), False, True], [True] * 6 + small, even)

    def step(self, state: Registers, action: Action) -> Registers:
        if not self.accepts(state, action):
            raise ScheduleError(f"{SPACE.text(action)} does not apply: choose another action")
        if action.kind == STOP:
            return replace(state, stopped=True)
        if action.kind == HALVE:
            place = NAMES.index(action.candidate)
            return with_value(state, place, state.values[place] // 2)
        place = action.params[0]
        new = (
            2 * state.values[place] if action.kind == DOUBLE else SPACE.kinds[SET].slots[1][action.params[1]]
        )
        return with_value(state, place, int(new))

    def terminal(self, state: Registers) -> bool:
        return state.stopped

    @property
    def views(self) -> Mapping[str, ObservationView]:
        return views_of(
            candidate_view(SPACE, lambda task, state: task.rows(state), 2, 1, 0.0, 1000.0),
            array_view("values", "registers", (2,), lambda task, state: task.seen(state)),
        )

    def seen(self, state: Registers) -> Any:
        return np.array(state.values, np.float32)

    def rows(self, state: Registers) -> CandidateObservation:
        values = [[state.values[NAMES.index(name)]] for _, name in self.mask(state).candidates]
        return CandidateObservation(self.seen(state), np.array(values, np.float32).reshape(-1, 1))

    def key(self, state: Registers) -> str:
        return f"{state.values[0]} {state.values[1]}"

    def job(self, state: Registers) -> Job:
        call = Call("keeping:cost", (state.values,))
        original = state.values == self.values
        return Job(
            call, self.uri, self.key(state), "toy 1", self.objective.name, original=original, target=""
        )

    def validation(self, state: Registers, inputs: int, seed: int) -> Call:
        return Call("keeping:validate", (state.values, inputs))

    def describe(self, state: Registers) -> str:
        return f"a = {state.values[0]}, b = {state.values[1]}"

    def export(self, state: Registers, path: Path) -> list[Path]:
        form_of(path, self.forms)
        path.write_text(self.describe(state))
        return [path]

    def sketch(self, rng: np.random.Generator) -> Sequence[Action]:
        return [Action(SET, (0, int(rng.integers(4)))), Action(SET, (1, 0))]

    def cost_features(self, state: Registers) -> Any:
        return np.array(state.values, float)

    def analysis(self, state: Registers) -> Any:
        return np.array([sum(state.values) / sum(self.values)])

    def recorded(self, key: str) -> Registers | None:
        numbers = key.split()
        if len(numbers) != 2 or not all(number.isdigit() for number in numbers):
            return None
        return Registers((int(numbers[0]), int(numbers[1])))

    def pipeline(self, name: str) -> Schedule:
        if name != "ones":
            raise ProgramError(f"there is no pipeline {name!r}: choose ones")
        return Schedule.parse("set_0_1 set_1_1", SPACE)


class KnownTask(RegisterTask):
    """The same with costs that the states know."""

    def job(self, state: Registers) -> Job:
        return replace(super().job(state), known=cost(state.values))


class KeepingBench:
    """Runs calls in this process."""

    machine = conditions = "a toy"
    peak_gflops = 1.0
    evaluator = Inline()

    def prepare(self, *calls: Call, candidates: Call | None = None) -> None:
        """Nothing takes time to start."""

    def settle(self) -> None:
        """Nothing was begun."""

    def measure(self, jobs: Sequence[Job]) -> list[Measurement]:
        return self.evaluator.evaluate(jobs)

    def call(self, call: Call, timeout_s: float | None = None, told: Any = None) -> Any:
        return resolve(call)(*call.arguments)

    def close(self) -> None:
        """Nothing is open."""

    def __enter__(self) -> "KeepingBench":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class Keeping(Environment):
    name = "keeping"
    summary = "two registers"
    default_dataset = "all"
    default_reward = LogSpeedup()
    objectives = RegisterTask.objectives
    reference_pipeline = "ones"
    pipelines = (Pipeline("ones", "sets both to 1"),)
    made: type[RegisterTask] = RegisterTask

    def backends(self) -> list[BackendStatus]:
        return [BackendStatus("toy", True, "1")]

    def task(
        self,
        uri: str,
        backend: str | None = None,
        target: Target | str | None = None,
        objective: str | None = None,
    ) -> RegisterTask:
        check_only_backend(self.name, backend, "toy")
        numbers = uri.removeprefix("keeping://").split("-")
        if len(numbers) != 2 or not all(number.isdigit() for number in numbers):
            raise ProgramError(f"{uri!r} is no program: write keeping://4-6")
        return self.made((int(numbers[0]), int(numbers[1]))).under(objective)

    def dataset_names(self) -> list[str]:
        return ["all"]

    def dataset(self, name: str) -> Dataset:
        return dataset_of({"all": lambda: Dataset("all", "", ("keeping://4-6",), ("keeping://3-8",))}, name)

    def bench(self, farm: str | None = None, backend: str | None = None) -> Any:
        return KeepingBench()


KEEPING = Keeping()
