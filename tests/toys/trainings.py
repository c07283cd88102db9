"""Trainings, compared."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from irgym.agents.problem import Problem
from irgym.agents.training import greedy_score
from irgym.networks import storage
from irgym.policies.run_folder import RunFolder

SEEDS = (0, 1, 2)


def learns(config: Any, problem: Problem, score: float, judge: Problem | None = None) -> bool:
    """Whether a learner comes to a score within its iterations, from one of three seeds.

    Processors add up in different orders, and a single seed that leads there on one may not on another.
    """
    judge = judge or problem
    for seed in SEEDS:
        learner = replace(config, seed=seed).build(problem)
        for iteration in range(1, config.iterations + 1):
            learner.iterate()
            seen = iteration % 5 == 0 or iteration == config.iterations
            if seen and greedy_score(learner.policy(), judge.tasks, judge) >= score:
                return True
    return False


def contents(run: Path):
    """All that must not depend on an interruption."""
    rows = RunFolder(run).read_metrics()
    timings = ("seconds", "evaluations_per_s")
    return [{key: value for key, value in row.items() if key not in timings} for row in rows]


def equal(a, b) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(equal, a, b))
    return torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


def check_resuming(config: Any, problem: Problem, iterations: int, file: Path) -> None:
    """Assert that a learner goes on from a file exactly as one that was not interrupted."""
    whole = config.build(problem)
    for _ in range(iterations):
        whole.iterate()
    storage.write(file, {"kind": "state", "learner": whole.state_dict()})
    resumed = config.build(problem)
    resumed.load_state_dict(storage.read(file, "state")["learner"])
    for _ in range(3):
        (ours, first), (theirs, second) = whole.iterate(), resumed.iterate()
        np.testing.assert_array_equal(ours.returns, theirs.returns)
        assert first == second
    assert equal(whole.state_dict(), resumed.state_dict())
