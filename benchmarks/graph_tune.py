"""Results of `irgym tune` on models, timed in turn with ONNX Runtime's optimiser at its best level.

Each model is tuned `--repeats` times, with the default search, different seeds and an empty cost cache; the
ratio of a run is the median of interleaved rounds after the search. The benchmark has a separate cache
folder, which keeps exported models.

    python benchmarks/graph_tune.py --seconds 60 --threads 1 2 --repeats 3
"""

import os
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import tyro

import irgym
from irgym.core.dataset import spread
from irgym.envs.graph.environment import GRAPH
from irgym.envs.graph.programs.families import KINDS
from irgym.judging.result import Tuned
from irgym.measure.cache import CostCache, default_path
from irgym.measure.machine import cache_dir, fingerprint

BARS = {"convolutional": 1.01, "recurrent": 1.3, "transformer": 1.05, "all": 1.08}
"""Targets: geometric means of ONNX Runtime's time over ours."""

NOISE = 0.95
"""Least ratio that counts as not slower."""


@dataclass(frozen=True)
class Options:
    """Models and budgets."""

    programs: tuple[str, ...] = ()
    """URIs; by default the data set's test split."""
    dataset: str = "models"
    """The data set."""
    limit: int | None = None
    """Largest number of models, spread over the split."""
    seconds: float = 60.0
    """Seconds of each search."""
    threads: tuple[int, ...] = (1, 2)
    """Threads of an operator."""
    repeats: int = 3
    """Runs of each model; the median counts."""
    search: str | None = None
    """The search; by default that of `tune`."""


def kind_of(uri: str) -> str:
    """Return the kind of network of a model."""
    return KINDS[GRAPH.family(uri)]


def gains_text(result: Tuned) -> str:
    """Return the rewrites with the largest gains beyond the noise, as text."""
    clear = [
        step for step in result.steps if step.ratio is not None and step.low is not None and step.low > 1
    ]
    best = sorted(clear, key=lambda step: step.ratio or 1.0, reverse=True)[:4]
    return ", ".join(f"{step.label} {100 * ((step.ratio or 1.0) - 1):.0f} %" for step in best)


def tuned(uri: str, threads: int, options: Options) -> float:
    """Tune a model several times, print each result, and return the median ratio."""
    ratios: list[float] = []
    for seed in range(options.repeats):
        CostCache.clear(default_path())
        result = irgym.tune(
            uri,
            seconds=options.seconds,
            seed=seed,
            searching=irgym.Searching(search=options.search),
            measuring=irgym.Measuring(backend=f"ort:{threads}"),
        )
        ratios.append(result.baseline_ratio or 0.0)
        gains = gains_text(result)
        candidates = result.search.evaluations if result.search else 0
        print(
            f"    {ratios[-1]:.3f}, {candidates} candidates; {result.running}; "
            f"{result.no_gain or gains or 'no rewrite gains alone'}",
            flush=True,
        )
    return statistics.median(ratios)


def summary(ratios: Sequence[tuple[str, float]], threads: int) -> None:
    """Print geometric means, by kind of network and of all, with the targets."""
    for kind, bar in BARS.items():
        found = [ratio for uri, ratio in ratios if kind in ("all", kind_of(uri))]
        if found:
            mean = statistics.geometric_mean(found)
            verdict = "met" if mean >= bar else "NOT met"
            print(f"{threads} thread(s), {kind}: {mean:.3f}x of {len(found)}; bar {bar}: {verdict}")
    slower = [uri for uri, ratio in ratios if ratio < NOISE]
    print(f"{threads} thread(s), slower than ALL beyond 5 %: {', '.join(slower) or 'none'}")


def main(options: Options) -> None:
    """Print the ratio of each model, and geometric means."""
    os.environ["IRGYM_CACHE_DIR"] = str(cache_dir() / "graph_tune")  # never the user's own costs
    print(fingerprint().text())
    programs = options.programs or tuple(spread(GRAPH.dataset(options.dataset).test, options.limit))
    for threads in options.threads:
        ratios: list[tuple[str, float]] = []
        for uri in programs:
            print(f"{uri}, {threads} thread(s), ort-all over irgym:", flush=True)
            ratios.append((uri, tuned(uri, threads, options)))
            print(f"  {ratios[-1][1]:.3f}", flush=True)
        summary(ratios, threads)


if __name__ == "__main__":
    main(tyro.cli(Options))
