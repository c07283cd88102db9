"""Courses of training, compared."""

from pathlib import Path

import torch

from irgym.agents.run_folder import RunFolder


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
