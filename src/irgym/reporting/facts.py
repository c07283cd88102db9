"""Text lines that describe a result, for the terminal and the report."""

from irgym.core import capabilities
from irgym.core.catalogue import takers
from irgym.core.cost import Validation
from irgym.judging.original import Original
from irgym.judging.result import Tuned
from irgym.judging.units import cost_text, gain_word
from irgym.reporting.pictures import counts


def facts_of(result: Tuned) -> list[tuple[str, str]]:
    """Return the lines of the result: what is said, and what about it."""
    change = change_text(result)
    cost, written = (cost_text(value, result.objective) for value in (result.cost, result.cost_as_written))
    mean = ", the mean of a call at the sizes below" if result.versus and result.versus.at else ""
    facts = [
        (result.objective.name, f"{cost} (original: {written}){mean}"),
        (gain_word(result.objective), f"{result.speedup:.2f}x over the original program"),
    ]
    if result.original is not None:
        facts.insert(0, ("taken by", choice_text(result.original)))
    if change is not None:
        facts.append(change)
    if result.reference is not None:
        facts.append((result.reference.name, _reference_text(result)))
    if result.peak is not None:
        facts.append(
            (
                "throughput",
                f"{result.gflops:.1f} GFLOP/s, {result.peak_share:.0%} of the core's peak timed in turn "
                f"({result.peak.detail}; median of {len(result.peak.ratios)} rounds)",
            )
        )
    if result.versus is not None and result.baseline_ratio:
        verdict = "faster" if result.baseline_ratio > 1 else "slower"
        factor = max(result.baseline_ratio, 1 / result.baseline_ratio)
        rounds = f"median of {len(result.versus.ratios)} rounds"
        facts.append(("baseline", f"{factor:.2f}x {verdict} than {result.versus.detail}; {rounds}"))
    facts += _at_sizes(result)
    if result.versus is not None and result.baseline_noise is not None:
        low, high = result.baseline_noise
        noise = f"timings of the two in turn differ by noise alone, {low:.2f} to {high:.2f}"
        facts.append(("baseline", f"the baseline itself: {result.versus.detail}; {noise}"))
    if result.versus is None and result.is_baseline:
        facts.append(("baseline", f"the baseline itself: {result.baseline}"))
    if result.no_baseline:
        facts.append(("baseline", f"none: {result.no_baseline}"))
    facts += _fixed_text(result)
    if result.no_gain:
        facts.append(("no gain", result.no_gain))
    if result.running:
        facts.append(("session", result.running))
    facts.append(("validated", _validation_text(result)))
    if result.interrupted:
        facts.append(("interrupted", result.interrupted))
    if result.left_out:
        facts.append(("left out", f"no check could see the effect of {', '.join(result.left_out)}"))
    facts += [("rejected", f"a program that costs less: {reason}") for reason in result.rejected]
    if result.search is not None:
        search = result.search
        proven = "; these are all: none is better" if search.complete else ""
        found = f"{search.evaluations} candidates in {search.seconds:.1f} s{proven}"
        facts.append(("search", f"{search.label}: {found}"))
    if result.checks is not None:
        took = f"{result.checks.seconds:.1f} s, of at most {result.checks.bound_s:.0f} s"
        facts.append(("checks", f"measuring again, validation, comparison: {took}"))
    return [*facts, ("machine", f"{result.machine}; {result.date}")]


def choice_text(original: Original) -> str:
    """Return which environment took an object and why, and which others could."""
    chosen = original.environment
    first, *others = takers(chosen)
    if chosen.name != first:
        return f"{chosen.name}, as named ({chosen.summary}); {first} takes {chosen.accepts} by default"
    also = f"; {' or '.join(others)} takes it too, named as the environment" if others else ""
    return f"{chosen.name}, the first that takes {chosen.accepts} ({chosen.summary}){also}"


def change_text(result: Tuned) -> tuple[str, str] | None:
    """Return what boxes stand for, and how many there were and are of each label; None without pictures."""
    before = capabilities.drawing(result.task, result.task.initial())
    after = capabilities.drawing(result.task, result.state)
    if before is None or after is None:
        return None
    changes = [f"{label} {first} -> {second}" for label, first, second in counts(before, after)]
    return before.parts, ", ".join(changes) or "as many of each kind as before"


def _at_sizes(result: Tuned) -> list[tuple[str, str]]:
    """Return a line for each size, if the program was timed at several."""
    facts: list[tuple[str, str]] = []
    for timed in result.versus.at if result.versus else ():
        ours, theirs = (cost_text(time, result.objective) for time in (timed.ours_ns, timed.baseline_ns))
        against = "" if result.is_baseline else f", the baseline {theirs}; {timed.ratio:.2f}x over it"
        facts.append((f"at {timed.sizes}", f"{ours}{against}; {100 * timed.share:.3g} % of the calls"))
    return facts


def _fixed_text(result: Tuned) -> list[tuple[str, str]]:
    """Return a line on the result that is fixed to one size, or on why there is none."""
    fixed = result.fixed
    if fixed is None:
        return [("fixed size", f"no result: {result.no_fixed}")] if result.no_fixed else []
    gain = f"{fixed.versus.ratio:.2f}x faster than this result; median of {len(fixed.versus.ratios)} rounds"
    over = fixed.result.baseline_ratio
    against = "" if over is None else f"; {over:.2f}x over {fixed.result.baseline} of the model fixed to them"
    return [
        ("fixed size", f"another result for {fixed.sizes} alone: {gain}{against}; {fixed.result.running}")
    ]


def _reference_text(result: Tuned) -> str:
    """Return how a result compares with the default schedule."""
    assert result.reference is not None
    cost = cost_text(result.reference.cost, result.objective)
    text = f"{cost} by default; ratio to it {result.reference_ratio:.3f}"
    if result.gain_ratio is None:
        return f"{text}; the default reduces nothing"
    return f"{text}; reduction relative to the default's {result.gain_ratio:.3f} (arXiv 2308.14364)"


def _validation_text(result: Tuned) -> str:
    checked = result.validation
    return "no" if checked is None else "; ".join([_comparison_text(checked), *checked.notes])


def _comparison_text(checked: Validation) -> str:
    if not checked.inputs:
        return f"not checkable: {checked.blind or 'nothing was run'}"
    inputs = "1 input" if checked.inputs == 1 else f"{checked.inputs} inputs"
    if checked.blind:
        return f"not checkable on {inputs}: results agree, but {checked.blind}"
    return f"yes: {inputs}, greatest error {checked.error:.0%} of what is allowed ({checked.tolerance})"
