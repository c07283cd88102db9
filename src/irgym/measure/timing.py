"""The timing protocol: a few short samples, whose minimum is the cost.

Disturbances only add time, so that the minimum of several samples estimates the undisturbed time. A sample
during which the thread was off the CPU for long is taken again.
"""

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal

from irgym.measure.eviction import empty_caches
from irgym.measure.machine import restart_clock, timing_slot

LONG_S = 10.0
"""Seconds after which an interleaved comparison ends early, but not before `FEWEST_ROUNDS` rounds."""

FEWEST_ROUNDS = 5
"""See `LONG_S`: whole networks without optimisation run for seconds."""

SHORT_NS = 2_000_000
"""Length of a sample that what happens between rounds may lengthen, in nanoseconds."""

SETTLE_NS = 50_000_000
"""Time after which the threads of a library no longer wait for work, in nanoseconds."""

QUIET_S = 1.0
"""Least interval between signs of life of a worker that times: the reader disturbs the timing."""

Run = Callable[[int], None]
"""Executes a candidate the given number of times."""


@dataclass(frozen=True)
class Timing:
    """Parameters of the protocol; all of them are part of the cache key, by `version`.

    Attributes:
        budget_ns: Time for the samples of one candidate.
        sample_ns: Shortest sample; faster candidates are executed several times in a sample.
        fewest: Least number of samples, even if they exceed the budget.
        most: Greatest number of samples.
        slow_ns: Execution time beyond which a candidate gets only two samples, and beyond ten times that a
            single one.
        disturbance: Share of a sample's wall time that the thread may be off the CPU.
        retakes: Greatest number of retaken samples, as a multiple of the samples.
        clock: CPU clock that reveals disturbances: the thread's, the process's for candidates that run on
            other threads, or that of the process and the children that it has waited for, for candidates that
            are programs.
        cold: Whether the caches are empty before each sample, which is then a single execution.
    """

    budget_ns: int = 1_000_000
    sample_ns: int = 100_000
    fewest: int = 5
    most: int = 10
    slow_ns: int = 2_000_000
    disturbance: float = 0.05
    retakes: int = 2
    clock: Literal["thread", "process", "children"] = "thread"
    cold: bool = False

    @property
    def version(self) -> str:
        """Text that names the protocol and its parameters."""
        return (
            f"least/2 budget={self.budget_ns} sample={self.sample_ns} samples={self.fewest}-{self.most}"
            f" slow={self.slow_ns} disturbance={self.disturbance:g} retakes={self.retakes} clock={self.clock}"
            + (" cold" if self.cold else "")
        )

    def emptying(self) -> "Timing":
        """Return the same protocol with empty caches."""
        return replace(self, cold=True, sample_ns=1)


DEFAULT_TIMING = Timing()


@dataclass(frozen=True)
class _Sample:
    """A sample in nanoseconds per execution, and whether the thread stayed on the CPU."""

    ns: float
    calm: bool


def sample(run: Run, timing: Timing = DEFAULT_TIMING) -> tuple[float, ...]:
    """Time a candidate, holding the timing core exclusively.

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
        # The first execution includes cold caches and page faults; a second one improves the estimate.
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
    rest_s: float = 0.0,
) -> list[tuple[float, float]]:
    """Time two candidates in turn, so that disturbances of the machine affect both.

    A round is `ours`, `baseline`, `baseline`, `ours`, so that both follow the other, which has filled the
    caches, equally often. With one sample of each, rounds in the two orders have different ratios, and the
    more frequent order decides: a model of 0.6 ms timed against itself was 0.93 as fast, in the median of
    eight comparisons. Judge by the median of the rounds' ratios.

    Where samples are short, each round begins with untimed ones: between rounds, caches cool. A program of
    80 us timed against itself was 0.97 as fast without that.

    Threads may spin after a run: those of OpenBLAS do so for a tenth of a second by default. On two cores,
    kernels on two threads that were timed meanwhile looked 0.4 times as fast as numpy's instead of 0.9.

    In an isolated worker, the call's time limit restarts periodically: on a busy machine, retaken rounds may
    add up to more.

    Args:
        ours: Executes the candidate the given number of times.
        baseline: Executes the baseline the given number of times.
        rounds: Number of rounds; fewer if they would take long, see `LONG_S`.
        timing: The protocol; a round with a disturbed sample is taken again.
        before: Called before each sample, for example to evict its inputs from the caches.
        rest_s: Seconds in which a candidate's threads fall asleep. A sample that follows one of the other
            candidate waits for so long; unless runs are long, an untimed sample then wakes its threads.

    Returns:
        For each round, nanoseconds per execution of `ours` and of `baseline`, each the mean of two samples.
    """
    with timing_slot():
        begin = told = time.perf_counter()
        sides = [_prepared(candidate, timing, rest_s) for candidate in (ours, baseline)]
        short = max(sides[0].estimate_ns, timing.sample_ns) < SHORT_NS
        ran = sides[1]
        kept: list[tuple[float, float]] = []
        spare: list[tuple[float, float]] = []
        for number in range(rounds * (1 + timing.retakes)):
            taken: tuple[list[_Sample], list[_Sample]] = ([], [])
            for which in (1, 0) if short and not rest_s else ():
                sides[which].run()
            for which in (0, 1, 1, 0):
                if sides[which] is not ran:
                    _rest(sides[which], rest_s)
                ran = sides[which]
                before()
                taken[which].append(_timed(ran.candidate, ran.repeats, timing))
            calm = all(stretch.calm for each in taken for stretch in each)
            first, second = (fmean(stretch.ns for stretch in each) for each in taken)
            (kept if calm else spare).append((first, second))
            now = time.perf_counter()
            if now - told > QUIET_S:
                restart_clock()
                told = now
            long = now - begin > LONG_S and number + 1 >= min(rounds, FEWEST_ROUNDS)
            if len(kept) == rounds or long:
                break
    return (kept + spare)[:rounds]


@dataclass(frozen=True)
class _Side:
    """A candidate of a comparison: about how long an execution takes, and how many make a sample."""

    candidate: Run
    estimate_ns: float
    repeats: int

    def run(self) -> None:
        """Execute it as often as in a sample."""
        self.candidate(self.repeats)


def _prepared(candidate: Run, timing: Timing, rest_s: float) -> _Side:
    """Return a side of a comparison, estimated once the other's threads are asleep."""
    time.sleep(rest_s)
    estimate = _warm(candidate, timing)
    return _Side(candidate, estimate, _repeats(candidate, estimate, timing))


def _rest(following: _Side, rest_s: float) -> None:
    """Wait until the threads of one side are asleep, and then wake those of the side that follows."""
    if rest_s:
        time.sleep(rest_s)
        if following.estimate_ns < SETTLE_NS:
            following.run()


def _collect(
    run: Run, repeats: int, count: int, timing: Timing, taken: tuple[_Sample, ...] = ()
) -> tuple[float, ...]:
    """Take samples until `count` are undisturbed; if none is, keep all."""
    samples = list(taken)
    calm = sum(stretch.calm for stretch in samples)
    while calm < count and len(samples) < count * (1 + timing.retakes):
        samples.append(_timed(run, repeats, timing))
        calm += samples[-1].calm
    return tuple(stretch.ns for stretch in samples if stretch.calm or calm == 0)


def _repeats(run: Run, estimate_ns: float, timing: Timing) -> int:
    """Return the number of executions that make a sample of about the shortest length.

    A single execution includes the overhead of the call and of cold caches, so that the number is estimated
    from many executions: kernels of 0.2 us looked like 1.5 us, and their samples were a seventh as long.
    """
    most = timing.sample_ns  # no execution counts as less than 1 ns, so that the search ends for no-ops too
    count = max(1, round(timing.sample_ns / max(estimate_ns, 1.0)))
    while 1 < count < most:
        taken = _timed(run, count, timing).ns * count
        if 2 * taken >= timing.sample_ns:
            break
        count = min(round(count * timing.sample_ns / taken), 16 * count, most)
    return count


def _warm(run: Run, timing: Timing) -> float:
    """Return the least time of an execution, in nanoseconds: of two; with threads, of all in `SETTLE_NS`.

    Other threads wake up milliseconds late while those of a library still wait for work on their cores.
    Judged by such executions, a kernel of 0.1 us on two threads was executed once in a sample, and looked
    like 80 us with the start of its threads.
    """
    begin = time.perf_counter_ns()
    least = min(_timed(run, 1, timing).ns, _timed(run, 1, timing).ns)
    while timing.clock == "process" and time.perf_counter_ns() - begin < SETTLE_NS:
        least = min(least, _timed(run, 1, timing).ns)
    return least


def _cpu_ns(clock: str) -> int:
    """Return what a CPU clock shows, in nanoseconds."""
    if clock == "thread":
        return time.thread_time_ns()
    if clock == "process":
        return time.process_time_ns()
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time_ns() + round(1e9 * (ended.ru_utime + ended.ru_stime))


def _timed(run: Run, repeats: int, timing: Timing) -> _Sample:
    if timing.cold:
        empty_caches()
    # The CPU clock is read outside of the wall clock, so that it never shows less if undisturbed.
    cpu_begin = _cpu_ns(timing.clock)
    begin = time.perf_counter_ns()
    run(repeats)
    wall = time.perf_counter_ns() - begin
    cpu = _cpu_ns(timing.clock) - cpu_begin
    return _Sample(max(wall, 1) / repeats, wall - cpu <= timing.disturbance * wall)
