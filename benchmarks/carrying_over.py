"""Loss of policies on targets and cache sizes that are not in their training.

Each policy acts greedily on the same programs for each target, and is compared with the policy that is named
after the target and was trained on it alone. In `loops` each policy is also told cache sizes other than this
machine's; the schedules that it then chooses are timed here, beside those chosen with the true sizes.

    irgym train loops --recipe scratch --target x86-64-v4 --run runs/v4
    irgym train loops --recipe scratch --target x86-64-v3 --run runs/v3
    irgym train loops --recipe scratch --target x86-64-v4,x86-64-v3 --set iterations=80 --run runs/both
    python benchmarks/carrying_over.py --policies x86-64-v4=runs/v4 x86-64-v3=runs/v3 both=runs/both
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import tyro

from irgym.core.bench import Bench
from irgym.core.catalogue import ENVIRONMENTS
from irgym.core.dataset import spread
from irgym.core.task import Task
from irgym.envs.loops.task import LoopsTask
from irgym.judging.statistics import geometric_interval
from irgym.judging.targets import machine_text
from irgym.judging.trials import Trials
from irgym.policies.policy import Policy
from irgym.search.policies import load_policy
from irgym.search.rollouts import outcome, rollout


@dataclass(frozen=True)
class Options:
    """Policies, targets and programs to compare."""

    policies: tuple[str, ...] = ("default=default",)
    """NAME=POLICY: a file, a run folder or a shipped policy. A policy named after a target must have been
    trained on it alone."""
    environment: str = "loops"
    """Environment of the policies."""
    targets: tuple[str, ...] = ("x86-64-v4", "x86-64-v3")
    """Targets to act for."""
    caches: tuple[float, ...] = (0.25, 0.5, 2.0, 4.0)
    """Factors on the sizes of the caches, in `loops`; none skips this comparison."""
    limit: int = 54
    """Programs of the test split, evenly spread."""


def final(task: Task[Any], policy: Policy) -> Any:
    """Return the final state of the most probable episode."""
    [path] = rollout(task, policy, 1, None)
    return outcome(task, path).state


def with_caches(task: LoopsTask, factor: float) -> LoopsTask:
    """Return the program for a machine whose caches are `factor` times as large."""
    caches = tuple(replace(cache, size=int(cache.size * factor)) for cache in task.target.caches)
    return LoopsTask(task.contraction, task.backend, replace(task.target, caches=caches))


def ratios(costs: Sequence[Sequence[float]], ours: int, others: int) -> str:
    """Return the speedup of column `ours` over `others`: the geometric mean over programs, its interval."""
    interval = geometric_interval([row[others] / row[ours] for row in costs])
    return f"{interval.mean:.3f} [{interval.low:.3f}, {interval.high:.3f}]"


def on_target(
    bench: Bench, tasks: Sequence[Task[Any]], policies: Mapping[str, Policy], own: str | None
) -> None:
    """Print the speedups of policies on a target, over the original programs and the target's policy."""
    costs = [
        Trials(bench, task).costs([task.initial(), *(final(task, policy) for policy in policies.values())])
        for task in tasks
    ]
    columns = {name: place for place, name in enumerate(policies, start=1)}
    for name, place in columns.items():
        line = f"  {name:12s} {ratios(costs, place, 0)} times the original program"
        if own is not None and name != own:
            line += f", {ratios(costs, place, columns[own])} times {own}"
        print(line, flush=True)


def with_other_caches(
    bench: Bench, tasks: Sequence[LoopsTask], policies: Mapping[str, Policy], factors: Sequence[float]
) -> None:
    """Print the speedups of policies that are told other cache sizes."""
    for name, policy in policies.items():
        costs = [
            Trials(bench, task).costs(
                [final(task, policy), *(final(with_caches(task, factor), policy) for factor in factors)],
            )
            for task in tasks
        ]
        for place, factor in enumerate(factors, start=1):
            print(
                f"  {name:12s} caches x {factor:g}: {ratios(costs, place, 0)} times that with the true ones"
            )


def main(options: Options) -> None:
    """Print a table for each target."""
    environment = ENVIRONMENTS.load(options.environment)
    uris = spread(environment.dataset(environment.default_dataset).test, options.limit)
    with environment.bench() as bench:
        for target in options.targets:
            tasks = [environment.task(uri, target=target) for uri in uris]
            names = [name.partition("=")[::2] for name in options.policies]
            policies = {name: load_policy(environment, file, tasks[0]) for name, file in names}
            print(f"{target}, {len(tasks)} programs; {machine_text(bench, tasks[0])}")
            on_target(bench, tasks, policies, target if target in policies else None)
            loops = [task for task in tasks if isinstance(task, LoopsTask)]
            if loops:
                with_other_caches(bench, loops, policies, options.caches)


if __name__ == "__main__":
    main(tyro.cli(Options))
