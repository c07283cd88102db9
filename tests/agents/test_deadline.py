"""Annealing follows the iterations of the run, or its time; time also ends and reports an iteration."""

import math
import time
from dataclasses import replace
from pathlib import Path

import dials
import pytest

from irgym.agents.algorithms.ppo import PPOConfig
from irgym.agents.deadline import Deadline, OutOfTimeError
from irgym.agents.training import train
from irgym.core.lockstep import play
from irgym.policies.run_folder import RunFolder

SMALL = PPOConfig(episodes=4, hidden=(8,), epochs=1, lr=1.0e-3, lr_end=0.0)


def test_share_of_a_training():
    assert [Deadline().share(done, 4) for done in (0, 2, 4, 9)] == [0.0, 0.5, 1.0, 1.0]
    assert Deadline(passed=0.25).share(3, 4) == 0.25


def test_time_anneals_where_only_time_limits(tmp_path: Path):
    train(SMALL, dials.problem([(1, 2, 3)]), tmp_path / "run", seconds=0.3)
    rates = [row["lr"] for row in RunFolder(tmp_path / "run").read_metrics()]
    assert rates[0] == 1e-3 and rates == sorted(rates, reverse=True) and rates[-1] < 0.7e-3
    train(SMALL, dials.problem([(1, 2, 3)]), tmp_path / "both", seconds=100.0, iterations=4)
    rates = [row["lr"] for row in RunFolder(tmp_path / "both").read_metrics()]
    assert math.isclose(rates[1], 1e-3 * (1 - 1 / SMALL.iterations)), "iterations count where they are given"


class Slow:
    """An evaluator whose second batch takes long, in many parts, before each of which it asks."""

    def __init__(self, inner, deadline):
        self.inner, self.deadline, self.batches = inner, deadline, 0

    def evaluate(self, jobs):
        self.batches += 1
        for part in range(100 if self.batches == 2 else 0):
            self.deadline.measuring(part, 100)
            time.sleep(0.05)
        return self.inner.evaluate(jobs)


def test_an_iteration_that_suddenly_takes_long_is_cut_and_reported(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("irgym.agents.deadline.EVERY_S", 0.3)
    problem, said = dials.problem([(1, 2, 3)]), []
    problem.deadline.report = said.append
    problem = replace(problem, evaluator=Slow(problem.evaluator, problem.deadline))
    started = time.monotonic()
    train(replace(SMALL, checkpoint_every=0.5), problem, tmp_path / "run", seconds=1.0)
    assert time.monotonic() - started < 4.0, "the iteration takes five seconds"
    assert (
        1 <= len(said) <= 5 and said[0].startswith("iteration 2: measured ") and "of 100 programs" in said[0]
    )
    folder = RunFolder(tmp_path / "run")
    assert len(folder.read_metrics()) == 1, "the first iteration counts, the second leaves no trace"


def test_episodes_end_between_observations():
    """A turn of many slow observations is not waited for."""
    seen: list[int] = []

    class Watched(dials.Dials):
        def observe(self, state, name=""):
            seen.append(1)
            return super().observe(state, name)

    def check() -> None:
        if len(seen) == 3:
            raise OutOfTimeError

    with pytest.raises(OutOfTimeError):
        play([Watched((1, 2, 3))] * 8, lambda turn: turn.observations("") and [], check)
    assert len(seen) == 3
