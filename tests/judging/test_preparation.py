"""When the work that does not depend on a candidate is done: never beside a measurement of times."""

from typing import Any, ClassVar, cast

import pytest
from tests.toys.keeping import SUM, KeepingBench, RegisterTask

from irgym.core.bench import Bench
from irgym.core.cost import Call
from irgym.core.objective import TIME, Objective
from irgym.judging.validator import Validator


class PreparedTask(RegisterTask):
    """A task with something to prepare for validations, and perhaps for measurements."""

    objectives: ClassVar[tuple[Objective, ...]] = (TIME, SUM)

    def __init__(self, warms: bool) -> None:
        super().__init__((1, 2))
        self._warms = warms

    def preparation(self, inputs: int, seed: int) -> Call:
        return Call("toy:prepare", (inputs, seed))

    def warming(self) -> Call | None:
        return Call("toy:warm") if self._warms else None

    def validation_s(self) -> float:
        return 0.0


class ToldBench(KeepingBench):
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def prepare(self, *calls: Call, candidates: Call | None = None) -> None:
        self.told.append(([call.function for call in calls], candidates and candidates.function))

    def settle(self) -> None:
        self.told.append("settle")


BOTH, ALONE = (["toy:prepare"], "toy:warm"), (["toy:prepare"], None)


@pytest.mark.parametrize(
    ("warms", "objective", "told"),
    [
        (True, "time", [BOTH, "settle"]),
        (True, "sum", [BOTH]),
        (False, "time", []),
        (False, "sum", [ALONE]),
    ],
)
def test_nothing_is_prepared_beside_a_timing(warms: bool, objective: str, told: list[Any]):
    bench = ToldBench()
    task = PreparedTask(warms).under(objective)
    Validator(cast(Bench, bench), inputs=3, seed=0).prepare(task)
    assert bench.told == told


def test_without_validation_nothing_is_prepared():
    bench = ToldBench()
    Validator(cast(Bench, bench), inputs=0, seed=0).prepare(PreparedTask(True).under("time"))
    assert bench.told == []
