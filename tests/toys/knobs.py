"""A toy with many settings, each of which changes the cost by itself and together with its neighbour."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from irgym.core.actions import Action, ActionSpace, Mask
from irgym.core.cost import Call, Job, Measurement, Outcome, Record
from irgym.core.kinds import ActionKind
from irgym.core.observation import ObservationView, array_view, views_of
from irgym.core.task import Task

KNOBS, VALUES = 12, 8
BEST = np.random.default_rng(5).integers(VALUES, size=KNOBS)
State = tuple[int, ...]


def cost(values: State) -> float:
    """Each knob costs by its distance from the best value, more so beside another that is far off."""
    away = np.abs(np.array(values) - BEST) / VALUES
    return 10.0 * math.exp(float(away.sum() + 2.0 * (away[1:] * away[:-1]).sum()))


class Knobs(Task[State]):
    uri = "knobs://1"
    space = ActionSpace((ActionKind("set", (tuple(range(KNOBS)), tuple(range(VALUES)))),))
    horizon = 2 * KNOBS

    def initial(self) -> State:
        return (0,) * KNOBS

    def mask(self, state: State) -> Mask:
        return self.space.mask([True], [True] * self.space.param_count)

    def step(self, state: State, action: Action) -> State:
        knob, value = action.params
        return (*state[:knob], value, *state[knob + 1 :])

    def terminal(self, state: State) -> bool:
        return False

    @property
    def views(self) -> Mapping[str, ObservationView]:
        length = len(self.initial())
        return views_of(
            array_view("knobs", "", (length,), lambda task, state: np.array(state, dtype=np.float32))
        )

    def cost_features(self, state: State) -> np.ndarray:
        return np.array(state, dtype=float)

    def recorded(self, schedule: str) -> State:
        return tuple(map(int, schedule.split()))

    def key(self, state: State) -> str:
        return " ".join(map(str, state))

    def job(self, state: State) -> Job:
        return Job(Call("knobs:cost", (state,)), self.uri, self.key(state), "knobs 1", target="")

    def validation(self, state: State, inputs: int, seed: int) -> Call:
        raise NotImplementedError

    def describe(self, state: State) -> str:
        return str(state)

    def export(self, state: State, path: Path) -> list[Path]:
        raise NotImplementedError


class Remembering:
    """Computes costs, batch by batch, and remembers them, as evaluators with a cost cache do."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.known: dict[str, Measurement] = {}

    def evaluate(self, jobs: Sequence[Job]) -> list[Measurement]:
        self.batches.append([job.schedule for job in jobs])
        found = [Measurement(Outcome.OK, (cost(*job.call.arguments),)) for job in jobs]
        self.known |= {job.schedule: measurement for job, measurement in zip(jobs, found, strict=True)}
        return found

    def recall(self, jobs: Sequence[Job]) -> list[Measurement | None]:
        return [self.known.get(job.schedule) for job in jobs]

    def records(self, scheme: str, objective: str, target: str, limit: int | None) -> list[Record]:
        assert (scheme, objective, target) == ("knobs", "time", "")
        rows = [Record(Knobs.uri, text, "knobs 1", measurement) for text, measurement in self.known.items()]
        # Of another program, of which there is no task: nothing can be learnt from it.
        return [
            Record("knobs://2", text, "knobs 1", Measurement(Outcome.OK, (1.0,))) for text in self.known
        ] + rows
