"""Trainings, compared."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from irgym.agents.evaluation import greedy_score
from irgym.agents.problem import Problem
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
    return [{key: value for key, value in row.items() if not timed(key)} for row in rows]


def timed(metric: str) -> bool:
    """Whether a metric depends on how fast the machine is."""
    return metric == "seconds" or metric.endswith("_s")
