"""Counts of the threads that a parallel loop starts, and their shares of its work. Runs in a child."""

from pathlib import Path

from irgym.envs.linalg import runner
from irgym.envs.linalg.checking import prepared as checking
from irgym.measure.target import host_target


def threads_started(text, script, threads):
    """Return the numbers of threads that our loops and then torch's start, and torch's error."""
    before = len(_cpu_ns())
    assert runner.validate(text, script, host_target(), 1, 0, threads).ok
    ours = len(_cpu_ns()) - before
    import torch

    torch.set_num_threads(2)
    before = len(_cpu_ns())
    total = (torch.ones(512, 512) * 2).sum(0)
    return ours, len(_cpu_ns()) - before, float((total - 1024).abs().max())


def shares_of_work(text, script, threads, repetitions):
    """Return the share of the CPU time that each thread takes in repeated executions, the greatest first."""
    _, buffers = checking.prepared(text)
    executable = runner._compiled(text, script, host_target(), threads)[0].on(buffers.all)
    executable.run(1)
    before = _cpu_ns()
    executable.run(repetitions)
    spent = sorted((now - before.get(thread, 0) for thread, now in _cpu_ns().items()), reverse=True)
    return [ns / sum(spent) for ns in spent]


def _cpu_ns():
    """Return the CPU time of each thread of this process."""
    stats = Path("/proc/self/task").glob("*/schedstat")
    return {stat.parent.name: int(stat.read_text().split()[0]) for stat in stats}
