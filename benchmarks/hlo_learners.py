"""PPO, A2C, TRPO and DQN on pass ordering, on the same graphs, steps and seeds (arXiv 2308.14364).

PPO also with the paper's two enhancements, shaping and cost features for the value function, apart and
together; and, as a check, PPO of Stable-Baselines3, which uses no masks. Equal computations are not merged,
since the pass for it is irgym's: all gains come from the order of XLA's passes. Each learner runs in a
separate process on one core. Policies are judged by one greedy episode on each held-out graph: the reduction
of operations over that of XLA's default order. Writes hlo_learners_DATASET.md and .svg; the page of the
environment's measurements shows them. Trainings that ended are kept in a folder of runs, so that a benchmark
that was stopped goes on.

    python benchmarks/hlo_learners.py --dataset gpt2 --steps 15000 --seeds 3
    python benchmarks/hlo_learners.py --dataset networks --steps 15000 --seeds 3
"""

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import tyro
from kept_results import kept

from irgym.core.dataset import spread
from irgym.core.limits import Limits, limited, unlimited
from irgym.core.reward import RelativeImprovement, Reward, Shaped
from irgym.core.schedule import replay
from irgym.core.task import Task
from irgym.envs.hlo.environment import HLO
from irgym.policies.policy import Policy
from irgym.search.rollouts import outcome, rollout

OURS: dict[str, tuple[str, dict[str, Any], Reward]] = {
    "PPO": ("ppo", {}, RelativeImprovement()),
    "PPO, shaped": ("ppo", {}, Shaped(RelativeImprovement())),
    "PPO, value features": ("ppo", {"value_features": True}, RelativeImprovement()),
    "PPO, both": ("ppo", {"value_features": True}, Shaped(RelativeImprovement())),
    "A2C": ("a2c", {}, RelativeImprovement()),
    "DQN": ("dqn", {}, RelativeImprovement()),
}
BASELINES: dict[str, tuple[str, dict[str, Any]]] = {
    "TRPO (sb3-contrib)": ("trpo", {"n_steps": 128}),
    "PPO (sb3)": ("ppo", {"n_steps": 128}),
}
"""Algorithms and changes to their defaults: with 8 environments, as many steps per update as ours."""

HIDDEN = (256, 256)
EPISODES = 32
"""Episodes of an iteration of our PPO."""

DEEP = ("layers=5", "layers=7", "layers=9")
"""Parts of the names of graphs that are too slow to train on for this benchmark."""

WITHOUT_MERGING = Limits(actions="!computation-deduplicator")


@dataclass(frozen=True)
class Options:
    """Options of the benchmark."""

    dataset: Literal["gpt2", "networks"] = "gpt2"
    """Graphs: GPT-2 alone, or 57 families of networks."""
    steps: int = 15_000
    """Environment steps of each learner."""
    seeds: int = 3
    """Seeds of each learner."""
    train: int = 12
    """Graphs to train on, spread over the smaller ones of the training split."""
    test: int = 11
    """Held-out graphs, spread over the test split."""
    processes: int = 2
    """Learners that train at the same time, one core each."""
    out: Path = Path("docs/measured")
    """Folder of the table and of the figure."""
    runs: Path = Path("runs/hlo_learners")
    """Folder of the trainings that ended."""


@dataclass(frozen=True)
class Result:
    """One training.

    Attributes:
        learner: Name in tables.
        seed: Of all random choices.
        curve: Pairs of steps and mean return.
        gain: Geometric mean over held-out graphs of the reduction over the default order's.
        seconds: Training time.
    """

    learner: str
    seed: int
    curve: list[tuple[int, float]]
    gain: float
    seconds: float


def tasks_of(uris: Sequence[str], count: int) -> list[Task[Any]]:
    """Return the given number of tasks, evenly spread, in which equal computations are not merged."""
    return [limited(HLO.task(uri), WITHOUT_MERGING) for uri in spread(uris, count)]


def training_graphs(options: Options) -> list[Task[Any]]:
    """Return tasks of graphs that are not deep."""
    uris = [uri for uri in HLO.dataset(options.dataset).train if not any(part in uri for part in DEEP)]
    return tasks_of(uris, options.train)


def gain_of(policy: Policy, options: Options) -> float:
    """Return the geometric mean of the policy's reduction over the default order's, at least 0.01 each."""
    gains: list[float] = []
    for task in tasks_of(HLO.dataset(options.dataset).test, options.test):
        [path] = rollout(task, policy, 1, None)
        whole: Any = unlimited(task)
        first = whole.initial().node.total
        default = replay(whole, whole.pipeline("core")).node.total
        found: Any = outcome(whole, path).state
        if default < first:
            gains.append(max(0.01, (first - found.node.total) / (first - default)))
    return float(np.exp(np.log(gains).mean()))


def run_ours(learner: str, seed: int, options: Options) -> Result:
    """Train one of our learners."""
    import torch

    from irgym.agents import AGENTS
    from irgym.agents.problem import Problem
    from irgym.measure.evaluators import Inline

    torch.set_num_threads(1)
    name, changes, reward = OURS[learner]
    config_type: Any = AGENTS.load(name)
    tasks = training_graphs(options)
    episodes = config_type().episodes if name == "a2c" else EPISODES
    iterations = -(-options.steps // (episodes * tasks[0].horizon))
    config = config_type(
        seed=seed, iterations=iterations, episodes=episodes, hidden=HIDDEN, normalise_observations=True
    )
    config = type(config)(**{**vars(config), **changes})
    problem = Problem(tasks, Inline(), reward)
    agent = config.build(problem)
    curve: list[tuple[int, float]] = []
    done, started = 0, time.perf_counter()
    while done < options.steps:
        outcomes, _ = agent.iterate()
        done += outcomes.steps
        curve.append((done, float(np.mean(1.0 - outcomes.last / outcomes.first))))
    seconds = time.perf_counter() - started
    gain = gain_of(agent.policy(), options)
    return Result(learner, seed, curve, gain, seconds)


def run_baseline(learner: str, seed: int, options: Options) -> Result:
    """Train a learner of Stable-Baselines3 with the defaults of the library, except for the widths."""
    import torch

    from irgym.agents.algorithms.sb3 import Reporting, train_sb3
    from irgym.gym.env import TaskEnv
    from irgym.measure.evaluators import Inline

    torch.set_num_threads(1)
    tasks = training_graphs(options)
    uris = [task.uri for task in tasks]
    curve: list[tuple[int, float]] = []
    started = time.perf_counter()
    algorithm, changes = BASELINES[learner]
    policy = train_sb3(
        algorithm,
        lambda: TaskEnv("hlo", programs=uris, evaluator=Inline(), actions=WITHOUT_MERGING.actions),
        tasks[0].space,
        steps=options.steps,
        environments=8,
        seed=seed,
        reporting=Reporting(lambda steps, mean: curve.append((steps, mean))),
        policy_kwargs={"net_arch": list(HIDDEN)},
        **changes,
    )
    seconds = time.perf_counter() - started
    gain = gain_of(policy, options)
    return Result(learner, seed, curve, gain, seconds)


def run(learner: str, seed: int, options: Options) -> Result:
    """Train a learner in this process, which keeps to one core."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[os.getpid() % len(cores)]})
    started: Callable[..., Result] = run_ours if learner in OURS else run_baseline
    return started(learner, seed, options)


def table(results: list[Result], options: Options) -> str:
    """Return the table as markdown."""
    lines = [
        "| learner | reduction over XLA's default order, held-out graphs | least and greatest seed | "
        "reduction in training at the end | seconds |",
        "|---|---|---|---|---|",
    ]
    for learner in dict.fromkeys(result.learner for result in results):
        rows = [result for result in results if result.learner == learner]
        gains = [row.gain for row in rows]
        final = float(np.mean([value for row in rows for _, value in row.curve[-5:]]))
        lines.append(
            f"| {learner} | {np.exp(np.mean(np.log(gains))):.3f} | {min(gains):.3f} to {max(gains):.3f} | "
            f"{final:.1%} | {np.mean([row.seconds for row in rows]):.0f} |"
        )
    lines += [
        "",
        f"{options.steps} environment steps each, {options.seeds} seeds, {options.train} training graphs "
        f"and {options.test} held-out ones of `{options.dataset}`; networks {HIDDEN}, reward: relative "
        "improvement of each step. Written by `python benchmarks/hlo_learners.py "
        f"--dataset {options.dataset} --steps {options.steps} --seeds {options.seeds}` on "
        f"{time.strftime('%Y-%m-%d')}, one core for each learner.",
    ]
    return "\n".join(lines) + "\n"


def plot(results: list[Result], path: Path) -> None:
    """Draw the learning curves: mean over the seeds, and the range."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5))
    axes = figure.add_subplot()
    for learner in dict.fromkeys(result.learner for result in results):
        rows = [result for result in results if result.learner == learner]
        end = min(row.curve[-1][0] for row in rows)
        grid = np.linspace(0, end, 60)[1:]
        values = np.array([np.interp(grid, *zip(*row.curve, strict=True)) for row in rows])
        [line] = axes.plot(grid, 100 * values.mean(axis=0), label=learner, linewidth=1.6)
        low, high = 100 * values.min(axis=0), 100 * values.max(axis=0)
        axes.fill_between(grid, low, high, alpha=0.12, color=line.get_color())
    axes.set_xlabel("environment steps")
    axes.set_ylabel("operations removed in training, %")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, ncols=2)
    figure.tight_layout()
    figure.savefig(path)


def write(results: list[Result], options: Options) -> None:
    """Write the table and the figure of all results so far."""
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / f"hlo_learners_{options.dataset}.md").write_text(table(results, options))
    plot(results, options.out / f"hlo_learners_{options.dataset}.svg")


def result_of(learner: str, seed: int, options: Options) -> Result:
    """Return the result of a training that ended before, or else train."""
    words = "".join(letter if letter.isalnum() else "-" for letter in learner.lower())
    file = options.runs / f"{options.dataset}-{options.steps}-{words}-{seed}.json"
    return Result(**kept(file, run, learner, seed, options))


def main() -> None:
    options = tyro.cli(Options, description=__doc__)
    jobs = [(learner, seed) for seed in range(options.seeds) for learner in (*OURS, *BASELINES)]
    results: list[Result] = []
    with ThreadPoolExecutor(options.processes) as threads:
        for result in threads.map(lambda job: result_of(*job, options), jobs):
            results.append(result)
            print(
                f"{result.learner:28s} seed {result.seed}: {result.gain:.3f}, {result.seconds:.0f} s",
                flush=True,
            )
            write(results, options)
    print(table(results, options))


if __name__ == "__main__":
    main()
