"""Comparisons as tables for the terminal."""

from rich.console import Group
from rich.text import Text

from irgym.comparing.results import Comparison
from irgym.comparing.rows import RAW, Row
from irgym.comparing.summary import FLOOR, Summary
from irgym.core.objective import Objective
from irgym.judging.statistics import Interval
from irgym.judging.trials import ROUNDS
from irgym.judging.units import gain_word, verdict_word
from irgym.reporting.wide_table import WideTable

NO_GAIN = "*"
"""Marks programs for which nothing better was found."""


def table(comparison: Comparison) -> Group:
    """Return the comparison for people: each program and method, the summaries, and the conditions."""
    return Group(
        _programs(comparison),
        WideTable(
            "geometric means",
            headings(comparison),
            [summary_cells(comparison, line) for line in comparison.summary],
        ),
        *(
            WideTable(
                side_title(objective),
                side_headings(comparison, objective),
                [side_cells(comparison, line, objective) for line in comparison.summary],
            )
            for objective in comparison.also
        ),
        *_family_tables(comparison),
        Text(conditions(comparison), style="dim"),
    )


def conditions(comparison: Comparison) -> str:
    """Return in words what the numbers depend on and refer to."""
    settings = comparison.settings
    words = [f"{settings[name]:g} {name}" for name in ("seconds", "evaluations") if settings.get(name)]
    gains = gain_word(comparison.objective).capitalize() + "s"
    sentences = [
        f"Machine: {comparison.machine or 'not recorded'}.",
        f"Date: {settings.get('date', 'not recorded')}.",
        *([f"Budget of a search: {' or '.join(words)}."] if words and comparison.traces else []),
        f"Seed: {settings.get('seed', 'not recorded')}.",
        *([f"Costs are in {comparison.objective.unit}."] if comparison.objective.unit else []),
        f"{gains} are the original cost over the cost after the method; means are geometric, with 95 % "
        "intervals.",
        _checks(comparison),
    ]
    if comparison.baseline:
        runs_on = f" ({settings['baseline']})" if settings.get("baseline") else ""
        sentences.append(
            f"Ratios to {comparison.baseline}{runs_on} are medians of timings in turn; "
            "above 1, we are faster."
        )
    parts = [*sentences, *_references(comparison), *_sides(comparison), *_never_worse(comparison)]
    return " ".join(parts)


def _never_worse(comparison: Comparison) -> list[str]:
    """Return what an asterisk means, and what a policy is that is raw."""
    notes = dict.fromkeys(row.no_gain for row in comparison.rows if row.no_gain)
    raw = any(method.startswith(f"{RAW}:") for method in comparison.methods)
    return [
        *(f"{NO_GAIN}: {note}." for note in notes),
        *(["A raw policy's result is its final state, even where that is worse."] if raw else []),
    ]


def _checks(comparison: Comparison) -> str:
    """Return how results were checked and measured."""
    inputs = comparison.settings.get("validation_inputs", "?")
    checked = (
        "not validated" if inputs == 0 else f"checked on {inputs} random input{'' if inputs == 1 else 's'}"
    )
    costs = "their costs are exact" if comparison.objective.exact else "measured again"
    return f"Results were {checked}{';' if inputs == 0 else ' and'} {costs}."


def _references(comparison: Comparison) -> list[str]:
    """Return what the ratios to the reference pipeline mean, and what is left out of them."""
    name = comparison.reference
    if name is None:
        return []
    gaining = {row.program for row in comparison.rows if row.gain_ratio is not None}
    solved = {row.program for row in comparison.rows if row.cost is not None}
    left_out = (
        f" {len(solved - gaining)} of {len(solved)} programs are left out: there {name} reduces nothing."
        if solved - gaining
        else ""
    )
    return [
        f"The ratio to {name} is the cost after the default schedule {name} over ours.",
        f"The gain ratio is (original cost - ours) / (original cost - {name}'s), as in arXiv 2308.14364; "
        f"in means, less than {FLOOR:g} counts as {FLOOR:g}.{left_out}",
    ]


def _sides(comparison: Comparison) -> list[str]:
    """Return how other objectives were measured."""
    if not comparison.also:
        return []
    names = " and ".join(objective.name for objective in comparison.also)
    return [
        f"For the same schedules, {names} are the least of {ROUNDS} measurements; the original program and "
        "the reference were measured once for each program."
    ]


def _programs(comparison: Comparison) -> WideTable:
    """Return a line for each program and a column for each method; below, the reasons of failures."""
    cells = {(row.program, row.method): row for row in comparison.rows}
    validates = comparison.settings.get("validation_inputs") != 0
    blind = {row.program for row in comparison.rows if row.not_checkable}
    rows: list[list[str]] = []
    for program in comparison.programs:
        mark = " (not checkable)" if program in blind else "" if validates else " (not validated)"
        rows.append([program + mark, *(cell(cells.get((program, name))) for name in comparison.methods)])
    title = f"{gain_word(comparison.objective)} over the original program{_beside(comparison)}"
    return WideTable(title, ["program", *comparison.methods], rows, "\n".join(failures(comparison)))


def _beside(comparison: Comparison) -> str:
    """Return what the second number of a cell is."""
    if comparison.baseline:
        return f", and ratio to {comparison.baseline}"
    return f", and gain ratio to {comparison.reference}" if comparison.reference else ""


def failures(comparison: Comparison) -> list[str]:
    """Return a line with the reason for each failure, and each program not checkable or without a ratio."""
    failed = [
        f"{row.method} failed on {row.program}: {row.detail}" for row in comparison.rows if row.cost is None
    ]
    unchecked = [
        f"{row.program} is not checkable: {row.not_checkable}" for row in comparison.rows if row.not_checkable
    ]
    no_baseline = [
        f"no ratio to {comparison.baseline} on {row.program}: {row.detail}"
        for row in comparison.rows
        if comparison.baseline and row.cost is not None and row.mean_ratio is None
    ]
    return [*failed, *dict.fromkeys([*unchecked, *no_baseline])]


def cell(row: Row | None) -> str:
    """Return what a method comes to on a program: what it gains, and its ratio to the baseline if any."""
    if row is None:
        return ""
    if row.cost is None:
        return "failed"
    speedup = "-" if row.speedup is None else f"{row.speedup:.2f}x"
    beside = row.ratio_text or ("" if row.gain_ratio is None else f"{row.gain_ratio:.2f}")
    mark = NO_GAIN if row.no_gain else ""
    return f"{speedup}{mark}  {beside}" if beside else speedup + mark


def ratio_headings(comparison: Comparison) -> list[str]:
    """Return the columns of the ratios to the baseline and to the reference pipeline."""
    baseline, reference = comparison.baseline, comparison.reference
    return [
        *([f"ratio to {baseline}"] if baseline else []),
        *([f"ratio to {reference}", "gain ratio"] if reference else []),
    ]


def headings(comparison: Comparison) -> list[str]:
    """Return the columns of the summary."""
    gain = gain_word(comparison.objective)
    judged = f"against {comparison.baseline or comparison.reference or 'the original'}"
    return ["method", "programs", gain, *ratio_headings(comparison), judged, "against the best", "seconds"]


def summary_cells(comparison: Comparison, line: Summary) -> list[str]:
    """Return a line of the summary."""
    reference = [interval_text(line.reference_ratio), interval_text(line.gain_ratio)]
    apart = [
        *([f"{line.failed} failed"] if line.failed else []),
        *([f"{line.no_gain}{NO_GAIN}"] if line.no_gain else []),
    ]
    return [
        line.method,
        str(line.programs) + (f" ({', '.join(apart)})" if apart else ""),
        interval_text(line.speedup, "x"),
        *([interval_text(line.baseline_ratio)] if comparison.baseline else []),
        *(reference if comparison.reference else []),
        _judgement(comparison, line),
        _against_best(comparison, line),
        "-" if line.seconds is None else f"{line.seconds:.3g}",
    ]


def side_title(objective: Objective) -> str:
    """Return the title of the summary under another objective."""
    return f"{objective.name} of the same schedules, geometric means"


def side_headings(comparison: Comparison, objective: Objective) -> list[str]:
    """Return the columns of the summary under another objective."""
    ratio = [f"ratio to {comparison.reference}"] if comparison.reference else []
    return ["method", "programs", gain_word(objective), *ratio]


def side_cells(comparison: Comparison, line: Summary, objective: Objective) -> list[str]:
    """Return a line of the summary under another objective."""
    side = line.also.get(objective.name)
    ratio = [interval_text(side.reference_ratio if side else None)] if comparison.reference else []
    gains = side.speedup if side else None
    return [line.method, str(gains.n if gains else 0), interval_text(gains, "x"), *ratio]


def families(comparison: Comparison) -> list[str]:
    """Return the families of the programs that have results, in alphabetical order."""
    return sorted({family for line in comparison.summary for family in line.families})


def family_title(comparison: Comparison) -> str:
    """Return the title of the table by family."""
    what = "gain ratio" if comparison.reference else gain_word(comparison.objective)
    return f"{what} by family, geometric means"


def family_cells(comparison: Comparison, family: str) -> list[str]:
    """Return a family's line: its name with the number of its programs, and the mean of each method."""
    count = len({row.program for row in comparison.rows if row.family == family})
    means = [interval_text(line.families.get(family)) for line in comparison.summary]
    return [f"{family} ({count})", *means]


def _family_tables(comparison: Comparison) -> list[WideTable]:
    names = families(comparison)
    if not names:
        return []
    cells = [family_cells(comparison, name) for name in names]
    return [WideTable(family_title(comparison), ["family", *comparison.methods], cells)]


def interval_text(interval: Interval | None, unit: str = "") -> str:
    """Return a mean and its interval; the mean alone where a single value bounds nothing."""
    if interval is None:
        return "-"
    text = f"{interval.mean:.2f}{unit}"
    return text if interval.n < 2 else f"{text} [{interval.low:.2f}, {interval.high:.2f}]"


def _judgement(comparison: Comparison, line: Summary) -> str:
    """Return what a method comes to: how often it is better where costs are exact, else a verdict."""
    if line.record is None or line.verdict is None:
        return "-"
    if comparison.objective.exact:
        counts = zip(line.record, ("better", "equal", "worse"), strict=True)
        return ", ".join(f"{count} {word}" for count, word in counts if count)
    return verdict_word(line.verdict, comparison.objective)


def _against_best(comparison: Comparison, line: Summary) -> str:
    """Return how near a method comes to the best: on how many programs it is that, where costs are exact."""
    interval = line.to_best
    if interval is None:
        return "-"
    if comparison.objective.exact:
        return f"best on {line.best_on}"
    if interval.low == interval.high == 1.0 or (interval.n < 2 and interval.mean == 1.0):
        return "best"
    return "tie" if interval.verdict.value == "tie" else interval_text(interval)
