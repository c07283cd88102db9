"""The time of what follows a search: how long it takes at most, and its share where time is short."""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from irgym.core import capabilities
from irgym.core.cost import Measurement
from irgym.core.task import Task
from irgym.measure.timing import LONG_S

START_S = 5.0
"""Seconds that the checks of the smallest program may take: processes start, libraries are imported."""

CHECKS = 6.0
"""Time of the checks, in units of the time that the original program took to compile and run."""

PAIRS = 60
"""Runs of a program and its baseline in turn, or the machine's peak, unless they are slow: see
`irgym.measure.timing.interleave`."""

ENDED = 10
"""Comparisons where schedules have several endings: three with the baseline at least, a fourth that begins
before time is up, and preparing both programs for each comparison takes longer than timing them."""

WARMING = 16
"""Runs that a comparison in turn takes beside its rounds: expected results are made, results checked, and
caches warmed."""

FEW = 3
"""Rounds of the last comparison with the baseline for which time is kept."""

KEPT = 0.25
"""Share of the time of all checks that is kept for it at most."""

LATE_S = 5.0
"""Seconds that these few rounds may take where no time is left: more than that is left out."""

FINAL = 3
"""Comparisons with the baseline otherwise: a finalist's that begins before time is up, the result's, and that
of the original program where it turns out to be no better."""


@dataclass(frozen=True)
class Patience:
    """How long checks go on with what need not be repeated, and by when all of them are to end.

    Attributes:
        seconds: Then they come to an end: each measurement is made once, and validation is never left out.
        whole_s: By then they are to have ended.
        run_s: Time of one run of the program on each of its inputs.
        prepare_s: Time for preparing it, such as compiling.
        started: When they began, on the monotonic clock.
    """

    seconds: float = math.inf
    whole_s: float = math.inf
    run_s: float = 0.0
    prepare_s: float = 0.0
    started: float = field(default_factory=time.monotonic)

    @property
    def over(self) -> bool:
        """Whether the time for repetitions is up."""
        return self.past(1.0)

    def past(self, share: float) -> bool:
        """Say whether a share of the time for repetitions is up."""
        return time.monotonic() - self.started >= share * self.seconds

    @property
    def last_s(self) -> float:
        """Seconds until all checks are to have ended; 0 if that is past."""
        return max(0.0, self.whole_s - (time.monotonic() - self.started))

    @property
    def left_s(self) -> float:
        """Seconds until the last comparison with the baseline is to begin; 0 if that is past."""
        if math.isinf(self.whole_s):
            return math.inf
        return max(0.0, self.last_s - min(KEPT * self.whole_s, self._few_s))

    @property
    def _few_s(self) -> float:
        """Seconds that a comparison of `FEW` rounds takes."""
        return 2 * self.prepare_s + (WARMING + 4 * FEW) * self.run_s

    def comparison(self, most: int, share: float = 1.0, last: bool = False) -> int:
        """Return for how many rounds of a comparison in turn there is time, `most` at most; 0 for none.

        Args:
            most: That many are enough.
            share: Share of the time left that the comparison may take.
            last: Whether it is the last one with the baseline: it may take the time that was kept for it, and
                a few rounds that take little are never left out.
        """
        left_s = share * (self.last_s if last else self.left_s) - 2 * self.prepare_s
        if left_s > 0.0 and (math.isinf(left_s) or (WARMING + 4 * most) * self.run_s <= left_s):
            return most
        rounds = max(0, int((left_s / self.run_s - WARMING) / 4)) if self.run_s else 0
        return max(rounds, min(FEW, most)) if last and self._few_s <= LATE_S else rounds

    def beside_peak(self, most: int) -> int:
        """Return how many rounds to time beside the peak: `most`, or a few where these take long."""
        return most if 4 * most * self.run_s <= LATE_S else max(FEW, self.comparison(most, last=True))

    def rounds(self, most: int) -> Iterator[int]:
        """Yield the numbers of rounds: `most`, or fewer where time is up; one at least."""
        for number in range(most):
            if number and self.over:
                return
            yield number

    def turns(self, most: int, count: int) -> Iterator[int]:
        """Yield the places of some programs in turn, `most` times or until time is up; the first at least."""
        for turn in range(most * count):
            if turn and self.over:
                return
            yield turn % count


ENDLESS = Patience()
"""For checks that may take as long as they do."""


@dataclass(frozen=True)
class Checks:
    """Time of the checks after a search.

    Attributes:
        seconds: Wall-clock time.
        bound_s: Bound that was announced before.
    """

    seconds: float
    bound_s: float


def first_seconds(task: Task[Any], first: Measurement) -> float:
    """Return how long it took to find out the cost of a original program, also where that was recorded."""
    return first.compile_s + 2 * run_seconds(task, first)


def run_seconds(task: Task[Any], first: Measurement) -> float:
    """Return how long the original program takes to run once on each of its inputs; 0 where none is timed."""
    if not task.objective.timed or not first.ok:
        return 0.0
    return first.cost * 1e-9 * task.job(task.initial()).runs


def checks_bound(task: Task[Any], first_cost: float, first_s: float, runs: float = 1.0) -> float:
    """Return how many seconds the checks of a program take at most.

    Args:
        task: The program.
        first_cost: Cost of the original program; infinite where it failed.
        first_s: Seconds that it took to find that out.
        runs: See `Job.runs`.
    """
    bound = START_S + CHECKS * first_s
    if task.objective.timed and math.isfinite(first_cost):
        bound += _comparisons(task) * runs * min(LONG_S, 2 * PAIRS * first_cost * 1e-9)
    preparation = capabilities.ask(task, capabilities.Preparation)
    return bound if preparation is None else bound + preparation.validation_s()


def _comparisons(task: Task[Any]) -> int:
    """Return for how many comparisons in turn there must be time."""
    if capabilities.ask(task, capabilities.Endings) is not None:
        return ENDED
    return FINAL if capabilities.peak_call(task, task.initial()) is None else FINAL + 2
