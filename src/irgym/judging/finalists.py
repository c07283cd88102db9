"""Which of the programs that were found is the best: never one worse than the program as written."""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from statistics import geometric_mean
from typing import Any

import numpy as np

from irgym.base.errors import BaselineError, IrgymError, WrongResultsError
from irgym.core import capabilities
from irgym.core.actions import Action
from irgym.core.environment import Bench, Environment, Versus
from irgym.core.schedule import Schedule, replay
from irgym.core.task import Task
from irgym.judging.patience import ENDLESS, Patience
from irgym.judging.statistics import NOISE, Verdict, geometric_interval
from irgym.judging.tuning import ROUNDS, Finding, Validator, confirm, measure_anew, same_program
from irgym.search.minimise import minimise
from irgym.search.result import SearchResult

CLOSE = 4
"""Number of programs, those with the least costs, that are timed in turn with the reference baseline."""

PLACINGS = 2
"""Comparisons with the baseline that tell which of the close ones is the best."""


@dataclass(frozen=True)
class Choice:
    """What was chosen of the finalists of a search.

    Attributes:
        schedule: Leads to it.
        no_gain: See `irgym.judging.tuning.Finding.no_gain`.
    """

    schedule: Schedule
    no_gain: str = ""


@dataclass(frozen=True)
class _Use:
    """How a program does when it is timed in turn with a baseline.

    Attributes:
        gain: The baseline's time over its time.
        time_ns: Its time.
    """

    gain: float
    time_ns: float


KEPT = "nothing better than the program as written was found, so that is kept"
"""What is said where that is the result."""


def confirm_best(
    environment: Environment,
    bench: Bench,
    task: Task[Any],
    result: SearchResult,
    validator: Validator,
    patience: Patience = ENDLESS,
) -> Finding:
    """Validate and measure the best finalist of a search; the program as written where that is no better.

    Programs that give wrong results are rejected, and the result says so.

    Args:
        environment: Where the program comes from.
        bench: Where it is measured.
        task: The program.
        result: What the search found.
        validator: Compares results with the original's.
        patience: How long to go on measuring anew; what was found first counts for more then.

    Raises:
        IrgymError: The best does not run any more.
    """
    finding = _confirmed(environment, bench, task, result, validator, patience)
    return _never_behind_baseline(environment, bench, task, finding, validator, patience)


def _never_behind_baseline(
    environment: Environment,
    bench: Bench,
    task: Task[Any],
    finding: Finding,
    validator: Validator,
    patience: Patience,
) -> Finding:
    """Return a finding, or the baseline itself where an ending makes that, and the finding is slower in turn.

    Whatever led to the finding may have been noise, or patience may have been over before there was any
    comparison. A single comparison may be noise too: one that says slower is made again, and both count.
    """
    name, versus = environment.reference_baseline, finding.versus
    ending = None if name is None else capabilities.ending_of(task, name)
    if name is None or ending is None or versus is None or finding.is_baseline or versus.ratio >= 1.0:
        return finding
    again: Versus = bench.call(capabilities.baseline_call(task, name, finding.state))
    both = replace(versus, ratios=versus.ratios + again.ratios)
    if both.ratio >= 1.0:
        return replace(finding, versus=both)
    choice = _as_baseline(environment, task, name, ending)
    try:
        itself = confirm(environment, bench, task, choice.schedule, validator, choice.no_gain, patience)
    except WrongResultsError as error:  # slower than what is wrong is still the best that is right
        return replace(finding, rejected=(*finding.rejected, str(error)))
    return replace(itself, left_out=finding.left_out, rejected=finding.rejected)


def _confirmed(
    environment: Environment,
    bench: Bench,
    task: Task[Any],
    result: SearchResult,
    validator: Validator,
    patience: Patience,
) -> Finding:
    """Return what `confirm_best` does, without a last look at the baseline."""
    best = best_of(environment, bench, task, result, patience)
    if best.no_gain:
        return _as_baseline_or_written(environment, bench, task, best, validator, patience)
    finding = _right(environment, bench, task, best.schedule, result.finalists, validator, patience)
    if finding.cost < finding.cost_as_written or same_program(task, finding.state, task.initial()):
        return finding
    written = confirm(environment, bench, task, Schedule(), validator, KEPT, patience)
    return replace(written, left_out=finding.left_out, rejected=finding.rejected)


def _right(
    environment: Environment,
    bench: Bench,
    task: Task[Any],
    schedule: Schedule,
    finalists: Sequence[Schedule],
    validator: Validator,
    patience: Patience,
) -> Finding:
    """Return the best of some programs that is right, less the actions whose effect no check can see.

    Args:
        environment: Where the program comes from.
        bench: Where it is measured.
        task: The program.
        schedule: The best.
        finalists: Others, of which the best comes next where one is wrong, or actions are left out.
        validator: Compares results with the original's.
        patience: How long to measure anew.

    Raises:
        WrongResultsError: The program as written does not run as it did when it was first checked.
    """
    left_out: tuple[str, ...] = ()
    rejected: dict[Any, str] = {}
    while True:
        state = replay(task, schedule)
        written = same_program(task, state, task.initial())
        try:
            if written:
                finding = confirm(environment, bench, task, Schedule(), validator, KEPT, patience)
            else:
                finding = confirm(environment, bench, task, schedule, validator, patience=patience)
        except WrongResultsError as error:
            if written:
                raise
            rejected[task.key(state)] = str(error)
        else:
            unseen = finding.validation.unseen if finding.validation else ()
            if not set(unseen) - set(left_out):
                return replace(finding, left_out=left_out, rejected=tuple(rejected.values()))
            left_out = tuple(dict.fromkeys((*left_out, *unseen)))
        kept = dict.fromkeys(_without(one, left_out) for one in (schedule, *finalists))
        others = [one for one in kept if task.key(replay(task, one)) not in rejected]
        schedule = next(iter(_by_cost(bench, task, others)), Schedule())


def _without(schedule: Schedule, candidates: Sequence[str]) -> Schedule:
    """Return a schedule without the actions on some candidates."""
    return Schedule(tuple(action for action in schedule.actions if action.candidate not in candidates))


def _as_baseline_or_written(
    environment: Environment,
    bench: Bench,
    task: Task[Any],
    best: Choice,
    validator: Validator,
    patience: Patience,
) -> Finding:
    """Return the program run as the baseline runs it, unless it is slower than as written beyond the noise.

    It was chosen by timings in turn with the baseline, and so the program as written must be faster in turn
    with the baseline, too: costs alone differ more than programs do.
    """
    try:
        finding = confirm(environment, bench, task, best.schedule, validator, best.no_gain, patience)
    except WrongResultsError as error:
        written = confirm(environment, bench, task, Schedule(), validator, KEPT, patience)
        return replace(written, rejected=(str(error),))
    if finding.cost <= finding.cost_as_written * (1.0 + NOISE):
        return finding
    written = confirm(environment, bench, task, Schedule(), validator, KEPT, patience)
    return written if (written.baseline_ratio or 0.0) > 1.0 + NOISE else finding


def confirm_episode(
    environment: Environment,
    bench: Bench,
    task: Task[Any],
    final: Finding | None,
    seen: Schedule,
    validator: Validator,
) -> Finding:
    """Return the best of an episode's final state, the best state seen on the way, and the original program.

    Args:
        environment: Where the program comes from.
        bench: Where it is measured.
        task: The program.
        final: The final state, validated and measured; None where it does not run.
        seen: Leads to the state with the least cost on the way. The least of some costs flatters, so it is
            measured anew: in turn with the final state, and then beside the program as written.
        validator: Compares the results with the original's.

    Raises:
        IrgymError: The best gives wrong results, or does not run any more.
    """
    state, found = replay(task, seen), [] if final is None else [final]
    others = (task.initial(), *(one.state for one in found))
    new = not any(same_program(task, state, other) for other in others)
    if new and (final is None or next(iter(_by_cost(bench, task, [final.actions, seen])), None) == seen):
        found.append(confirm(environment, bench, task, seen, validator))
    best = max(found, key=lambda one: one.speedup, default=None)
    if best is not None and best.validation and best.validation.unseen:
        best = _right(
            environment, bench, task, best.actions, [one.actions for one in found], validator, ENDLESS
        )
    if best is not None and best.cost < best.cost_as_written:
        return best
    written = confirm(environment, bench, task, Schedule(), validator, KEPT)
    return written if best is None else replace(written, left_out=best.left_out, rejected=best.rejected)


def best_of(
    environment: Environment,
    bench: Bench,
    task: Task[Any],
    result: SearchResult,
    patience: Patience = ENDLESS,
) -> Choice:
    """Return the finalist whose cost, measured three times anew in turn, is least; if patience reaches.

    The least of thousands of noisy costs flatters whoever it belongs to. A finalist that fails is out.
    Costs that the states know have no noise: the first finalist is the best.

    Costs are measured in warm caches. So the finalists with the least costs, and what the search began with,
    are timed in turn with the reference baseline, which uses the caches too: see `_best_in_use`. It ends no
    worse than the policy that leads it, but for the noise.

    Where the task has `Endings`, each finalist is tried under each of them too, and so is the program as
    written. One of these may be the reference baseline itself. Then the best is the one that gains most on
    the baseline when they are timed in turn, and the baseline itself unless that is faster.

    Raises:
        IrgymError: The best gives wrong results.
    """
    if task.objective.exact:
        return Choice(result.finalists[0])
    finalists = list(dict.fromkeys((*result.finalists, *result.begun)))
    ended = _ended(task, finalists)
    distinct = {task.key(replay(task, one)): one for one in (*finalists, *ended)}
    name = environment.reference_baseline
    if not ended:
        costs = _by_cost(bench, task, list(distinct.values()), patience)
        order = list(costs) or finalists[:1]
        if name is None or not task.objective.timed:
            return Choice(minimise(task, order[0]))
        rivals = [
            one for one in (*order[1:CLOSE], *result.begun) if costs.get(one, math.inf) < result.first_cost
        ]
        best = _best_in_use(bench, task, name, list(dict.fromkeys((order[0], *rivals))), patience)
        return Choice(minimise(task, best))
    close = _close(bench, task, list(distinct.values()), patience)
    if not close:
        return Choice(result.finalists[0])
    ending = None if name is None else capabilities.ending_of(task, name)
    if name is not None and ending is not None:
        with suppress(BaselineError):  # the result says so
            return _over_baseline(environment, bench, task, name, ending, close, patience)
    return Choice(minimise(task, next(iter(_by_cost(bench, task, close, patience)), close[0])))


def _over_baseline(
    environment: Environment,
    bench: Bench,
    task: Task[Any],
    baseline: str,
    ending: Action,
    schedules: Sequence[Schedule],
    patience: Patience,
) -> Choice:
    """Return the schedule that gains most on a baseline; unless it is faster, what makes the baseline itself.

    Args:
        environment: Where the program comes from.
        bench: Where it is measured.
        task: The program.
        baseline: Name of the baseline.
        ending: Makes the program as written what the baseline is.
        schedules: The least costs first.
        patience: How long to compare.

    Raises:
        BaselineError: The baseline cannot compute the program.
        IrgymError: The best does not run any more.
    """
    itself = task.key(replay(task, Schedule((ending,))))
    others = [one for one in schedules if task.key(replay(task, one)) != itself]
    if others:
        # Costs that are measured one after the other differ more than the programs do where the machine's
        # speed changes from second to second, as that of two threads does on a shared one.
        used = _in_turn(bench, task, baseline, others, patience)
        most = max(used, key=lambda one: used[one].gain, default=others[0])
        # Of the best alone: to find what can be left out replays a schedule many times.
        best = minimise(task, most)
        if _faster(bench, task, baseline, best, patience):
            return Choice(best)
    return _as_baseline(environment, task, baseline, ending)


def _by_cost(
    bench: Bench, task: Task[Any], schedules: Sequence[Schedule], patience: Patience = ENDLESS
) -> dict[Schedule, float]:
    """Return the least of three costs, measured in turn, of each schedule whose program runs; ascending."""
    states = [replay(task, schedule) for schedule in schedules]
    costs = dict.fromkeys(schedules, math.inf)  # of those that have not failed
    for place in patience.turns(ROUNDS, len(schedules)):  # the best of the search stand first
        schedule = schedules[place]
        if schedule in costs:
            measurement = measure_anew(bench, task, states[place])
            if measurement.ok:
                costs[schedule] = min(costs[schedule], measurement.cost)
            else:
                del costs[schedule]
    return {one: costs[one] for one in sorted(costs, key=costs.__getitem__) if costs[one] < math.inf}


def _best_in_use(
    bench: Bench, task: Task[Any], baseline: str, schedules: Sequence[Schedule], patience: Patience
) -> Schedule:
    """Return the first schedule, or the one that gains most on a baseline, if more beyond the noise.

    That one must not be slower than the first by its own time in turn: a baseline's time may change with what
    runs beside it, as that of torch's convolutions does.
    """
    used: dict[Schedule, _Use] = {}
    with suppress(BaselineError):  # the result says so
        used = _in_turn(bench, task, baseline, schedules, patience)
    if not used:
        return schedules[0]
    first = next(iter(used))
    able = [one for one in used if used[one].time_ns <= used[first].time_ns * (1.0 + NOISE)]
    most = max(able, key=lambda one: used[one].gain)
    return most if used[most].gain > used[first].gain * (1.0 + NOISE) else first


def _close(
    bench: Bench, task: Task[Any], schedules: Sequence[Schedule], patience: Patience
) -> list[Schedule]:
    """Return the schedules with the least costs, those that run, measured once and the better ones again.

    What disturbs the machine may last for as long as a measurement, so a single one does not do.
    """
    costs = [
        math.inf if patience.over else measure_anew(bench, task, replay(task, one)).cost for one in schedules
    ]
    better: list[int] = np.argsort(costs, kind="stable")[: 2 * CLOSE].tolist()
    again = {
        place: costs[place]
        if patience.over
        else min(costs[place], measure_anew(bench, task, replay(task, schedules[place])).cost)
        for place in better
        if costs[place] < math.inf
    }
    return [schedules[place] for place in sorted(again, key=again.__getitem__)[:CLOSE]]


def _in_turn(
    bench: Bench, task: Task[Any], baseline: str, schedules: Sequence[Schedule], patience: Patience
) -> dict[Schedule, _Use]:
    """Return how each schedule does in turn with a baseline, if it runs and patience reaches, in their order.

    A single schedule has no rival, and so is not timed.

    Raises:
        BaselineError: The baseline cannot compute the program.
    """
    calls = [capabilities.baseline_call(task, baseline, replay(task, one)) for one in schedules]
    found: dict[Schedule, list[Versus]] = {one: [] for one in schedules}  # of those that have not failed
    repeats = PLACINGS if len(calls) > 1 and not patience.over else 0
    for place in patience.turns(repeats, len(calls)):
        schedule = schedules[place]
        if schedule in found:
            try:
                found[schedule].append(bench.call(calls[place]))
            except BaselineError:
                raise
            except IrgymError:  # one that fails is out, as where costs are measured
                del found[schedule]
    return {
        one: _Use(
            geometric_mean(versus.ratio for versus in each), geometric_mean(versus.ours_ns for versus in each)
        )
        for one, each in found.items()
        if each
    }


def _ended(task: Task[Any], schedules: Sequence[Schedule]) -> list[Schedule]:
    """Return some schedules, and the empty one, under all other endings."""
    found: list[Schedule] = []
    for schedule in (*schedules, Schedule()):
        actions = schedule.actions
        if actions and task.space.stops[actions[-1].kind]:
            actions = actions[:-1]
        open_ended = Schedule(actions)
        found += [open_ended.then(one) for one in capabilities.endings(task, replay(task, open_ended))]
    return found


def _faster(bench: Bench, task: Task[Any], baseline: str, schedule: Schedule, patience: Patience) -> bool:
    """Say whether a schedule's program is faster than a baseline, timed in turn, beyond the noise.

    A program that is made ready once more may be some percent faster or slower than before, whatever its
    ratios in one comparison agree on: it must be faster in several, and in all of them together.
    """
    call = capabilities.baseline_call(task, baseline, replay(task, schedule))
    ratios: list[float] = []
    for _ in patience.rounds(ROUNDS):
        versus: Versus = bench.call(call)
        if versus.ratio <= 1.0:
            return False
        ratios += versus.ratios
    return geometric_interval(ratios).verdict is Verdict.FASTER


def _as_baseline(environment: Environment, task: Task[Any], baseline: str, ending: Action) -> Choice:
    """Return the program as written under the ending that makes it the baseline."""
    schedule = Schedule((ending,))
    [what] = [one.description for one in environment.baselines() if one.name == baseline]
    running = capabilities.running(task, replay(task, schedule))
    text = f"nothing faster than {what} was found; the result is the program as written, to be run with"
    return Choice(schedule, f"{text} {running}")
