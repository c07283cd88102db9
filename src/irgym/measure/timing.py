"""The timing protocol: few, short, repeated samples, of which the least is the cost.

Disturbances only ever add time, so the minimum of several samples estimates the undisturbed time; a sample
during which the thread was off the CPU for long is taken again.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from irgym.measure.machine import restart_clock, timing_slot

LONG_S = 10.0
"""A comparison in turn that has taken so long ends early, but not before `FEWEST_ROUNDS` rounds."""

FEWEST_ROUNDS = 5
"""See `LONG_S`: whole networks as written run for seconds."""

QUIET_S = 1.0
"""A worker that times says so often at most that it goes on: who reads that disturbs the timing."""

Run = Callable[[int], None]
"""Executes a candidate as many times as its argument says."""


@dataclass(frozen=True)
class Timing:
    """Parameters of the protocol; all of them are part of the cache key through `version`.

    Attributes:
        budget_ns: Time to spend on the samples of one candidate.
        sample_ns: Shortest sample; faster candidates are executed several times in a sample.
        fewest: Least number of samples, even where they go over the budget.
        most: Greatest number of samples.
        slow_ns: A candidate that takes longer than this in one execution gets two samples only, and a
            single one above ten times this.
        disturbance: Share of a sample's wall time that the thread may be off the CPU.
        retakes: How many disturbed samples are taken again, at most, as a multiple of the samples.
        clock: What shows a disturbance: the CPU time of this thread, or of the whole process for candidates
            that run on a thread of their own.
    """

    budget_ns: int = 1_000_000
    sample_ns: int = 100_000
    fewest: int = 5
    most: int = 10
    slow_ns: int = 2_000_000
    disturbance: float = 0.05
    retakes: int = 2
    clock: Literal["thread", "process"] = "thread"

    @property
    def version(self) -> str:
        """Text that names the protocol and its parameters."""
        return (
            f"least/2 budget={self.budget_ns} sample={self.sample_ns} samples={self.fewest}-{self.most}"
            f" slow={self.slow_ns} disturbance={self.disturbance:g} retakes={self.retakes} clock={self.clock}"
        )


DEFAULT_TIMING = Timing()


@dataclass(frozen=True)
class _Sample:
    """One timed stretch, in nanoseconds per execution, and whether the thread stayed on the CPU."""

    ns: float
    calm: bool


def sample(run: Run, timing: Timing = DEFAULT_TIMING) -> tuple[float, ...]:
    """Time a candidate, with the timing core held exclusively.

    Args:
        run: Executes the candidate the given number of times.
        timing: The protocol.

    Returns:
        Samples in nanoseconds per execution, in the order taken; their minimum is the cost.
    """
    with timing_slot():
        first = _timed(run, 1, timing)
        if first.calm and first.ns >= 10 * timing.slow_ns:
            return (first.ns,)
        # The first execution also pays for cold caches and page faults, so a second one is the estimate.
        second = _timed(run, 1, timing)
        estimate = min(first.ns, second.ns)
        if estimate >= timing.slow_ns:
            return _collect(run, 1, 2, timing, (first, second))
        repeats = _repeats(run, estimate, timing)
        affordable = int(timing.budget_ns / (repeats * estimate))
        count = min(max(affordable, timing.fewest), timing.most)
        return _collect(run, repeats, count, timing)


def interleave(
    ours: Run,
    baseline: Run,
    rounds: int = 15,
    timing: Timing = DEFAULT_TIMING,
    before: Callable[[], object] = lambda: None,
) -> list[tuple[float, float]]:
    """Time two candidates in turn, so that what disturbs the machine disturbs both.

    A round is `ours`, `baseline`, `baseline`, `ours`, so that each has as many samples behind the other's,
    which has filled the caches, and in each place. With one sample of each, rounds in either order have
    ratios of their own, of which the more frequent one wins: a model of 0.6 ms timed against itself was 0.93
    as fast, in the median of eight comparisons. Judge by the median of the rounds' ratios.

    In an isolated worker the call's time limit counts anew from time to time: on a busy machine, rounds that
    are taken again add up to more than it.

    Args:
        ours: Executes the one candidate the given number of times.
        baseline: Executes the other.
        rounds: Number of rounds; fewer where they would take long, see `LONG_S`.
        timing: The protocol; a round in which either was disturbed is taken again.
        before: Called before each stretch that is timed, such as to evict from the caches what it reads.

    Returns:
        For each round, nanoseconds per execution of `ours` and of `baseline`: means of both samples.
    """
    with timing_slot():
        begin = told = time.perf_counter()
        runs = (ours, baseline)
        repeats = [_repeats(run, _warm(run, timing), timing) for run in runs]
        kept: list[tuple[float, float]] = []
        spare: list[tuple[float, float]] = []
        for number in range(rounds * (1 + timing.retakes)):
            taken: tuple[list[_Sample], list[_Sample]] = ([], [])
            for which in (0, 1, 1, 0):
                before()
                taken[which].append(_timed(runs[which], repeats[which], timing))
            calm = all(stretch.calm for each in taken for stretch in each)
            first, second = (fmean(stretch.ns for stretch in each) for each in taken)
            (kept if calm else spare).append((first, second))
            now = time.perf_counter()
            if now - told > QUIET_S:
                restart_clock()
                told = now
            long = now - begin > LONG_S and number + 1 >= FEWEST_ROUNDS
            if len(kept) == rounds or long:
                break
    return (kept + spare)[:rounds]


def _collect(
    run: Run, repeats: int, count: int, timing: Timing, taken: tuple[_Sample, ...] = ()
) -> tuple[float, ...]:
    """Take samples until `count` are calm; on a machine that never calms down, keep all."""
    samples = list(taken)
    calm = sum(stretch.calm for stretch in samples)
    while calm < count and len(samples) < count * (1 + timing.retakes):
        samples.append(_timed(run, repeats, timing))
        calm += samples[-1].calm
    return tuple(stretch.ns for stretch in samples if stretch.calm or calm == 0)


def _repeats(run: Run, estimate_ns: float, timing: Timing) -> int:
    """Return how many executions make a sample of about the shortest length.

    A single execution pays for the call and for what it finds in no cache. Where there are to be many, what
    many take decides: kernels of 0.2 us looked like 1.5 us, and so had samples of a seventh of the length.
    """
    most = (
        timing.sample_ns
    )  # a call that does nothing ends the search too: no execution counts as less than 1 ns
    count = max(1, round(timing.sample_ns / max(estimate_ns, 1.0)))
    while 1 < count < most:
        taken = _timed(run, count, timing).ns * count
        if 2 * taken >= timing.sample_ns:
            break
        count = min(round(count * timing.sample_ns / taken), 16 * count, most)
    return count


def _warm(run: Run, timing: Timing) -> float:
    return min(_timed(run, 1, timing).ns, _timed(run, 1, timing).ns)


def _timed(run: Run, repeats: int, timing: Timing) -> _Sample:
    # The CPU clock is read outside the wall clock: undisturbed, it never shows less than the wall clock.
    clock = time.thread_time_ns if timing.clock == "thread" else time.process_time_ns
    cpu_begin = clock()
    begin = time.perf_counter_ns()
    run(repeats)
    wall = time.perf_counter_ns() - begin
    cpu = clock() - cpu_begin
    return _Sample(max(wall, 1) / repeats, wall - cpu <= timing.disturbance * wall)
