"""Comparisons as tables for the terminal."""

from rich.console import Group
from rich.table import Table
from rich.text import Text

from irgym.evaluate.results import Comparison, Row, Summary
from irgym.evaluate.statistics import Interval


def table(comparison: Comparison) -> Group:
    """Return the comparison for people: each program and method, the summary, and what it was measured on."""
    return Group(_programs(comparison), _summary(comparison), Text(conditions(comparison), style="dim"))


def conditions(comparison: Comparison) -> str:
    """Return in words what the numbers depend on and refer to."""
    settings = comparison.settings
    words = [f"{settings[name]:g} {name}" for name in ("seconds", "evaluations") if settings.get(name)]
    sentences = [
        f"Machine: {comparison.machine or 'not recorded'}.",
        f"Date: {settings.get('date', 'not recorded')}.",
        *([f"Budget of a search: {' or '.join(words)}."] if words and comparison.traces else []),
        f"Seed: {settings.get('seed', 'not recorded')}.",
        "Speedups refer to the program as written; means are geometric, with 95 % confidence intervals.",
        f"Results were checked on {settings.get('validation_inputs', '?')} random inputs and measured anew.",
    ]
    if comparison.peer:
        runs_on = f" ({settings['peer']})" if settings.get("peer") else ""
        sentences.append(
            f"Ratios to {comparison.peer}{runs_on} are medians of timings in turn; above 1, we are faster."
        )
    return " ".join(sentences)


def _programs(comparison: Comparison) -> Table:
    """Return a line for each program and a column for each method; below, the reasons of failures."""
    result = Table(
        title=f"speedup over the program as written{_times(comparison)}",
        caption=Text("\n".join(failures(comparison))),
        caption_justify="left",
    )
    result.add_column("program", no_wrap=True)
    for method in comparison.methods:
        result.add_column(Text(method), justify="right")
    cells = {(row.program, row.method): row for row in comparison.rows}
    for program in comparison.programs:
        rows = [cells.get((program, method)) for method in comparison.methods]
        result.add_row(Text(program), *(_cell(row) for row in rows))
    return result


def _times(comparison: Comparison) -> str:
    return f", and ratio to {comparison.peer}" if comparison.peer else ""


def failures(comparison: Comparison) -> list[str]:
    """Return a line for each failure, with its reason."""
    return [
        f"{row.method} failed on {row.program}: {row.detail}"
        for row in comparison.rows
        if row.cost_ns is None
    ]


def _cell(row: Row | None) -> str:
    if row is None:
        return ""
    if row.cost_ns is None:
        return "failed"
    speedup = "-" if row.speedup is None else f"{row.speedup:.2f}x"
    return speedup if row.peer_ratio is None else f"{speedup}  {row.peer_ratio:.2f}"


def _summary(comparison: Comparison) -> Table:
    result = Table(title="geometric means")
    for column in headings(comparison):
        result.add_column(column, justify="left" if column == "method" else "right")
    for line in comparison.summary:
        result.add_row(*map(Text, summary_cells(comparison, line)))
    return result


def headings(comparison: Comparison) -> list[str]:
    """Return the columns of the summary."""
    ratio = [f"ratio to {comparison.peer}", "verdict"] if comparison.peer else ["verdict"]
    return ["method", "programs", "speedup", *ratio, "against the best", "seconds"]


def summary_cells(comparison: Comparison, line: Summary) -> list[str]:
    """Return a line of the summary."""
    verdict = line.verdict.value if line.verdict else "-"
    return [
        line.method,
        str(line.programs) + (f" ({line.failed} failed)" if line.failed else ""),
        interval_text(line.speedup, "x"),
        *([interval_text(line.peer_ratio)] if comparison.peer else []),
        verdict,
        _against_best(line.to_best),
        "-" if line.seconds is None else f"{line.seconds:.3g}",
    ]


def interval_text(interval: Interval | None, unit: str = "") -> str:
    """Return a mean and its interval; the mean alone where a single value bounds nothing."""
    if interval is None:
        return "-"
    text = f"{interval.mean:.2f}{unit}"
    return text if interval.n < 2 else f"{text} [{interval.low:.2f}, {interval.high:.2f}]"


def _against_best(interval: Interval | None) -> str:
    """Return how near a method comes to the best: ties are called ties."""
    if interval is None:
        return "-"
    if interval.low == interval.high == 1.0 or (interval.n < 2 and interval.mean == 1.0):
        return "best"
    return "tie" if interval.verdict.value == "tie" else interval_text(interval)
