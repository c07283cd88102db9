"""The JIT CSE gym's own training again: PPO of Stable-Baselines3 (dotnet/runtime pull request 101856).

MlpPolicy with its defaults and `ent_coef=0.01`, on `irgym/JitCse-v0`, its TensorBoard keys by
`results_callback`; then an episode of the likeliest valid actions on each held-out method. Three set-ups:
LLVM with plain observations; LLVM with the original's wrappers, normalised features and a bonus for the best
action; and SuperPMI's protocol, which a stand-in speaks, since no package has a real .NET JIT. The geometric
mean is of the heuristic's score over the model's. Trainings that ended are kept in a folder of runs, so that
a benchmark that was stopped goes on.

    python benchmarks/jit_cse.py --steps 50000 --seeds 3
"""

import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import exp, log
from pathlib import Path
from statistics import mean
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import tyro
from kept_results import kept

from irgym.core.dataset import spread
from irgym.envs.cse.environment import CSE
from irgym.envs.cse.jitcse.env import JitCseEnv
from irgym.envs.cse.jitcse.evaluating import evaluate
from irgym.envs.cse.jitcse.on_superpmi import JitCompiler
from irgym.envs.cse.jitcse.results import KEYS, results_callback
from irgym.envs.cse.jitcse.wrappers import NormalizeFeaturesWrapper, OptimalCseWrapper
from irgym.envs.cse.superpmi.session import Collection
from irgym.policies.foreign import network_of

STAND_IN = Path(__file__).parents[1] / "tests" / "toys" / "superpmi.py"

SET_UPS = ("LLVM", "LLVM, wrappers", "stand-in of SuperPMI")


@dataclass(frozen=True)
class Options:
    """Options of the benchmark."""

    steps: int = 50_000
    """Environment steps of each training."""
    seeds: int = 3
    """Seeds of each set-up."""
    train: int = 300
    """Methods to train on, spread over the training split of `packages`."""
    processes: int = 2
    """Trainings at the same time, one core each."""
    out: Path = Path("docs/measured/jit_cse.md")
    """File of the table."""
    runs: Path = Path("runs/jit_cse")
    """Folder of the models, of TensorBoard's files and of the results."""


@dataclass(frozen=True)
class Result:
    """A training and its evaluation on held-out methods.

    Attributes:
        set_up: Compiler and wrappers.
        seed: Of all random choices.
        methods: Number of held-out methods that fit.
        ratio: Geometric mean of the heuristic's score over the model's.
        improved: Number of methods on which the model is better.
        regressed: Number of methods on which it is worse.
        failed: Number of methods on which the compiler failed.
        least: Least of the heuristic's score over the model's.
        training: The last values of the original's TensorBoard keys.
        seconds: Training time.
    """

    set_up: str
    seed: int
    methods: int
    ratio: float
    improved: int
    regressed: int
    failed: int
    least: float
    training: dict[str, float]
    seconds: float


def collection(folder: Path) -> Collection:
    """Return a collection of a thousand methods of the stand-in."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("libclrjit.so", "some.mch"):
        (folder / name).touch()
    program = folder / "superpmi"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {STAND_IN} "$@"\n')
    program.chmod(0o755)
    return Collection(folder, folder / "some.mch", 20.0)


def made(set_up: str, options: Options, folder: Path) -> tuple[Callable[[], Any], list[str]]:
    """Return a function that makes the environment, and the held-out methods."""
    if set_up.startswith("LLVM"):
        splits = CSE.dataset("packages")
        chosen = spread(splits.train, options.train)

        def of_llvm() -> Any:
            env: Any = JitCseEnv(chosen)
            return NormalizeFeaturesWrapper(OptimalCseWrapper(env)) if "wrappers" in set_up else env

        return of_llvm, list(splits.test)
    methods = [str(number) for number in range(1, 1000)]
    held_out = methods[::10]
    kept = [method for method in methods if method not in held_out]
    return lambda: JitCseEnv(kept, compiler=lambda: JitCompiler(collection(folder))), held_out


def train(set_up: str, seed: int, options: Options, folder: Path) -> Result:
    """Train in this process, which keeps to one core, and evaluate."""
    import torch
    from stable_baselines3 import PPO

    torch.set_num_threads(1)
    for stale in folder.rglob("events.out.tfevents.*"):
        stale.unlink()  # of a training that was stopped
    make, held_out = made(set_up, options, folder)
    env = make()
    model = PPO("MlpPolicy", env, ent_coef=0.01, seed=seed, device="cpu", tensorboard_log=str(folder))
    started = time.perf_counter()
    model.learn(options.steps, callback=results_callback())
    seconds = time.perf_counter() - started
    model.save(folder / "model.zip")
    network, actions = network_of(model), int(env.action_space.n)
    evaluation = evaluate(env, lambda: network.chooser(actions), held_out)
    env.close()
    assert evaluation.mean is not None
    return Result(
        set_up,
        seed,
        len(evaluation.ratios),
        evaluation.mean,
        evaluation.count(better=True),
        evaluation.count(better=False),
        len(evaluation.failures),
        min(evaluation.ratios),
        last_values(folder),
        seconds,
    )


def last_values(folder: Path) -> dict[str, float]:
    """Return the means of the last five values of the original's keys in TensorBoard's files."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    [file] = folder.rglob("events.out.tfevents.*")
    events = EventAccumulator(str(file)).Reload()
    return {key: mean(value.value for value in events.Scalars(f"results/{key}")[-5:]) for key in KEYS}


def result_of(set_up: str, seed: int, options: Options) -> Result:
    """Return the result of a training that ended before, or else train."""
    words = "".join(letter for letter in set_up.lower() if letter.isalnum())
    folder = options.runs / f"{words}-{options.steps}-{seed}"
    return Result(**kept(folder / "result.json", train, set_up, seed, options, folder))


def table(results: list[Result], options: Options) -> str:
    """Return the results as markdown: a row for each set-up, over all seeds."""
    lines = [
        "| set-up | held-out methods | heuristic / model | least and greatest seed | least method | "
        "improved, regressed, failed | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for set_up in dict.fromkeys(result.set_up for result in results):
        rows = [result for result in results if result.set_up == set_up]
        ratios = [row.ratio for row in rows]
        counts = ", ".join(
            f"{mean(getattr(row, name) for row in rows):.0f}" for name in ("improved", "regressed", "failed")
        )
        lines.append(
            f"| {set_up} | {rows[0].methods} | {exp(mean(map(log, ratios))):.4f} | {min(ratios):.4f} to "
            f"{max(ratios):.4f} | {min(row.least for row in rows):.3f} | {counts} | "
            f"{mean(row.seconds for row in rows):.0f} |"
        )
    lines += ["", "At the end of training, the original's TensorBoard keys (`results/...`):", ""]
    lines += ["| set-up | " + " | ".join(f"`{key}`" for key in KEYS) + " |", "|---" * (len(KEYS) + 1) + "|"]
    for set_up in dict.fromkeys(result.set_up for result in results):
        rows = [result for result in results if result.set_up == set_up]
        values = " | ".join(f"{mean(row.training[key] for row in rows):.4f}" for key in KEYS)
        lines.append(f"| {set_up} | {values} |")
    seeds = len({result.seed for result in results})
    lines += [
        "",
        f"{options.steps} steps each, {seeds} seeds, {options.train} training methods of `packages`; written "
        f"by `python benchmarks/jit_cse.py --steps {options.steps} --seeds {options.seeds}` on "
        f"{time.strftime('%Y-%m-%d')}.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    options = tyro.cli(Options, description=__doc__)
    jobs = [(set_up, seed) for seed in range(options.seeds) for set_up in SET_UPS]
    results: list[Result] = []
    with ThreadPoolExecutor(options.processes) as threads:
        for result in threads.map(lambda job: result_of(*job, options), jobs):
            results.append(result)
            print(
                f"{result.set_up}, seed {result.seed}: {result.ratio:.4f}, {result.seconds:.0f} s", flush=True
            )
            options.out.write_text(table(results, options))
    print(table(results, options))


if __name__ == "__main__":
    main()
