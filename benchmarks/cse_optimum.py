"""Possible gains: scores of sharing nothing, of sharing all, of the cost test, and of the best choice.

The figures are geometric means over the functions with few enough candidates to score all choices.

    python benchmarks/cse_optimum.py --candidates 10
"""

import statistics
import time
from dataclasses import dataclass
from itertools import combinations

import tyro

from irgym.core.bench import Bench
from irgym.core.schedule import replay
from irgym.envs.cse.environment import CSE
from irgym.envs.cse.state import CseState
from irgym.envs.cse.task import PIPELINES, CseTask
from irgym.judging.statistics import geometric_interval
from irgym.measure.machine import fingerprint

BAR, MEMOISED = 150.0, 20_000.0
"""Required rates: choices scored per second on one core, and cached choices looked up per second."""


AGAIN = 5
"""Number of repeated look-ups."""


@dataclass(frozen=True)
class Options:
    """Options of the benchmark."""

    dataset: str = "kernels"
    """Data set, of which both splits are used."""
    target: str = "x86-64"
    """Target of the code."""
    candidates: int = 10
    """Greatest number of candidates of a function."""


def scores_of(task: CseTask, bench: Bench) -> dict[frozenset[int], float]:
    """Return the score of every choice."""
    places = range(len(task.names))
    choices = [
        frozenset(chosen) for count in range(len(places) + 1) for chosen in combinations(places, count)
    ]
    measured = bench.measure([task.job(CseState(choice)) for choice in choices])
    return {choice: found.cost for choice, found in zip(choices, measured, strict=True)}


def memoised(task: CseTask, bench: Bench) -> float:
    """Return the number of cached choices looked up per second, requests included."""
    states = [
        CseState(frozenset(chosen)) for chosen in combinations(range(len(task.names)), len(task.names) // 2)
    ]
    bench.evaluator.evaluate([task.job(state) for state in states])
    started = time.perf_counter()
    for _ in range(AGAIN):
        bench.evaluator.evaluate([task.job(state) for state in states])
    return AGAIN * len(states) / (time.perf_counter() - started)


def main(options: Options) -> None:
    """Print each function's scores relative to sharing nothing, and geometric means."""
    print(fingerprint().text())
    dataset = CSE.dataset(options.dataset)
    ratios: dict[str, list[float]] = {name: [] for name in (*PIPELINES, "best", "best over all")}
    rates: list[float] = []
    lookups: list[float] = []
    scored = 0
    with CSE.bench() as bench:
        for uri in (*dataset.train, *dataset.test):
            task = CSE.task(uri, target=options.target)
            if not 0 < len(task.names) <= options.candidates:
                continue
            started = time.perf_counter()
            scores = scores_of(task, bench)
            if len(scores) >= 2 * BAR:
                rates.append(len(scores) / (time.perf_counter() - started))
                lookups.append(memoised(task, bench))
            scored += len(scores)
            none, best = scores[frozenset()], min(scores.values())
            chosen = {name: scores[replay(task, task.pipeline(name)).shared] for name in PIPELINES}
            for name, score in (*chosen.items(), ("best", best)):
                ratios[name].append(score / none)
            ratios["best over all"].append(best / chosen["all"])
            print(
                f"{uri:45s} {len(task.names):2d} candidates, "
                + ", ".join(f"{name} {score / none:.3f}" for name, score in (*chosen.items(), ("best", best)))
            )
    for name, found in ratios.items():
        mean = geometric_interval(found)
        print(f"{name}: {mean.mean:.4f} [{mean.low:.4f}, {mean.high:.4f}] of {mean.n}")
    if rates:
        rate = statistics.median(rates)
        verdict = "met" if rate >= BAR else "NOT met"
        print(f"{scored} choices, {rate:.0f} a second on one core; bar {BAR:.0f}: {verdict}")
        found = statistics.median(lookups)
        verdict = "met" if found >= MEMOISED else "NOT met"
        print(f"memoised: {found:.0f} a second; bar {MEMOISED:.0f}: {verdict}")


if __name__ == "__main__":
    main(tyro.cli(Options))
