"""How `tune` and `replay` show a result, and where they write it."""

from pathlib import Path

from rich.table import Table
from rich.text import Text

from irgym.cli.output import Output, console, write_json_to
from irgym.evaluation.tuned import Tuned
from irgym.evaluation.units import cost_text, gain_word


def show(result: Tuned, json: Path | None, export: Path | None) -> None:
    """Print a result; write it as JSON, and the program in a form that its file's suffix chooses, if wanted.

    Raises:
        IrgymError: The program cannot be exported so.
        StorageError: A file cannot be written.
    """
    print_tuned(console(), result)
    write_json_to(json, result.to_json())
    for file in result.export(export) if export else ():
        print(f"written: {file}")


def print_tuned(out: Output, result: Tuned) -> None:
    """Print a result for people."""
    out.print(result.program, style="bold")
    out.print(Text.assemble("schedule: ", (result.schedule or "(none)", "bold")))
    out.print(result.program_after)
    if result.running:
        out.print(Text.assemble("session: ", (result.running, "bold")))
    if result.steps:
        out.print(_step_table(result))
    table = Table(show_header=False)
    for name, value in _facts(result):
        table.add_row(name, value)
    out.print(table)


def _step_table(result: Tuned) -> Table:
    """Return what each action gains, and its share of the whole gain."""
    table = Table("action")
    for column in (result.objective.name, "gain", "share"):
        table.add_column(column, justify="right")
    whole = sum(step.gain for step in result.steps)
    for step in result.steps:
        share = f"{step.gain / whole:.1%}" if whole > 0 else "-"
        cost, gain = (cost_text(value, result.objective) for value in (step.cost, step.gain))
        table.add_row(step.action, cost, gain, share)
    return table


def _facts(result: Tuned) -> list[tuple[str, str]]:
    """Return the lines of the result: what is said, and what about it."""
    cost, written = (cost_text(value, result.objective) for value in (result.cost, result.cost_as_written))
    facts = [
        (result.objective.name, f"{cost} (as written: {written})"),
        (gain_word(result.objective), f"{result.speedup:.2f}x over the program as written"),
    ]
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
    if result.no_baseline:
        facts.append(("baseline", f"none: {result.no_baseline}"))
    if result.no_gain:
        facts.append(("no gain", result.no_gain))
    facts.append(("validated", _validation_text(result)))
    if result.search is not None:
        search = result.search
        facts.append(("search", f"{search.label}: {search.evaluations} candidates in {search.seconds:.1f} s"))
    return [*facts, ("machine", f"{result.machine}; {result.date}")]


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
    if checked is None:
        return "no"
    if not checked.inputs:
        return f"yes: {checked.tolerance}"
    inputs = "1 input" if checked.inputs == 1 else f"{checked.inputs} inputs"
    if checked.blind:
        return f"not checkable on {inputs}: results agree, but {checked.blind}"
    return f"yes: {inputs}, greatest error {checked.error:.0%} of what is allowed ({checked.tolerance})"
