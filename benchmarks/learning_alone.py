"""Learning without a teacher: PPO with an archive, beside PPO alone, several seeds, on both instruction sets.

Trains each recipe with each seed in a run folder of its own, where it goes on if it was interrupted; then
lets all policies act greedily on the same programs of the test split, beside the one that ships, which began
as a clone of what searches found. Writes NAME.md and NAME.svg: validations against evaluations, a line for
each seed. The validation is the mean return on training programs, of greedy episodes.

With several starts, each seed trains so many policies at first, and goes on with the one that validates best.
Their evaluations all count. Each training keeps a cost cache of its own, so that none knows what another has
measured; an evaluation is a measurement, and what the cache answers is none.

    python benchmarks/learning_alone.py --recipes archive --iterations 150 --targets x86-64-v3 --programs 400
    python benchmarks/learning_alone.py --environment linalg --recipes archive --iterations 90 \
        --targets x86-64-v3 --programs 400 --screen 0.06
"""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tyro

from irgym.core.run_folder import RunFolder
from irgym.evaluation.statistics import geometric_interval

COMMON = (
    "episodes=256",
    "minibatch=256",
    "lr=1e-3",
    "lr_end=1e-4",
    "entropy=0.02",
    "entropy_end=0.001",
    "epsilon=0.05",
    "epsilon_end=0.01",
    "gae_lambda=0.98",
)
RECIPES: dict[str, tuple[str, ...]] = {
    "archive": ("episodes=96", "imitation=1.0", "minibatch=64"),
    "PPO": (),
    "risk": ("group=16", "risk=0.25"),
    "imitation": ("episodes=256", "imitation=1.0"),
}
"""What differs from `COMMON`."""

OWN: dict[str, tuple[str, ...]] = {
    "loops": (),
    "linalg": ("encoder=mlp", "actions=autoregressive", "normalise_observations=true"),
}
"""What an environment's networks and gradient steps are."""

STARTED: dict[str, str] = {"loops": "started=640", "linalg": "started=1280"}
"""Episodes of the recipe `archive` that follow scripts: more where a screen measures few of them."""


@dataclass(frozen=True)
class Options:
    """What to train, and where to write."""

    environment: str = "loops"
    """Environment to learn in."""
    recipes: tuple[str, ...] = ("archive", "PPO")
    """Recipes to train by: archive, PPO, risk, imitation."""
    seeds: int = 3
    """Seeds of each."""
    iterations: int = 450
    """Iterations of each."""
    starts: int = 1
    """Policies that each seed begins with."""
    tried: int = 150
    """Iterations after which the best of them goes on alone."""
    targets: tuple[str, ...] = ("x86-64-v4", "x86-64-v3")
    """Targets that are learnt together."""
    programs: int | None = None
    """Training programs to learn from; by default all."""
    screen: float | None = None
    """Share of the new programs of an iteration that is measured; by default all are."""
    limit: int = 54
    """Programs of the test split, evenly spread."""
    runs: Path = Path("runs/alone")
    """Folder of the run folders."""
    out: Path = Path("docs/measured")
    """Folder of the results."""


@dataclass(frozen=True)
class Trained:
    """A policy that was trained.

    Attributes:
        folder: Its run folder.
        others: Those of the starts that did not go on.
    """

    folder: Path
    others: tuple[Path, ...] = ()

    @property
    def evaluations(self) -> int:
        """Evaluations of all starts."""
        return sum(measured(RunFolder(path).read_metrics()[-1]) for path in (self.folder, *self.others))


def measured(row: dict[str, Any]) -> int:
    """Return the evaluations up to an iteration, without those that the cost cache answered."""
    return row["evaluations"] - row["cached"]


def irgym(*arguments: str, costs: Path | None = None) -> None:
    """Run a command, with a folder of its own for caches if one is given; its progress is shown."""
    own = {} if costs is None else {"IRGYM_CACHE_DIR": str(costs.absolute())}
    subprocess.run([sys.executable, "-m", "irgym", *arguments], check=True, env=os.environ | own)


def train(options: Options, recipe: str, seed: int) -> Trained:
    """Train by a recipe, with several starts if wanted."""
    named = f"{options.environment}-{recipe}-{seed}"
    if options.starts == 1:
        folder = options.runs / named
        run(options, recipe, seed, options.iterations, folder)
        return Trained(folder)
    folders = [options.runs / f"{named}.{place}" for place in range(options.starts)]
    for place, folder in enumerate(folders):
        run(options, recipe, options.starts * seed + place, options.tried, folder)
    best = max(folders, key=lambda folder: validations(folder, options.tried)[-1][1])
    run(options, recipe, options.starts * seed + folders.index(best), options.iterations, best)
    return Trained(best, tuple(folder for folder in folders if folder != best))


def run(options: Options, recipe: str, seed: int, iterations: int, folder: Path) -> None:
    """Train up to a number of iterations, going on from where the run folder is."""
    begun = ["--resume"] if RunFolder(folder).metrics.exists() else []
    settings = [*COMMON, *RECIPES[recipe], *OWN[options.environment], f"iterations={options.iterations}"]
    if recipe == "archive":
        settings.append(STARTED[options.environment])
    chosen = [f"--limit={options.programs}"] if options.programs else []
    if options.screen is not None:
        chosen.append(f"--screen={options.screen}")
    values = dict(one.split("=") for one in (*settings, "validate_every=30"))
    irgym(
        *("train", options.environment, "--run", str(folder), "--agent", "ppo", *begun),
        *("--target", ",".join(options.targets), "--farm", f"local:{os.cpu_count()}", "--validate", "60"),
        *("--seed", str(seed), "--iterations", str(iterations), *chosen),
        *("--set", *(f"{name}={value}" for name, value in values.items())),
        costs=folder.with_name(f"{folder.name}.cache"),
    )


def validations(folder: Path, iterations: int) -> list[tuple[int, float]]:
    """Return evaluations and mean return of greedy episodes, each time that these were validated."""
    return [
        (measured(row), row["validation"])
        for row in RunFolder(folder).read_metrics()
        if row["validation"] is not None and row["iteration"] <= iterations
    ]


def rows_of(options: Options, folders: list[Path], target: str) -> list[dict[str, Any]]:
    """Return the rows of a comparison of all policies, raw, and the one that ships."""
    methods = ",".join(["raw:default", *(f"raw:{folder}" for folder in folders)])
    out = options.runs / f"{options.environment}-{target}.json"
    irgym(
        *("compare", options.environment, "--target", target, "--methods", methods),
        *("--limit", str(options.limit), "--json", str(out)),
    )
    return json.loads(out.read_text())["rows"]


def table(options: Options, trained: dict[tuple[str, int], Trained]) -> str:
    """Compare all policies, and return the table as markdown."""
    lines = [
        "| recipe | seed | evaluations | "
        + " | ".join(f"speed over the policy that ships, {target}" for target in options.targets)
        + " |",
        "|---|---|---|" + "---|" * len(options.targets),
    ]
    rows = {
        target: rows_of(options, [one.folder for one in trained.values()], target)
        for target in options.targets
    }
    for (recipe, seed), one in trained.items():
        cells: list[str] = []
        for target in options.targets:
            costs: dict[str, dict[str, float]] = {}
            for row in rows[target]:
                costs.setdefault(row["program"], {})[row["method"]] = row["cost"]
            both = [(each["raw:default"], each.get(f"raw:{one.folder}")) for each in costs.values()]
            found = geometric_interval([theirs / ours for theirs, ours in both if ours])
            failed = f", {len(both) - found.n} failed" if found.n < len(both) else ""
            cells.append(f"{found.mean:.3f} [{found.low:.3f}, {found.high:.3f}]{failed}")
        lines.append(f"| {recipe} | {seed} | {one.evaluations:,} | {' | '.join(cells)} |")
    lines += ["", f"Written by `python benchmarks/learning_alone.py`, {time.strftime('%Y-%m-%d')}."]
    return "\n".join(lines) + "\n"


def plot(options: Options, trained: dict[tuple[str, int], Trained], path: Path) -> None:
    """Draw the validations of each training against its evaluations."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5))
    axes = figure.add_subplot()
    recipes = list(dict.fromkeys(recipe for recipe, _ in trained))
    for (recipe, seed), one in trained.items():
        label = recipe if seed == 0 else None
        for folder in (one.folder, *one.others):
            counts, returns = np.array(validations(folder, options.iterations)).T
            style = "-" if folder == one.folder else ":"
            axes.plot(
                counts / 1000, returns, style, label=label, color=f"C{recipes.index(recipe)}", linewidth=1.4
            )
            label = None
    axes.set_xlabel("measurements, thousands")
    axes.set_ylabel("mean return of greedy episodes")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)


def main(options: Options) -> None:
    """Train, compare, write."""
    pairs = [(recipe, seed) for recipe in options.recipes for seed in range(options.seeds)]
    trained = {(recipe, seed): train(options, recipe, seed) for recipe, seed in pairs}
    options.out.mkdir(parents=True, exist_ok=True)
    name = f"{options.environment}_alone"
    plot(options, trained, options.out / f"{name}.svg")
    written = table(options, trained)
    (options.out / f"{name}.md").write_text(written)
    print(written)


if __name__ == "__main__":
    main(tyro.cli(Options))
