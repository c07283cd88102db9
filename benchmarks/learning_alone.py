"""Learning without a teacher: the recipe `scratch` of `irgym train`, beside PPO alone, several seeds.

Trains each recipe with each seed in a separate run folder, resuming an interrupted run. Then all policies act
greedily on the same programs of the test split, beside the shipped policy and a random search of these
programs with as many evaluations as the longest training. Writes a table and a picture: validations against
evaluations, a line for each seed. A validation is the mean return of greedy episodes on training programs.

Each training has a separate cost cache, so that it cannot use the measurements of another. Evaluations are
measurements; answers from the cache do not count.

    python benchmarks/learning_alone.py --targets x86-64-v3
    python benchmarks/learning_alone.py --environment linalg --recipes scratch --targets x86-64-v4
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tyro

from irgym.api.programs import environment_named
from irgym.cli.settings import settings_of
from irgym.core.datasets import dataset_named
from irgym.core.environment import recipe_of
from irgym.judging.statistics import geometric_interval
from irgym.policies.run_folder import RunFolder

PLAIN = {"episodes": 256, "minibatch": 256, "started": 0, "sketched": 0}
"""PPO without scripts."""

RECIPES: dict[str, dict[str, Any]] = {
    "scratch": {},
    "archive": {"sketched": 0},
    "PPO": {**PLAIN, "imitation": 0},
    "risk": {**PLAIN, "imitation": 0, "group": 16, "risk": 0.25},
    "imitation": PLAIN,
}
"""Differences from the environment's recipe `scratch`."""

SHIPPED = "raw:default"
"""The shipped policy."""


@dataclass(frozen=True)
class Options:
    """Trainings, and the folders for their results."""

    environment: str = "loops"
    """Environment to learn in."""
    recipes: tuple[str, ...] = ("scratch", "PPO")
    """Recipes to train by: scratch, archive, PPO, risk, imitation."""
    seeds: int = 3
    """Seeds of each."""
    iterations: int | None = None
    """Iterations of `scratch`, by default those of the recipe; the others have as many episodes."""
    targets: tuple[str, ...] = ("x86-64-v4", "x86-64-v3")
    """Targets that are learnt together."""
    programs: int | None = None
    """Training programs to learn from; by default as many as `scratch` has."""
    screen: float | None = None
    """Share of the new programs of an iteration that is measured; by default that of `scratch`."""
    set: tuple[str, ...] = ()
    """Further hyper-parameters of all recipes, as name=value."""
    limit: int = 54
    """Programs of the test split, evenly spread."""
    runs: Path = Path("runs/alone")
    """Folder of the run folders."""
    out: Path = Path("docs/measured")
    """Folder of the results."""


def measured(row: dict[str, Any]) -> int:
    """Return the evaluations up to an iteration, without those that the cost cache answered."""
    return row["evaluations"] - row["cached"]


def irgym(*arguments: str, costs: Path | None = None) -> None:
    """Run an irgym command and show its progress; `costs` is the folder of caches, if not the default."""
    own = {} if costs is None else {"IRGYM_CACHE_DIR": str(costs.absolute())}
    subprocess.run([sys.executable, "-m", "irgym", *arguments], check=True, env=os.environ | own)


def train(options: Options, recipe: str, seed: int) -> Path:
    """Train by a recipe, or resume its run; return the run folder."""
    folder = options.runs / f"{options.environment}-{recipe}-{seed}"
    begun = ["--resume"] if RunFolder(folder).metrics.exists() else []
    scratch = recipe_of(environment_named(options.environment), "scratch").hyperparameters
    differing = RECIPES[recipe] | settings_of(options.set, "all recipes")
    values = scratch | differing
    episodes = (options.iterations or scratch["iterations"]) * (scratch["episodes"] + scratch["started"])
    differing["iterations"] = episodes // (int(values["episodes"]) + int(values["started"]))
    chosen = [f"--limit={options.programs}"] if options.programs else []
    if options.screen is not None:
        chosen.append(f"--screen={options.screen}")
    irgym(
        *("train", options.environment, "--run", str(folder), "--recipe", "scratch", *begun, *chosen),
        *("--target", ",".join(options.targets), "--farm", f"local:{os.cpu_count()}", "--seed", str(seed)),
        *("--set", *(f"{name}={value}" for name, value in differing.items())),
        costs=folder.with_name(f"{folder.name}.cache"),
    )
    return folder


def evaluations(folder: Path) -> int:
    """Return the evaluations of a training."""
    return measured(RunFolder(folder).read_metrics()[-1])


def validations(folder: Path) -> list[tuple[int, float]]:
    """Return, for each validation, the evaluations so far and the mean return of greedy episodes."""
    return [
        (measured(row), row["validation"])
        for row in RunFolder(folder).read_metrics()
        if row["validation"] is not None
    ]


def costs_of(options: Options, folders: Sequence[Path], target: str) -> dict[str, dict[str, float]]:
    """Return the costs of all policies, the shipped policy and random search, by method and program."""
    methods = ",".join([SHIPPED, *(f"raw:{folder}" for folder in folders), "random"])
    out = options.runs / f"{options.environment}-{target}.json"
    programs = len(dataset_named(environment_named(options.environment), None).test)
    each = max(map(evaluations, folders)) // min(options.limit, programs)
    irgym(
        *("compare", options.environment, "--target", target, "--methods", methods),
        *("--limit", str(options.limit), "--evaluations", str(each), "--json", str(out)),
    )
    costs: dict[str, dict[str, float]] = {}
    for row in json.loads(out.read_text())["rows"]:
        if row["cost"]:
            costs.setdefault(row["method"], {})[row["program"]] = row["cost"]
    return costs


def speed(costs: dict[str, dict[str, float]], method: str) -> str:
    """Return the speedup of a method over the shipped policy, with its interval."""
    theirs, ours = costs[SHIPPED], costs[method]
    found = geometric_interval([cost / ours[program] for program, cost in theirs.items() if program in ours])
    failed = f", {len(theirs) - found.n} failed" if found.n < len(theirs) else ""
    return f"{found.mean:.3f} [{found.low:.3f}, {found.high:.3f}]{failed}"


def progress(trained: dict[tuple[str, int], Path]) -> str:
    """Return the trainings so far as a table of markdown."""
    lines = [("recipe", "seed", "evaluations", "last validation"), ("---",) * 4]
    for (recipe, seed), folder in trained.items():
        last = validations(folder)[-1:]
        shown = f"{last[0][1]:.3f}" if last else "-"
        lines.append((recipe, str(seed), f"{evaluations(folder):,}", shown))
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{text}\n\nNot finished: the policies are compared after the last training.\n"


def table(options: Options, trained: dict[tuple[str, int], Path]) -> str:
    """Compare all policies, and return the table as markdown."""
    costs = [costs_of(options, list(trained.values()), target) for target in options.targets]
    columns = (f"speed over the policy that ships, {target}" for target in options.targets)
    rows = [
        (
            recipe,
            str(seed),
            f"{evaluations(folder):,}",
            *(speed(of_target, f"raw:{folder}") for of_target in costs),
        )
        for (recipe, seed), folder in trained.items()
    ]
    most = max(map(evaluations, trained.values()))
    rows.append(("random search", "", f"{most:,}", *(speed(of_target, "random") for of_target in costs)))
    lines = [("recipe", "seed", "evaluations", *columns), ("---",) * (3 + len(costs)), *rows]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{text}\n\nWritten by `python benchmarks/learning_alone.py`, {time.strftime('%Y-%m-%d')}.\n"


def plot(options: Options, trained: dict[tuple[str, int], Path], path: Path) -> None:
    """Draw the validations of each training against its evaluations."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5))
    axes = figure.add_subplot()
    recipes = list(dict.fromkeys(recipe for recipe, _ in trained))
    for (recipe, seed), folder in trained.items():
        counts, returns = np.array(validations(folder)).T
        color = f"C{recipes.index(recipe)}"
        axes.plot(counts / 1000, returns, label=None if seed else recipe, color=color, linewidth=1.4)
    axes.set_xlabel("measurements, thousands")
    axes.set_ylabel("mean return of greedy episodes")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)


def main(options: Options) -> None:
    """Train, compare, write."""
    pairs = [(recipe, seed) for recipe in options.recipes for seed in range(options.seeds)]
    options.out.mkdir(parents=True, exist_ok=True)
    name = "-".join([f"{options.environment}_alone", *options.targets])
    trained: dict[tuple[str, int], Path] = {}
    for recipe, seed in pairs:
        trained[recipe, seed] = train(options, recipe, seed)
        plot(options, trained, options.out / f"{name}.svg")
        (options.out / f"{name}.md").write_text(progress(trained))
    written = table(options, trained)
    (options.out / f"{name}.md").write_text(written)
    print(written)


if __name__ == "__main__":
    main(tyro.cli(Options))
