"""Throughput of evaluations: random schedules are compiled, checked and timed, without the cache.

python benchmarks/linalg_throughput.py
python benchmarks/linalg_throughput.py --farm local:2

With a farm, its workers are compared with one worker side by side.
"""

import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass

import numpy as np
import tyro

from irgym.core.bench import Bench
from irgym.core.cost import Job, Measurement
from irgym.envs.linalg.environment import LINALG
from irgym.envs.linalg.task import LinalgTask
from irgym.measure.machine import load

SMALL = (
    "linalg://matmul/64x64x64",
    "linalg://conv2d/1x8x18x18x16x3x3",
    "linalg://maxpool/1x16x32x32x2?stride=2",
    "linalg://add/64x256",
    "linalg://relu/64x256",
)
"""Operators small enough that compiling is nearly all of the work, in addition to the data set `tiny`."""


@dataclass(frozen=True)
class Options:
    """Options of the command line."""

    programs: tuple[str, ...] = (*SMALL, *LINALG.dataset("tiny").train)
    """The programs."""
    candidates: int = 6
    """Distinct random schedules of each program in a round."""
    rounds: int = 5
    """Rounds, each with other schedules; the median counts."""
    farm: str | None = None
    """Farm to compare with one worker, such as local:2."""


@dataclass(frozen=True)
class Round:
    """A batch of evaluated candidates.

    Attributes:
        seconds: Wall-clock time.
        measurements: The measurements, failures included.
    """

    seconds: float
    measurements: list[Measurement]

    @property
    def rate(self) -> float:
        """Candidates a second."""
        return len(self.measurements) / self.seconds

    @property
    def compiling(self) -> float:
        """Time that compilers took, over the wall-clock time."""
        return sum(measurement.compile_s for measurement in self.measurements) / self.seconds

    @property
    def failed(self) -> int:
        """Candidates without a cost."""
        return sum(not measurement.ok for measurement in self.measurements)


def random_job(task: LinalgTask, rng: np.random.Generator) -> Job:
    """Return the job of a random episode's terminal state."""
    state = task.initial()
    while not task.terminal(state):
        state = task.step(state, task.space.sample(task.mask(state), rng))
    return task.job(state)


def random_jobs(task: LinalgTask, count: int, rng: np.random.Generator) -> list[Job]:
    """Return distinct candidates of a program."""
    jobs: dict[str, Job] = {}
    while len(jobs) < count:
        job = random_job(task, rng)
        jobs.setdefault(job.schedule, job)
    return list(jobs.values())


def evaluate(bench: Bench, jobs: Sequence[Job]) -> Round:
    """Compile, check and time candidates without the cache."""
    started = time.perf_counter()
    measurements = bench.measure(jobs)
    return Round(time.perf_counter() - started, measurements)


def report(name: str, rounds: Sequence[Round]) -> None:
    """Print the rate of some workers."""
    failed = sum(trial.failed for trial in rounds)
    print(
        f"{name}: {spread([trial.rate for trial in rounds], '.1f')} candidates/s; {failed} of "
        f"{sum(len(trial.measurements) for trial in rounds)} failed"
    )


def spread(values: Sequence[float], form: str) -> str:
    """Return a median and a range as text."""
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def measured(benches: Sequence[Bench], tasks: Sequence[LinalgTask], options: Options) -> list[list[Round]]:
    """Return the rounds of each bench; in a round all benches evaluate the same candidates, in turn."""
    for bench in benches:  # starts the processes
        bench.measure([task.job(task.initial()) for task in tasks])
    rounds: list[list[Round]] = [[] for _ in benches]
    for number in range(options.rounds):
        rng = np.random.default_rng(number)
        jobs = [job for task in tasks for job in random_jobs(task, options.candidates, rng)]
        for place in sorted(range(len(benches)), reverse=bool(number % 2)):
            rounds[place].append(evaluate(benches[place], jobs))
    return rounds


def main(options: Options) -> None:
    """Print the rates."""
    print(f"this machine is {load(1.0).text()}")
    tasks = [LINALG.task(uri) for uri in options.programs]
    rounds = f"{options.rounds} rounds of {options.candidates} random schedules of each"
    print(f"{len(tasks)} programs, {rounds}")
    with closing(LINALG.bench()) as local, ExitStack() as stack:
        benches = [local]
        if options.farm is not None:
            benches.append(stack.enter_context(closing(LINALG.bench(options.farm))))
        alone, *others = measured(benches, tasks, options)
        report(f"1 process on 1 core ({local.machine})", alone)
        print(f"  compiling takes {spread([trial.compiling for trial in alone], '.0%')} of the time")
        for farm, several in zip(benches[1:], others, strict=True):
            report(f"{options.farm} ({farm.machine})", several)
            ratios = [ours.rate / theirs.rate for ours, theirs in zip(several, alone, strict=True)]
            print(f"  {spread(ratios, '.2f')}x that of 1 process")


if __name__ == "__main__":
    main(tyro.cli(Options))
