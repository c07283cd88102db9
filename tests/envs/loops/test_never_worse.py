"""`tune` never reports a program that is slower than the original."""

import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

import irgym
from irgym.core.bench import Bench
from irgym.core.cost import Evaluator, Job, Measurement
from irgym.envs.loops.environment import LOOPS, LoopsEnvironment
from irgym.envs.loops.programs.datasets import generate
from irgym.judging.judge import KEPT
from irgym.judging.result import Tuned
from irgym.judging.statistics import NOISE
from irgym.judging.trials import Trials

PROGRAMS = (
    *generate("mm", 8, 4, 48, 1),
    *generate("bmm", 8, 4, 32, 1),
    *generate("conv", 8, 4, 32, 1),
)
SEARCHES = (None, "random", "greedy", "beam", "evolutionary", "annealing")
"""None is the default of `tune`: `guided` if torch is installed."""


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch):
    """Return one bench for all programs: starting one takes longer than tuning, as does describing it."""
    with LOOPS.bench() as shared:
        monkeypatch.setattr(LoopsEnvironment, "bench", lambda *_: nullcontext(shared))
        monkeypatch.setattr(type(shared), "machine", "this machine")
        yield shared


def is_slower(bench: Bench, result: Tuned) -> bool:
    """Say whether a result is slower than the original by more than the noise, in each of several trials.

    For a tenth of a second, other load on the machine may slow down only one of two programs.
    """
    states = [result.task.initial(), result.state]
    for _ in range(6):
        original, cost = Trials(bench, result.task).costs(states)
        if cost <= (1.0 + NOISE) * original:
            return False
        time.sleep(0.3)
    return True


def check(bench: Bench, result: Tuned) -> None:
    assert result.validated
    if result.no_gain:
        assert (result.no_gain, result.schedule, result.speedup) == (KEPT, "", 1.0), result.program
    else:
        assert result.cost < result.cost_as_written and result.schedule, result.program
        assert not is_slower(bench, result), result


@pytest.mark.timed
def test_a_search_of_a_tenth_of_a_second_reports_nothing_slower(bench):
    assert len(set(PROGRAMS)) == 24
    found = 0
    for number, program in enumerate(PROGRAMS):
        result = irgym.tune(
            program,
            seconds=0.1,
            seed=number,
            searching=irgym.Searching(search=SEARCHES[number % len(SEARCHES)]),
        )
        check(bench, result)
        found += not result.no_gain
    assert found > 5, "the model's choice alone improves most"


class Flattering:
    """Evaluator that makes slow programs look fast, as noise does to a few."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self.planted = 0

    def evaluate(self, jobs: Sequence[Job]) -> list[Measurement]:
        return [
            self._flattered(job, measurement)
            for job, measurement in zip(jobs, self._evaluator.evaluate(jobs), strict=True)
        ]

    def _flattered(self, job: Job, measurement: Measurement) -> Measurement:
        if job.original or not measurement.ok:
            return measurement
        self.planted += 1
        return replace(measurement, samples=(1.0 / measurement.cost,))


@pytest.mark.timed
def test_programs_that_look_faster_by_noise_alone_are_not_reported(bench, monkeypatch: pytest.MonkeyPatch):
    flattering: Any = Flattering(bench.evaluator)
    monkeypatch.setattr(type(bench), "evaluator", flattering)
    # What the model chooses is faster indeed.
    monkeypatch.setattr(LoopsEnvironment, "beginnings", lambda *_: ())
    kept = 0
    for number, program in enumerate(PROGRAMS[::4]):
        result = irgym.tune(program, seed=number, searching=irgym.Searching(search="random", evaluations=40))
        check(bench, result)
        kept += bool(result.no_gain)
    assert flattering.planted > 120 and kept >= 4, "of six"
