"""Steps per second of graph: a rewrite, its digest, the mask with all candidates, and the observation.

It runs random episodes of single rewrites in one process, and then times the choice of an action: a forward
pass of a policy's network on one state, on one thread.

    python benchmarks/graph_throughput.py --repeats 3
"""

import statistics
import time
from dataclasses import dataclass

import numpy as np
import torch
import tyro

from irgym.agents.construction import spec_of
from irgym.agents.hyperparameters import NetworkOptions
from irgym.base.garbage import collect_seldom
from irgym.core.actions import Action
from irgym.envs.graph.environment import GRAPH
from irgym.envs.graph.state import EVERYWHERE
from irgym.envs.graph.task import GraphTask
from irgym.measure.machine import fingerprint
from irgym.networks.actor_critic import Actor
from irgym.networks.policy import TorchPolicy
from irgym.policies.layout import LAYOUTS

BERT = "graph://bert?layers=12"
INCEPTION = "graph://inception_v3"
BARS = {BERT: 400.0, INCEPTION: 400.0}
"""Targets in steps per second."""

PASS = 30.0
"""Target for a forward pass with 300 candidates, in milliseconds."""


@dataclass(frozen=True)
class Options:
    """Models and durations."""

    seconds: float = 10.0
    """Seconds of each run."""
    repeats: int = 3
    """Runs of each model, with different seeds; the median is reported."""
    hidden: tuple[int, ...] = (64, 64, 64)
    """Widths of the network's layers."""
    programs: tuple[str, ...] = (BERT, INCEPTION)
    """URIs of the models."""


def single(candidates: tuple[tuple[int, str], ...]) -> list[tuple[int, str]]:
    """Return the candidates that are single rewrites."""
    return [pair for pair in candidates if pair[1] != EVERYWHERE]


def steps_per_second(task: GraphTask, seconds: float, seed: int) -> tuple[float, float]:
    """Return the steps per second of random episodes, and the mean number of candidates."""
    rng = np.random.default_rng(seed)
    state, steps, seen = task.initial(), 0, 0
    started = time.perf_counter()
    while time.perf_counter() - started < seconds:
        task.observe(state)
        candidates = single(task.mask(state).candidates)
        seen += len(candidates)
        if not candidates or (steps and steps % task.horizon == 0):
            state = task.initial()
            candidates = single(task.mask(state).candidates)
        kind, name = candidates[int(rng.integers(len(candidates)))]
        state = task.step(state, Action(kind, candidate=name))
        steps += 1
    return steps / (time.perf_counter() - started), seen / steps


def pass_ms(task: GraphTask, hidden: tuple[int, ...], passes: int = 30) -> float:
    """Return the median milliseconds in which an untrained network chooses an action in the initial state."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    state = task.initial()
    spec = spec_of(NetworkOptions(hidden=hidden), task)
    policy = TorchPolicy(Actor(spec, LAYOUTS["structured"](task.space)), "graph")
    observations, masks = [task.observe(state)], [task.mask(state)]
    times: list[float] = []
    for _ in range(passes):
        started = time.perf_counter()
        policy.act(observations, masks, None)
        times.append(time.perf_counter() - started)
    return 1e3 * statistics.median(times)


def main(options: Options) -> None:
    """Print the medians and the targets."""
    collect_seldom()  # as irgym does in its processes
    print(fingerprint().text())
    for uri in options.programs:
        task = GRAPH.task(uri)
        runs = [steps_per_second(task, options.seconds, seed) for seed in range(options.repeats)]
        rate = statistics.median(rate for rate, _ in runs)
        bar = BARS.get(uri)
        wanted = f"; bar {bar:.0f}: {'met' if rate >= bar else 'NOT met'}" if bar else ""
        print(
            f"{uri}: {len(task.graph.nodes)} operators, {statistics.mean(seen for _, seen in runs):.0f} "
            f"candidates, {rate:.0f} steps/s ({', '.join(f'{steps:.0f}' for steps, _ in runs)}){wanted}"
        )
        count = len(task.mask(task.initial()).candidates)
        taken = pass_ms(task, options.hidden)
        print(
            f"  forward pass, hidden {options.hidden}: {count} candidates, {taken:.1f} ms; bar {PASS:.0f} ms "
            f"with 300: {'met' if taken * 300 / max(count, 300) <= PASS else 'NOT met'}"
        )


if __name__ == "__main__":
    main(tyro.cli(Options))
