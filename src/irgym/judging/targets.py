"""Targets below this machine, such as AVX2 on a machine with AVX-512."""

from dataclasses import replace
from typing import Any, cast

from irgym.core import capabilities
from irgym.core.baseline import Versus
from irgym.core.bench import Bench
from irgym.core.cost import Call
from irgym.core.target import Target
from irgym.core.task import Task
from irgym.measure.peak import Peak
from irgym.measure.target import host_target


def lesser_target(task: Task[Any]) -> Target | None:
    """Return a task's target where it is less than this machine; None where it is this machine, or none."""
    target = task.target
    return None if target is None or target.name == host_target().name else target


def machine_text(bench: Bench, task: Task[Any]) -> str:
    """Return where a task is measured, in words, and what its code is made for if that is less."""
    target = lesser_target(task)
    return bench.machine if target is None else f"{bench.machine}; code for {target.name}"


def of_baseline(versus: Versus, task: Task[Any], call: Call) -> Versus:
    """Return the timings of a baseline, and say whether it was limited to a lesser target.

    Args:
        versus: The timings.
        task: What was timed.
        call: What timed it; its environment variables limit the baseline.
    """
    target = lesser_target(task)
    if target is None:
        return versus
    limited = "limited" if call.environment else "not limited"
    return replace(versus, detail=f"{versus.detail}, {limited} to {target.name}")


def peak_of(bench: Bench, task: Task[Any]) -> float | None:
    """Return the peak of a task's target in GFLOP/s; measured only where it bounds costs, None elsewhere."""
    if capabilities.ideal_cost(task, 1.0) is None:
        return None
    target = lesser_target(task)
    if target is None:
        return bench.peak_gflops
    return cast(Peak, bench.call(Call("irgym.measure.peak:measure_peak", (0.1, target)))).gflops
