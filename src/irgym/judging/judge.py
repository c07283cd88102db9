"""The judge: chooses the best candidate that a search found, never one worse than the original."""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from irgym.base.errors import BaselineError, IrgymError
from irgym.core import capabilities
from irgym.core.baseline import ROUNDS, Versus
from irgym.core.bench import Bench
from irgym.core.environment import Environment
from irgym.core.schedule import Candidate, Schedule, candidate_of, original_of
from irgym.core.task import Task
from irgym.judging.finding import Finding
from irgym.judging.patience import ENDLESS, Patience
from irgym.judging.so_far import SoFar
from irgym.judging.statistics import NOISE
from irgym.judging.trials import CLOSE, Trials
from irgym.judging.validator import Validator
from irgym.search.minimise import minimise
from irgym.search.result import SearchResult

KEPT = "no improvement was found, so the original program is kept"
"""Sentence for the user if the result is the original program."""


SHORTENING = 0.2
"""Share of the time left that leaving out actions may take."""

VALIDATING = 0.6
"""Share of the time left that a validation may take, if it can be shortened."""


@dataclass(frozen=True)
class Choice:
    """The candidate chosen among the finalists of a search.

    Attributes:
        candidate: The candidate.
        no_gain: See `irgym.judging.finding.Finding.no_gain`.
    """

    candidate: Candidate
    no_gain: str = ""


@dataclass(frozen=True)
class Judge:
    """Measures, validates and compares candidates of one program after a search.

    Attributes:
        environment: Where the program comes from.
        bench: Where programs are measured.
        task: The program.
        validator: Compares results with the original's.
        patience: How long to repeat measurements.
        so_far: What is validated so far.
    """

    environment: Environment
    bench: Bench
    task: Task[Any]
    validator: Validator
    patience: Patience = ENDLESS
    so_far: SoFar = field(default_factory=SoFar, repr=False, compare=False)

    @cached_property
    def trials(self) -> Trials:
        """Measurements of the program's candidates."""
        return Trials(self.bench, self.task, self.patience)

    @cached_property
    def original(self) -> Candidate:
        """The original program."""
        return original_of(self.task)

    @cached_property
    def baseline_itself(self) -> Candidate | None:
        """The original program under the ending that makes it the reference baseline; None without one."""
        name = self.environment.reference_baseline
        ending = None if name is None else capabilities.ending_of(self.task, name)
        return None if ending is None else candidate_of(self.task, Schedule((ending,)))

    def same(self, first: Candidate, second: Candidate) -> bool:
        """Say whether two candidates are one program, whatever their schedules."""
        return self.task.key(first.state) == self.task.key(second.state)

    def confirm(self, candidate: Candidate, no_gain: str = "") -> Finding:
        """Validate a candidate and measure it beside the original, the baseline and the machine's peak.

        Args:
            candidate: The candidate.
            no_gain: See `Finding.no_gain`.

        Raises:
            WrongResultsError: Its results are wrong, or it fails where the original runs.
            IrgymError: It fails when it is measured.
        """
        self.so_far.doing = "comparing its results with the original's"
        validation = self.validator(self.task, candidate.state, VALIDATING * self.patience.left_s)
        # Baselines are timed: they cannot be compared with other costs.
        baseline = self.environment.reference_baseline if self.task.objective.timed else None
        itself = None if baseline is None else self.baseline_itself
        finding = self._known(
            Finding(
                actions=candidate.schedule,
                state=candidate.state,
                cost=self.trials.least(candidate.state),
                cost_as_written=self.trials.least(self.original.state),
                validation=validation,
                baseline=baseline,
                versus=None,
                running=capabilities.running(self.task, candidate.state),
                no_gain=no_gain,
                is_baseline=itself is not None and self.same(candidate, itself),
            )
        )
        self.so_far.doing = "measuring it again beside the original"
        original = self.same(candidate, self.original)
        states = [candidate.state] if original else [self.original.state, candidate.state]
        costs = self.trials.costs(states)
        finding = self._known(replace(finding, cost=costs[-1], cost_as_written=costs[0]))
        if baseline is not None:
            self.so_far.doing = f"timing it in turn with {baseline}"
            try:
                versus = self.trials.versus(baseline, candidate.state, last=True)
                finding = replace(finding, versus=versus)
            except BaselineError as error:  # the noise of the baseline need not be known
                finding = replace(finding, no_baseline="" if finding.is_baseline else str(error))
        rounds = self.patience.beside_peak(ROUNDS)
        peak_call = capabilities.peak_call(self.task, candidate.state, rounds)
        if peak_call is None:
            return self._known(finding)
        self._known(finding)
        self.so_far.doing = "timing it in turn with the machine's peak"
        return self._known(replace(finding, peak=self.bench.call(peak_call)))

    def _known(self, finding: Finding) -> Finding:
        """Return a finding, and keep it in case of an interrupt."""
        self.so_far.findings[self.task.key(finding.state)] = finding
        return finding

    def best_of(self, found: SearchResult) -> Finding:
        """Validate and measure the best finalist of a search; the original program if that is no better.

        Programs with wrong results, or that no longer run, are rejected, and the finding says so.

        Raises:
            IrgymError: The original program no longer runs.
        """
        choice = self.choose(found)
        if choice.no_gain:
            return self._never_behind_baseline(self._baseline_or_original(choice))
        finding = self._best_right(choice.candidate, found.finalists)
        if not finding.improved and not self.same(finding.candidate, self.original):
            finding = self._original_instead_of(finding)
        return self._never_behind_baseline(finding)

    def best_of_episode(self, final: Finding | None, seen: Candidate) -> Finding:
        """Return the best of an episode's final state, the best state seen on the way, and the original.

        Args:
            final: The final state, validated and measured; None if it does not run.
            seen: The state with the least cost on the way. The least of several costs flatters, so it is
                measured again: in turn with the final state, and then beside the original program.

        Raises:
            IrgymError: The best gives wrong results, or no longer runs.
        """
        found = [] if final is None else [final]
        others = (self.original, *(finding.candidate for finding in found))
        new = not any(self.same(seen, other) for other in others)
        if new and (final is None or next(iter(self.trials.ranked([final.candidate, seen])), None) == seen):
            found.append(self.confirm(seen))
        best = max(found, key=lambda finding: finding.speedup, default=None)
        if best is not None and best.validation and best.validation.unseen:
            best = self._best_right(best.candidate, [finding.candidate for finding in found])
        if best is not None and best.improved:
            return best
        return self.confirm(self.original, KEPT) if best is None else self._original_instead_of(best)

    def choose(self, found: SearchResult) -> Choice:
        """Choose the finalist whose cost, measured three times in turn, is least, as far as patience reaches.

        The least of thousands of noisy costs flatters its owner. A finalist that fails is out. Exact costs
        need no new measurement: the first finalist is the best.

        Costs are measured in warm caches. So the finalists with the least costs, and the candidates that the
        search began with, are timed in turn with the reference baseline, which uses the caches too: see
        `_best_in_use`. Up to noise, the result is never worse than the policy's own.

        If the task has `Endings`, each finalist is tried under each of them, and so is the original program.
        One of these may be the reference baseline itself. Then the best is the candidate that gains most on
        the baseline when they are timed in turn, and the baseline itself unless that candidate is faster.

        Raises:
            IrgymError: The best no longer runs.
        """
        if self.task.objective.exact:
            return Choice(found.finalists[0])
        finalists = list(dict.fromkeys((*found.finalists, *found.begun)))
        ended = self._under_endings(finalists)
        if not ended:
            return Choice(self._shortest(self._least_cost(self._distinct(finalists), found)))
        first = () if self.baseline_itself is None else (self.baseline_itself,)
        close = self.trials.closest(self._distinct((*first, *finalists[:1], *ended, *finalists[1:])))
        if not close:
            return Choice(found.finalists[0])
        if self.baseline_itself is not None:
            with suppress(BaselineError):  # the result says so
                return self._over_baseline(self.baseline_itself, close)
        return Choice(self._shortest(next(iter(self.trials.ranked(close)), close[0])))

    def _distinct(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return the distinct ones of some programs, in order."""
        found: dict[str, Candidate] = {}
        for candidate in candidates:
            found.setdefault(self.task.key(candidate.state), candidate)
        return list(found.values())

    def _shortest(self, candidate: Candidate) -> Candidate:
        """Return a candidate without the actions that it does not need, as far as there is time."""
        return minimise(self.task, candidate, SHORTENING * self.patience.left_s)

    def _least_cost(self, distinct: Sequence[Candidate], found: SearchResult) -> Candidate:
        """Return the candidate with the least cost, or a close one that gains more on the baseline."""
        costs = self.trials.ranked(distinct)
        order = list(costs) or list(found.finalists[:1])
        name = self.environment.reference_baseline
        if name is None or not self.task.objective.timed:
            return order[0]
        rivals = [
            candidate
            for candidate in (*order[1:CLOSE], *found.begun)
            if costs.get(candidate, math.inf) < found.first_cost
        ]
        return self._best_in_use(name, list(dict.fromkeys((order[0], *rivals))))

    def _best_in_use(self, baseline: str, candidates: Sequence[Candidate]) -> Candidate:
        """Return the first candidate, or the one that gains most on a baseline, if more beyond the noise.

        That one must not be slower than the first by its time in turn: a baseline's time may change with the
        program that runs beside it, as that of torch's convolutions does.
        """
        with suppress(BaselineError):  # the result says so
            timings = self.trials.in_turn(baseline, candidates)
            if timings:
                first = next(iter(timings))
                limit_ns = timings[first].time_ns * (1.0 + NOISE)
                able = [candidate for candidate in timings if timings[candidate].time_ns <= limit_ns]
                most = max(able, key=lambda candidate: timings[candidate].gain)
                return most if timings[most].gain > timings[first].gain * (1.0 + NOISE) else first
        return candidates[0]

    def _over_baseline(self, itself: Candidate, candidates: Sequence[Candidate]) -> Choice:
        """Return the candidate that gains most on the baseline; the baseline itself unless that is faster.

        Args:
            itself: The candidate that is the baseline.
            candidates: The least costs first.

        Raises:
            BaselineError: The baseline cannot compute the program.
        """
        name = self.environment.reference_baseline
        assert name is not None
        others = [candidate for candidate in candidates if not self.same(candidate, itself)]
        while others:
            # Costs measured one after the other differ more than the programs do if the machine's speed
            # changes from second to second, as that of two threads does on a shared machine.
            timings = self.trials.in_turn(name, others)
            most = max(timings, key=lambda candidate: timings[candidate].gain, default=others[0])
            # Only the best is shortened: that takes many transitions.
            best = self._shortest(most)
            try:
                return Choice(best) if self.trials.beats(name, best) else self._baseline_choice(itself)
            except BaselineError:
                raise
            except IrgymError:  # it fails when it is timed, and the next may not
                others.remove(most)
        return self._baseline_choice(itself)

    def _under_endings(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return candidates, and the original program, under all other endings."""
        found: list[Candidate] = []
        for candidate in (*candidates, self.original):
            actions = candidate.schedule.actions
            stopped = bool(actions) and self.task.space.stops[actions[-1].kind]
            unended = candidate_of(self.task, Schedule(actions[:-1])) if stopped else candidate
            found += [
                Candidate(self.task.step(unended.state, ending), unended.schedule.then(ending))
                for ending in capabilities.endings(self.task, unended.state)
            ]
        return found

    def _baseline_choice(self, itself: Candidate) -> Choice:
        """Return the choice of the baseline itself, with the sentence that says so."""
        name = self.environment.reference_baseline
        [what] = [known.description for known in self.environment.baselines if known.name == name]
        running = capabilities.running(self.task, itself.state)
        text = f"nothing faster than {what} was found; the result is the original program, to be run with"
        return Choice(itself, f"{text} {running}")

    def _best_right(self, candidate: Candidate, finalists: Sequence[Candidate]) -> Finding:
        """Return the best candidate with right results, less the actions whose effect no check can see.

        Args:
            candidate: The best.
            finalists: The others; the best of them comes next if one is wrong, or actions are left out.

        Raises:
            IrgymError: The original program fails a check or a measurement that it passed before.
        """
        so_far = self.so_far
        while True:
            key = self.task.key(candidate.state)
            original = self.same(candidate, self.original)
            try:
                finding = self.confirm(self.original, KEPT) if original else self.confirm(candidate)
            except IrgymError as error:
                if original:
                    raise
                so_far.reject(key, str(error))
            else:
                unseen = finding.validation.unseen if finding.validation else ()
                if not set(unseen) - set(so_far.left_out):
                    rejected = tuple(so_far.rejected.values())
                    return replace(finding, left_out=so_far.left_out, rejected=rejected)
                del so_far.findings[key]
                so_far.left_out = tuple(dict.fromkeys((*so_far.left_out, *unseen)))
            so_far.doing = "choosing the next of the finalists"
            kept = dict.fromkeys(self._without(known, so_far.left_out) for known in (candidate, *finalists))
            others = [known for known in kept if self.task.key(known.state) not in so_far.rejected]
            candidate = next(iter(self.trials.ranked(others)), self.original)

    def _without(self, candidate: Candidate, left_out: Sequence[str]) -> Candidate:
        """Return a candidate without its actions on some action candidates."""
        actions = candidate.schedule.actions
        kept = tuple(action for action in actions if action.candidate not in left_out)
        return candidate if kept == actions else candidate_of(self.task, Schedule(kept))

    def _original_instead_of(self, finding: Finding) -> Finding:
        """Return the original program, with the notes of a finding that is no better."""
        original = self.confirm(self.original, KEPT)
        return replace(original, left_out=finding.left_out, rejected=finding.rejected)

    def _baseline_or_original(self, choice: Choice) -> Finding:
        """Return the program run as the baseline runs it, unless the original is faster beyond the noise.

        It was chosen by timings in turn with the baseline, and so the original must be faster in turn with
        the baseline, too: costs alone differ more than programs do.
        """
        try:
            finding = self.confirm(choice.candidate, choice.no_gain)
        except IrgymError as error:  # its results are wrong, or it no longer runs
            self.so_far.reject(self.task.key(choice.candidate.state), str(error))
            return replace(self.confirm(self.original, KEPT), rejected=(str(error),))
        if finding.cost <= finding.cost_as_written * (1.0 + NOISE):
            return finding
        original = self.confirm(self.original, KEPT)
        return original if (original.baseline_ratio or 0.0) > 1.0 + NOISE else finding

    def _never_behind_baseline(self, finding: Finding) -> Finding:
        """Return a finding; or the baseline itself, if an ending makes it and the finding is slower in turn.

        The choice of the finding may have been noise, or patience may have been over before any comparison.
        A single comparison may be noise too: one that says slower is repeated, and both count.
        """
        name, versus, itself = self.environment.reference_baseline, finding.versus, self.baseline_itself
        if name is None or itself is None or versus is None or finding.is_baseline or versus.ratio >= 1.0:
            return finding
        self.so_far.doing = f"timing it in turn with {name} again"
        try:
            again: Versus = self.trials.versus(name, finding.state)
        except BaselineError:  # no time is left
            again = versus
        both = replace(versus, ratios=versus.ratios + again.ratios)
        if both.ratio >= 1.0:
            return replace(finding, versus=both)
        choice = self._baseline_choice(itself)
        try:
            baseline = self.confirm(choice.candidate, choice.no_gain)
        except IrgymError as error:  # slower than a wrong or failing program is still the best right one
            self.so_far.reject(self.task.key(itself.state), str(error))
            return replace(finding, rejected=(*finding.rejected, str(error)))
        return replace(baseline, left_out=finding.left_out, rejected=finding.rejected)
