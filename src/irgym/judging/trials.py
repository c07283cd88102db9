"""Repeated measurements of several candidates, in turn.

Whatever slows the machine down may last longer than all measurements of one candidate: so the candidates
take turns, and the least of several costs counts.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import geometric_mean
from typing import Any

import numpy as np

from irgym.base.errors import BaselineError, IrgymError
from irgym.core import capabilities
from irgym.core.baseline import ROUNDS as VERSUS_ROUNDS
from irgym.core.baseline import Versus
from irgym.core.bench import Bench
from irgym.core.cost import Measurement
from irgym.core.schedule import Candidate
from irgym.core.task import Task
from irgym.judging.patience import ENDLESS, Patience
from irgym.judging.statistics import Verdict, geometric_interval
from irgym.judging.targets import of_baseline

ROUNDS = 3
"""Measurements of which the least counts; one if costs are exact."""

SURE = 2
"""Number of programs that are measured again in any case: the reference baseline and the best finalist."""

CLOSE = 4
"""Number of programs, those with the least costs, that are timed in turn with the reference baseline."""

PLACINGS = 2
"""Comparisons with the baseline that rank the close programs."""

CLOSING = 0.6
"""Share of the time for repetitions for finding the close programs; then these are timed in turn."""

COMPARING = 0.25
"""Share of the time left that comparisons for a choice may take, since validation follows."""


@dataclass(frozen=True)
class InTurn:
    """A program timed in turn with a baseline.

    Attributes:
        gain: Time of the baseline over time of the program.
        time_ns: Time of the program.
    """

    gain: float
    time_ns: float


@dataclass(frozen=True)
class Trials:
    """Measurements of candidates of one program.

    Attributes:
        bench: Where programs run.
        task: The program.
        patience: How long to repeat measurements.
        seen: The least cost measured of each program that ran, by key.
    """

    bench: Bench
    task: Task[Any]
    patience: Patience = ENDLESS
    seen: dict[str, float] = field(default_factory=dict[str, float], repr=False, compare=False)

    def measure(self, state: Any) -> Measurement:
        """Measure a state without the cost cache."""
        [measurement] = self.bench.measure([self.task.job(state)])
        if measurement.ok:
            self.seen[self.task.key(state)] = min(self.least(state), measurement.cost)
        return measurement

    def least(self, state: Any) -> float:
        """Return the least cost measured of a state's program so far; infinite if it was not measured."""
        return self.seen.get(self.task.key(state), math.inf)

    def costs(self, states: Sequence[Any]) -> list[float]:
        """Return for each state the least of several costs measured in turn, or its known cost.

        Raises:
            IrgymError: A program fails.
        """
        repeats = 1 if self.task.objective.exact else ROUNDS
        rounds = [[self._cost(state) for state in states] for _ in self.patience.rounds(repeats)]
        return [min(costs) for costs in zip(*rounds, strict=True)]

    def _cost(self, state: Any) -> float:
        measurement = self.task.job(state).known or self.measure(state)
        if not measurement.ok:
            raise IrgymError(f"{self.task.uri} does not run with this schedule: {measurement.failure}")
        return measurement.cost

    def ranked(self, candidates: Sequence[Candidate]) -> dict[Candidate, float]:
        """Return the least of several costs of each candidate that runs, ascending; failures are left out."""
        costs = dict.fromkeys(candidates, math.inf)  # of those that have not failed
        for place in self.patience.turns(ROUNDS, len(candidates)):  # the best of the search stand first
            candidate = candidates[place]
            if candidate in costs:
                measurement = self.measure(candidate.state)
                if measurement.ok:
                    costs[candidate] = min(costs[candidate], measurement.cost)
                else:
                    del costs[candidate]
        measured = {candidate: cost for candidate, cost in costs.items() if cost < math.inf}
        return dict(sorted(measured.items(), key=lambda item: item[1]))

    def closest(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return the `CLOSE` candidates with the least costs, measured once, and the better half again.

        A disturbance may last as long as a measurement, so a single one does not do. The first `SURE` are
        measured however short the time.
        """
        costs = [
            math.inf if place >= SURE and self.patience.past(CLOSING) else self.measure(candidate.state).cost
            for place, candidate in enumerate(candidates)
        ]
        better: list[int] = np.argsort(costs, kind="stable")[: 2 * CLOSE].tolist()
        again = {
            place: costs[place]
            if self.patience.past(CLOSING)
            else min(costs[place], self.measure(candidates[place].state).cost)
            for place in better
            if costs[place] < math.inf
        }
        return [candidates[place] for place in sorted(again, key=again.__getitem__)[:CLOSE]]

    def versus(
        self,
        baseline: str,
        state: Any,
        timeout_s: float | None = None,
        told: Callable[[str], None] | None = None,
        share: float = 1.0,
        last: bool = False,
    ) -> Versus:
        """Time a state in turn with a baseline.

        Args:
            baseline: Name of the baseline, with its options.
            state: The state.
            timeout_s: Time limit; by default that of a candidate.
            told: Called with a line of text on how a baseline that tunes gets on.
            share: Share of the time left for checks that it may take, by the number of its rounds.
            last: Whether time was kept for it; see `Patience.comparison`.

        Raises:
            BaselineError: The baseline cannot compute the program, or no time is left.
            IrgymError: The state fails.
        """
        rounds = self._patience_with(state).comparison(VERSUS_ROUNDS, share, last)
        if not rounds:
            raise BaselineError(f"no time was left to time it in turn with {baseline}: give more seconds")
        call = capabilities.baseline_call(self.task, baseline, state, rounds)
        return of_baseline(self.bench.call(call, timeout_s, told), self.task, call)

    def _patience_with(self, state: Any) -> Patience:
        """Return the patience with the time of a run of a state, where that is less than the original's."""
        least_s = self.least(state) * 1e-9 * self.task.job(state).runs
        timed = self.task.objective.timed and least_s < self.patience.run_s
        return replace(self.patience, run_s=least_s) if timed else self.patience

    def in_turn(self, baseline: str, candidates: Sequence[Candidate]) -> dict[Candidate, InTurn]:
        """Time candidates in turn with a baseline; those that fail, or come too late, are left out.

        A single candidate has no rival, and so is not timed.

        Raises:
            BaselineError: The baseline cannot compute the program.
        """
        timings: dict[Candidate, list[Versus]] = {candidate: [] for candidate in candidates}
        repeats = PLACINGS if len(candidates) > 1 and not self.patience.over else 0
        share = COMPARING / (PLACINGS * len(candidates))
        for place in self.patience.turns(repeats, len(candidates)):
            candidate = candidates[place]
            if candidate in timings:
                try:
                    timings[candidate].append(self.versus(baseline, candidate.state, share=share))
                except BaselineError:
                    raise
                except IrgymError:  # a failing candidate is out, as where costs are measured
                    del timings[candidate]
        return {
            candidate: InTurn(
                geometric_mean(versus.ratio for versus in found),
                geometric_mean(versus.ours_ns for versus in found),
            )
            for candidate, found in timings.items()
            if found
        }

    def beats(self, baseline: str, candidate: Candidate) -> bool:
        """Say whether a candidate is faster than a baseline beyond the noise.

        A program that is compiled and loaded once more may be some percent faster or slower than before,
        whatever the ratios of one comparison agree on: so it must be faster in several comparisons, and in
        all of them together.
        """
        ratios: list[float] = []
        for _ in self.patience.rounds(ROUNDS):
            versus = self.versus(baseline, candidate.state, share=COMPARING)
            if versus.ratio <= 1.0:
                return False
            ratios += versus.ratios
        return geometric_interval(ratios).verdict is Verdict.FASTER
