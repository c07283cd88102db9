"""The result of checks that an interrupt ended: the best that is validated so far, or the original."""

import math
from dataclasses import replace

from irgym.base.errors import IrgymError
from irgym.core import capabilities
from irgym.core.schedule import Candidate
from irgym.judging.finding import Finding
from irgym.judging.judge import Judge
from irgym.search.result import SearchResult

KEPT = "interrupted before anything better was validated, so the original program is kept"
"""Sentence for the user if the result is the original program."""


def best_so_far(judge: Judge, found: SearchResult) -> Finding:
    """Return the best finding that a judge has validated, or else the original program, not validated.

    A finding must cost less than the original program, and be no slower than the baseline, as far as that is
    known. The original program runs as the baseline does, where an ending makes it the baseline. It is
    measured only if its cost is not known.

    Args:
        judge: The judge that was interrupted.
        found: What it judged.

    Raises:
        IrgymError: The original program no longer runs.
    """
    so_far = judge.so_far
    interrupted = f"while {so_far.doing}: this and the checks after it were left out"
    if so_far.best is not None:
        return replace(so_far.best, interrupted=interrupted)
    first_cost = _original_cost(judge, found)
    fallback = _fallback(judge, first_cost)
    findings = [
        replace(finding, cost_as_written=min(finding.cost_as_written, first_cost))
        if math.isinf(finding.cost_as_written)
        else finding
        for finding in so_far.visible
    ]
    better = [finding for finding in findings if not finding.no_gain and _is_better(finding, fallback)]
    best = min(better, key=lambda finding: finding.cost, default=fallback)
    untimed = best.baseline is not None and best.versus is None and not best.is_baseline
    if untimed and not best.no_baseline:
        why = f"the checks were interrupted before it was timed in turn with {best.baseline}"
        best = replace(best, no_baseline=why)
    return replace(
        best,
        interrupted=interrupted,
        left_out=so_far.left_out,
        rejected=tuple(so_far.rejected.values()),
    )


def _is_better(finding: Finding, fallback: Finding) -> bool:
    """Say whether a validated program is better than the original, as far as that is known."""
    if not finding.improved or not math.isfinite(finding.cost):
        return False
    if finding.versus is not None and fallback.is_baseline:
        return finding.versus.ratio >= 1.0
    return finding.cost <= fallback.cost


def _original_cost(judge: Judge, found: SearchResult) -> float:
    """Return the cost of the original program; infinite if it does not run."""
    least = min(judge.trials.least(judge.original.state), found.first_cost)
    if math.isfinite(least):
        return least
    measurement = judge.trials.measure(judge.original.state)
    return measurement.cost if measurement.ok else math.inf


def _fallback(judge: Judge, first_cost: float) -> Finding:
    """Return the original program, run as the baseline runs it if it can be and was not rejected.

    Raises:
        IrgymError: It does not run.
    """
    itself = judge.baseline_itself if judge.task.objective.timed else None
    if itself is not None and judge.task.key(itself.state) not in judge.so_far.rejected:
        cost = judge.trials.least(itself.state)
        if math.isinf(cost):
            measurement = judge.trials.measure(itself.state)
            cost = measurement.cost if measurement.ok else math.inf
        if math.isfinite(cost):
            return _unchanged(judge, itself, cost, first_cost)
    if math.isinf(first_cost):
        raise IrgymError(f"{judge.task.uri} no longer runs: check its file, and try again")
    return _unchanged(judge, judge.original, first_cost, first_cost)


def _unchanged(judge: Judge, candidate: Candidate, cost: float, first_cost: float) -> Finding:
    """Return the finding of the original program, and what is validated of it."""
    running = capabilities.running(judge.task, candidate.state)
    no_gain = f"{KEPT}, to be run with {running}" if running else KEPT
    known = judge.so_far.findings.get(judge.task.key(candidate.state))
    if known is not None:
        costs = (known.cost, known.cost_as_written) if math.isfinite(known.cost) else (cost, first_cost)
        written = costs[1] if math.isfinite(costs[1]) else first_cost
        return replace(known, cost=costs[0], cost_as_written=written, no_gain=known.no_gain or no_gain)
    baseline = judge.environment.reference_baseline if judge.task.objective.timed else None
    return Finding(
        actions=candidate.schedule,
        state=candidate.state,
        cost=cost,
        cost_as_written=first_cost,
        validation=None,
        baseline=baseline,
        versus=None,
        running=running,
        no_gain=no_gain,
        is_baseline=judge.baseline_itself is not None and judge.same(candidate, judge.baseline_itself),
    )
