"""What policies lose on a target, or on sizes of caches, that their training never had.

Each policy acts greedily on the same programs for each target, beside the policy that is named after the
target, which was trained on that alone. In `loops` each also acts as on machines with other caches than this
one's; what it then does is timed here, beside what it does with the true ones.

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
    """What to compare."""

    policies: tuple[str, ...] = ("default=default",)
    """NAME=POLICY: a file, a run folder or a shipped policy. One that is named after a target was trained on
    that alone."""
    environment: str = "loops"
    """Environment of the policies."""
    targets: tuple[str, ...] = ("x86-64-v4", "x86-64-v3")
    """Targets to act for."""
    caches: tuple[float, ...] = (0.25, 0.5, 2.0, 4.0)
    """Factors on the sizes of the caches, in `loops`; none leaves that part out."""
    limit: int = 54
    """Programs of the test split, evenly spread."""


def final(task: Task[Any], policy: Policy) -> Any:
    """Return the final state of the most probable episode."""
    [path] = rollout(task, policy, 1, None)
    return outcome(task, path).state


def with_caches(task: LoopsTask, factor: float) -> LoopsTask:
    """Return the program on a machine whose caches are so many times as large."""
    caches = tuple(replace(cache, size=int(cache.size * factor)) for cache in task.target.caches)
    return LoopsTask(task.contraction, task.backend, replace(task.target, caches=caches))


def ratios(costs: Sequence[Sequence[float]], ours: int, others: int) -> str:
    """Return how many times as fast one column of costs is as another, over all programs."""
    interval = geometric_interval([row[others] / row[ours] for row in costs])
    return f"{interval.mean:.3f} [{interval.low:.3f}, {interval.high:.3f}]"


def on_target(
    bench: Bench, tasks: Sequence[Task[Any]], policies: Mapping[str, Policy], own: str | None
) -> None:
    """Print how policies do on a target, also over its own one."""
    costs = [
        Trials(bench, task).costs([task.initial(), *(final(task, policy) for policy in policies.values())])
        for task in tasks
    ]
    columns = {name: place for place, name in enumerate(policies, start=1)}
    for name, place in columns.items():
        line = f"  {name:12s} {ratios(costs, place, 0)} times the program as written"
        if own is not None and name != own:
            line += f", {ratios(costs, place, columns[own])} times {own}'s own"
        print(line, flush=True)


def with_other_caches(
    bench: Bench, tasks: Sequence[LoopsTask], policies: Mapping[str, Policy], factors: Sequence[float]
) -> None:
    """Print how policies do that are told of other caches."""
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
