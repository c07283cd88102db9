"""How `tune` and `replay` show a result, and where they write it."""

from pathlib import Path

from rich.table import Table
from rich.text import Text

from irgym.cli.output import Output, console, write_json_to
from irgym.core.capabilities import Drawn, ask
from irgym.evaluation.facts import facts_of
from irgym.evaluation.gains import gain_cells, gain_headings
from irgym.evaluation.parts import TunedParts
from irgym.evaluation.result_page import write_result_page
from irgym.evaluation.tuned import Tuned
from irgym.evaluation.units import cost_text


def show(result: Tuned, json: Path | None, export: Path | None, report: Path | None) -> None:
    """Print a result, and write it to files, if wanted.

    Args:
        result: What to show.
        json: File for the JSON; None for none.
        export: File for the program, whose suffix chooses the form; None for none.
        report: File for the page; None for none.

    Raises:
        IrgymError: The program cannot be exported so.
        StorageError: A file cannot be written.
    """
    print_tuned(console(), result)
    write_json_to(json, result.to_json())
    for file in result.export(export) if export else ():
        print(f"written: {file}")
    if report is not None:
        write_result_page(result, report)
        print(f"written: {report}")


def show_parts(result: TunedParts, json: Path | None, export: Path | None) -> None:
    """Print what the parts of a program come to, and write it to files, if wanted.

    Args:
        result: What to show.
        json: File for the JSON; None for none.
        export: File for the whole, whose suffix chooses the form; None for none.

    Raises:
        IrgymError: The whole cannot be exported so.
        StorageError: A file cannot be written.
    """
    out = console()
    out.print(result.program, style="bold")
    if result.results:
        out.print(_parts_table(result))
    for uri, why in result.failures.items():
        out.print(f"{uri} left out: {why}")
    for what, mean in (("the program as written", result.speedup), ("the default", result.reference_ratio)):
        if mean is not None:
            out.print(f"geometric mean over {what}: {mean.mean:.4f}x, of {mean.n}")
    out.print(f"{result.proven} of {len(result.results)} are proven to be the best")
    write_json_to(json, result.to_json())
    for file in result.export(export) if export else ():
        print(f"written: {file}")


def _parts_table(result: TunedParts) -> Table:
    reference = next((one.reference.name for one in result.results if one.reference), "default")
    table = Table("part")
    for column in ("as written", reference, "tuned", "over as written", f"over {reference}"):
        table.add_column(column, justify="right")
    table.add_column("validated")
    table.add_column("schedule", overflow="ellipsis", no_wrap=True)
    for one in result.results:
        default = "" if one.reference is None else cost_text(one.reference.cost, one.objective)
        ratio = "" if one.reference_ratio is None else f"{one.reference_ratio:.3f}x"
        table.add_row(
            one.program.removeprefix(result.program).lstrip("#"),
            cost_text(one.cost_as_written, one.objective),
            default,
            cost_text(one.cost, one.objective),
            f"{one.speedup:.3f}x",
            ratio,
            "yes" if one.validated else "not checkable" if one.validation and one.validation.ok else "NO",
            one.schedule or "(none)",
        )
    return table


def print_tuned(out: Output, result: Tuned) -> None:
    """Print a result for people."""
    out.print(result.program, style="bold")
    out.print(Text.assemble("schedule: ", (result.schedule or "(none)", "bold")))
    if ask(result.task, Drawn) is None:
        out.print(result.program_after)
    if result.steps:
        out.print(_step_table(result))
    table = Table(show_header=False)
    for name, value in facts_of(result):
        table.add_row(name, value)
    out.print(table)


def _step_table(result: Tuned) -> Table:
    """Return what each group of actions gains."""
    first, *others = gain_headings(result.objective)
    table = Table(first)
    for column in others:
        table.add_column(column, justify="right")
    for cells in gain_cells(result.steps, result.objective):
        table.add_row(*cells)
    return table
