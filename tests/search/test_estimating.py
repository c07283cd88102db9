"""Programs that estimates show to be slow are not measured, and never called the best."""

from collections.abc import Sequence
from typing import Any

import pytest
from dials import Dials, cost

from irgym.core.cost import Call, Job, Measurement, Outcome
from irgym.search.budget import Budget
from irgym.search.estimating import PROMISING, Estimating
from irgym.search.request import SearchRequest
from irgym.search.session import Session


class Estimated(Dials):
    """Dials whose costs can be estimated."""

    def estimate(self, state: Any) -> Job | None:
        return Job(Call("estimate", (state,)), self.uri, str(state), "", "estimate", target="")


class Costs:
    """Evaluator that counts what it is asked for."""

    def __init__(self, off: float = 1.0, failing: frozenset[str] = frozenset()) -> None:
        self.off, self.failing = off, failing
        self.measured: list[str] = []
        self.estimated: list[str] = []

    def evaluate(self, jobs: Sequence[Job]) -> list[Measurement]:
        return [self._one(job) for job in jobs]

    def _one(self, job: Job) -> Measurement:
        value = float(job.schedule)
        if job.objective != "estimate":
            self.measured.append(job.schedule)
            return Measurement(Outcome.OK, (value,))
        self.estimated.append(job.schedule)
        if job.schedule in self.failing:
            return Measurement(Outcome.TIMEOUT)
        return Measurement(Outcome.OK, (self.off * value,))


def jobs_of(*costs: float) -> list[tuple[Any, Job]]:
    return [(cost, Job(Call("measure"), "p", str(cost), "", target="")) for cost in costs]


def estimating(costs: Costs) -> Estimating:
    return Estimating(Estimated((1, 2, 3)), costs)


def test_far_from_the_least_they_are_estimated_and_measured_near_it():
    costs = Costs()
    found = estimating(costs).costs(jobs_of(8.0, 10.0, 10.4, 10.6, 50.0), least=10.0)
    assert [each.cost for each in found] == [8.0, 10.0, 10.4, 10.6, 50.0]
    assert [each.measured for each in found] == [True, True, True, False, False]
    assert costs.measured == ["8.0", "10.0", "10.4"]
    assert 10.4 / 10.0 < PROMISING < 10.6 / 10.0


def test_without_a_least_cost_all_are_measured_and_none_is_estimated():
    costs = Costs()
    found = estimating(costs).costs(jobs_of(8.0, 50.0), least=float("inf"))
    assert all(each.measured for each in found) and not costs.estimated


def test_estimates_are_scaled_by_what_they_were_off():
    costs = Costs(off=0.8)
    estimates = estimating(costs)
    first = estimates.costs(jobs_of(12.0, 20.0), least=10.0)
    assert first[0] == (12.0, True), "9.6 looked better than the least"
    assert first[1] == (16.0, False)
    assert estimates.costs(jobs_of(12.1, 30.0), least=10.0) == [
        (pytest.approx(12.1), False),
        (pytest.approx(30.0), False),
    ]


def test_what_cannot_be_estimated_is_measured():
    costs = Costs(failing=frozenset({"50.0"}))
    assert estimating(costs).costs(jobs_of(50.0, 60.0), least=10.0) == [(50.0, True), (60.0, False)]


class Lying:
    """Evaluator whose estimates are far above the costs."""

    def evaluate(self, jobs: Sequence[Job]) -> list[Measurement]:
        return [
            Measurement(Outcome.OK, (1e6,)) if job.objective == "estimate" else cost(*job.call.arguments)
            for job in jobs
        ]


def test_a_session_never_takes_an_estimate_for_the_best():
    session = Session(Estimated((1, 2, 3)), Lying(), SearchRequest(Budget(50)))
    session.costs([session.root])
    first = session.best_cost
    turned = session.children(session.root)
    assert set(session.costs(turned)) == {1e6}, "none seems worth a measurement"
    assert [found for found, _ in session.finalists] == [first] == [point.cost for point in session.trace]
    assert session.evaluations == 1 + len({session.task.key(node.state) for node in turned})
