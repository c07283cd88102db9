"""What can be gained: scores of sharing nothing, all, what a test of costs lets pass, and the best choice.

Geometric means over the functions of a data set that have few enough candidates for all choices to be scored.

    python benchmarks/cse_optimum.py --candidates 10
"""

import statistics
import time
from dataclasses import dataclass
from itertools import combinations

import tyro

from irgym.core.environment import Bench
from irgym.core.schedule import replay
from irgym.envs.cse.environment import CSE
from irgym.envs.cse.state import CseState
from irgym.envs.cse.task import PIPELINES, CseTask
from irgym.judging.statistics import geometric_interval
from irgym.measure.machine import fingerprint

BAR, MEMOISED = 150.0, 20_000.0
"""What is asked for: choices scored in a second, on one core, and choices that were scored before."""


AGAIN = 5
"""How often choices are looked up again."""


@dataclass(frozen=True)
class Options:
    """What to score."""

    dataset: str = "kernels"
    """The data set; both of its splits."""
    target: str = "x86-64"
    """What code is made for."""
    candidates: int = 10
    """Functions with more are left out."""


def scores_of(task: CseTask, bench: Bench) -> dict[frozenset[int], float]:
    """Return the score of every choice."""
    places = range(len(task.names))
    choices = [
        frozenset(chosen) for count in range(len(places) + 1) for chosen in combinations(places, count)
    ]
    measured = bench.measure([task.job(CseState(choice)) for choice in choices])
    return {choice: found.cost for choice, found in zip(choices, measured, strict=True)}


def memoised(task: CseTask, bench: Bench) -> float:
    """Return how many choices a second are looked up that were scored before, with all that asks for them."""
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
