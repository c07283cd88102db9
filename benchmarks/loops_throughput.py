"""Candidates a second: compiled only, and compiled, checked, timed and recorded.

python benchmarks/loops_throughput.py
"""

import random
import statistics
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import tyro

from irgym.core.cost import Job
from irgym.envs.loops.compiling.backends import preferred
from irgym.envs.loops.environment import LOOPS
from irgym.envs.loops.task import LoopsTask
from irgym.measure.bench import MeasuringBench
from irgym.measure.cache import CostCache


@dataclass(frozen=True)
class Options:
    """Options of the benchmark."""

    uri: str = "loops://mm/128x128x128"
    """URI of the program."""
    candidates: int = 1000
    """Distinct candidates to evaluate in each round."""
    rounds: int = 3
    """Rounds, each with other candidates and an empty cache."""


def random_jobs(task: LoopsTask, count: int, seed: int) -> list[Job]:
    """Return the jobs of distinct nests on random episodes, as in a random search."""
    rng, jobs = random.Random(seed), dict[str, Job]()
    while len(jobs) < count:
        state = task.initial()
        for _ in range(12):
            legal = task.space.legal(task.mask(state))[:-1]  # without stop
            state = task.step(state, rng.choice(legal))
            job = task.job(state)
            jobs.setdefault(job.schedule, job)
    return list(jobs.values())[:count]


def main(options: Options) -> None:
    """Print the compile times and the rates."""
    backend = preferred()
    task = LOOPS.task(options.uri, backend.name)
    times: list[float] = []
    for job in random_jobs(task, 500, seed=0):
        started = time.perf_counter()
        with closing(backend.compile(task.contraction, job.call.arguments[1])):
            times.append((time.perf_counter() - started) * 1e3)
    quantiles = statistics.quantiles(times, n=10)
    print(
        f"{options.uri}, {backend.name}: compile median {statistics.median(times):.2f} ms, "
        f"90th percentile {quantiles[8]:.2f} ms, greatest {max(times):.1f} ms ({len(times)} random nests)"
    )
    rates: list[float] = []
    for number in range(options.rounds):
        jobs = random_jobs(task, options.candidates, seed=1 + number)
        with (
            tempfile.TemporaryDirectory() as folder,
            MeasuringBench(CostCache(Path(folder) / "costs.sqlite")) as bench,
        ):
            bench.evaluator.evaluate(jobs[:1])
            started = time.perf_counter()
            found = bench.evaluator.evaluate(jobs[1:])
            rates.append(len(found) / (time.perf_counter() - started))
            machine = bench.machine
        failed = sum(not measurement.ok for measurement in found)
        print(
            f"round {number + 1}: {rates[-1]:.0f} candidates/s compiled, checked, timed and recorded; "
            f"{failed} failed"
        )
    print(f"median {statistics.median(rates):.0f} candidates/s; {machine}")


if __name__ == "__main__":
    main(tyro.cli(Options))
