"""Annealing follows the iterations of the run, or its time where nothing else limits it."""

import math
from pathlib import Path

import dials

from irgym.agents.algorithms.ppo import PPOConfig
from irgym.agents.deadline import Deadline
from irgym.agents.training import train
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
