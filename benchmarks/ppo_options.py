"""Effect of each option of PPO, changed one at a time, at an equal number of episodes.

Two problems whose costs are exact, so that nothing is timed: `hlo`, operation counts on the data set `tiny`,
and `dials`, the toy of the tests whose actions have parameters that depend on each other. The score
of a training is the geometric mean of first cost over last cost, of one greedy episode on each program. The
score of an option is divided by the default's with the same seed. The tables have the geometric mean over
seeds, its 95 % interval, and the median number of episodes until the running mean return reaches 95 % of the
default's final one.

    python benchmarks/ppo_options.py --seeds 6 --out docs/measured/ppo_options.md
    python benchmarks/ppo_options.py --problems dials --options reuse=random value_epochs=4
"""

import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.append(str(Path(__file__).parents[1] / "tests" / "toys"))

import dials
import numpy as np
import torch
import tyro

from irgym.agents.algorithms.ppo import PPOConfig
from irgym.agents.evaluation import greedy_score
from irgym.agents.problem import Problem
from irgym.core.reward import LogSpeedup, RelativeImprovement
from irgym.envs.hlo.environment import HLO
from irgym.judging.statistics import Verdict, geometric_interval
from irgym.measure.evaluators import Inline

DEFAULT = PPOConfig(episodes=32, minibatch=128, lr=3e-3, hidden=(64, 64), normalise_observations=True)
"""The baseline of every option; other values are the defaults of `PPOConfig`."""

CHANGES: dict[str, dict[str, Any]] = {
    "reuse=random": {"reuse": "random"},
    "reuse=top-k": {"reuse": "top-k"},
    "reuse=random importance_limit=1e30": {"reuse": "random", "importance_limit": 1e30},
    "value_epochs=4": {"value_epochs": 4},
    "value_clip=0.2": {"value_clip": 0.2},
    "advantages=max-abs": {"advantages": "max-abs"},
    "advantages=none": {"advantages": "none"},
    "epsilon=0.1": {"epsilon": 0.1},
    "target_kl=0.01": {"target_kl": 0.01},
    "group=4": {"group": 4},
    "shared=true": {"shared": True},
    "actions=autoregressive": {"actions": "autoregressive"},
    "actions=flat": {"actions": "flat"},
    "value_features=true": {"value_features": True},
    "normalise_rewards=false": {"normalise_rewards": False},
    "normalise_observations=false": {"normalise_observations": False},
}
"""Options as `--set` takes them. A limit of 1e30 leaves the importance weights unlimited."""

WORDS = {Verdict.FASTER: "better", Verdict.TIE: "no difference shown", Verdict.SLOWER: "worse"}
SHARE = 0.95
"""Share of the default's final mean return that counts as reaching it."""


def hlo() -> Problem:
    """Return pass ordering on eight small graphs."""
    return Problem([HLO.task(uri) for uri in HLO.dataset("tiny").train], Inline(), RelativeImprovement())


@dataclass(frozen=True)
class Setting:
    """A problem to train on.

    Attributes:
        problem: Makes the problem.
        iterations: Default number of iterations of a training.
        senseless: Hyper-parameters that have no effect on the problem.
    """

    problem: Callable[[], Problem]
    iterations: int
    senseless: frozenset[str]


SETTINGS = {
    "hlo": Setting(hlo, 25, frozenset({"actions"})),
    "dials": Setting(dials.problem, 300, frozenset({"value_features"})),
}
"""Passes have no parameters; the dials have no cost features."""


@dataclass(frozen=True)
class Options:
    """Trainings, and the file for the tables."""

    problems: tuple[str, ...] = ("hlo", "dials")
    """Problems: hlo, dials."""
    options: tuple[str, ...] = ()
    """Rows of the table; by default all options."""
    seeds: int = 6
    """Seeds of each training, from 0."""
    iterations: int | None = None
    """Iterations of each training; by default 25 for hlo and 300 for dials."""
    processes: int = 2
    """Trainings at the same time, one core each."""
    out: Path | None = None
    """File for the tables."""


@dataclass(frozen=True)
class Result:
    """One training.

    Attributes:
        speedup: Geometric mean of first cost over last, one greedy episode on each program.
        curve: Mean return of the episodes of each iteration.
    """

    speedup: float
    curve: list[float]


def run(problem_name: str, change: dict[str, Any], seed: int, iterations: int) -> Result:
    """Train in this process."""
    torch.set_num_threads(1)
    problem = SETTINGS[problem_name].problem()
    learner = replace(DEFAULT, seed=seed, iterations=iterations, **change).build(problem)
    curve = [float(learner.iterate()[0].returns.mean()) for _ in range(iterations)]
    judge = replace(problem, reward=LogSpeedup())
    return Result(10 ** greedy_score(learner.policy(), judge.tasks, judge), curve)


def running_mean(curve: list[float]) -> np.ndarray:
    """Return the running mean over a tenth of the training, for each complete window."""
    width = max(1, len(curve) // 10)
    return np.convolve(curve, np.full(width, 1 / width), mode="valid")


def episodes_to(level: float, curve: list[float]) -> float:
    """Return the episodes until the running mean reaches a level; infinite if it never does."""
    means = running_mean(curve)
    there = np.flatnonzero(means >= level)
    return float((there[0] + 1 + len(curve) - len(means)) * DEFAULT.episodes) if len(there) else np.inf


def table(rows: dict[str, list[Result]]) -> str:
    """Return the table of a problem as Markdown; the first row is the default's."""
    default = next(iter(rows.values()))
    level = SHARE * float(np.mean([running_mean(result.curve)[-1] for result in default]))
    lines = [
        "| option | first cost over last | over the default's, same seeds | reading | "
        "episodes to 95 % of the default's last return |",
        "|---|---|---|---|---|",
    ]
    for name, results in rows.items():
        own = geometric_interval([result.speedup for result in results])
        ratios = [result.speedup / other.speedup for result, other in zip(results, default, strict=True)]
        over = geometric_interval(ratios)
        needed = median(episodes_to(level, result.curve) for result in results)
        cells = [f"`{name}`", f"{own.mean:.3f}", f"{over.mean:.3f} [{over.low:.3f}, {over.high:.3f}]"]
        cells.append(WORDS[over.verdict])
        if results is default:
            cells = [name, f"{own.mean:.3f}", "", ""]
        cells.append(f"{needed:,.0f}" if np.isfinite(needed) else "not reached")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def report(name: str, options: Options, executor: ProcessPoolExecutor) -> str:
    """Train all options on a problem; return the table under a line that describes the trainings."""
    setting = SETTINGS[name]
    iterations = options.iterations or setting.iterations
    changes = {"default": {}} | {
        option: change
        for option, change in CHANGES.items()
        if not setting.senseless & set(change) and (not options.options or option in options.options)
    }
    futures = {
        option: [executor.submit(run, name, change, seed, iterations) for seed in range(options.seeds)]
        for option, change in changes.items()
    }
    rows: dict[str, list[Result]] = {}
    started = time.perf_counter()
    for option, several in futures.items():
        rows[option] = [future.result() for future in several]
        print(f"{name}: {option}, {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
    return (
        f"`{name}`, {options.seeds} seeds, {iterations} iterations of {DEFAULT.episodes} episodes:\n\n"
        + table(rows)
        + "\n"
    )


def main(options: Options) -> None:
    unknown = {*options.options} - {*CHANGES} | {*options.problems} - {*SETTINGS}
    if unknown:
        sys.exit(f"no {', '.join(sorted(unknown))}: choose among {', '.join([*SETTINGS, *CHANGES])}")
    tables: list[str] = []
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as executor:
        for name in options.problems:
            tables.append(report(name, options, executor))
            print(tables[-1], flush=True)
            if options.out is not None:
                options.out.write_text("\n".join(tables))


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
