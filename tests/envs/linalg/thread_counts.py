"""What a child runs to see whose threads a parallel loop starts."""

from pathlib import Path

from irgym.envs.linalg import runner


def threads_started(text, script, threads):
    """Return how many threads our loops start, how many torch's start after them, and torch's error."""
    before = _count()
    assert runner.validate(text, script, 1, 0, threads).ok
    ours = _count() - before
    import torch

    torch.set_num_threads(2)
    before = _count()
    total = (torch.ones(512, 512) * 2).sum(0)
    return ours, _count() - before, float((total - 1024).abs().max())


def _count():
    return len(list(Path("/proc/self/task").iterdir()))
