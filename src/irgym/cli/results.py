"""How `tune` and `replay` show a result, and where they write it."""

import time
from pathlib import Path
from typing import Self

from rich.table import Table
from rich.text import Text

from irgym.cli.output import Output, console, write_json_to
from irgym.core.capabilities import Drawn, ask
from irgym.judging.gains import gain_cells, gain_headings
from irgym.judging.parts import TunedParts
from irgym.judging.result import Tuned
from irgym.judging.units import cost_text
from irgym.reporting.facts import facts_of
from irgym.reporting.result_page import write_result_page
from irgym.reporting.trees import write_tree
from irgym.reporting.wide_table import WideTable
from irgym.search.choosing import label
from irgym.search.tree import SearchTree

SELDOM = 20
"""How many times as long as writing files took they are not written again."""


def show(result: Tuned, json: Path | None, export: Path | None, report: Path | None) -> None:
    """Print a result, and write it to files, if wanted.

    Args:
        result: What to show.
        json: File for the JSON; None for none.
        export: File for the program, whose suffix chooses the form; None for none. A result that is fixed to
            one size goes beside it, `.fixed` before the suffix.
        report: File for the page; None for none.

    Raises:
        IrgymError: The program cannot be exported so.
        StorageError: A file cannot be written.
    """
    print_tuned(console(), result)
    write_json_to(json, result.to_json())
    files = result.export(export) if export else []
    if export and result.fixed is not None:
        files += result.fixed.result.export(export.with_name(f"{export.stem}.fixed{export.suffix}"))
    for file in files:
        print(f"written: {file}")
    if report is not None:
        write_result_page(result, report)
        print(f"written: {report}")


def write_trace(tree: SearchTree, result: Tuned, path: Path) -> None:
    """Write the tree that the search of a result walked.

    Raises:
        StorageError: The file cannot be written.
    """
    search = "" if result.search is None else f", {label(result.search.name, result.search.policy)}"
    write_tree(tree, result.task, path, f"{result.task.uri}{search}")
    print(f"written: {path}")


class PartsFiles:
    """Files with what the parts of a program come to, written while more parts are tuned.

    Leaving it writes what is not written yet, whatever ends the run.

    Args:
        json: File for the JSON; None for none.
        export: File for the whole, whose suffix chooses the form; None for none.

    Attributes:
        written: The files written.
    """

    def __init__(self, json: Path | None, export: Path | None) -> None:
        self.written: list[Path] = []
        self._json = json
        self._export = export
        self._waiting: TunedParts | None = None
        self._next = 0.0

    def __enter__(self) -> Self:
        """Write files until this is left."""
        return self

    def __exit__(self, *_: object) -> None:
        """Write what is not written yet."""
        self._write()

    def update(self, result: TunedParts) -> None:
        """Take what was found so far, and write it, unless writing took long a moment ago.

        Raises:
            IrgymError: The whole cannot be exported so.
            StorageError: A file cannot be written.
        """
        self._waiting = result
        started = time.monotonic()
        if started >= self._next:
            self._write()
            self._next = started + SELDOM * (time.monotonic() - started)

    def _write(self) -> None:
        if self._waiting is not None:
            write_json_to(self._json, self._waiting.to_json())
            self.written = self._waiting.export(self._export) if self._export else []
            self._waiting = None


def show_parts(result: TunedParts, files: PartsFiles) -> None:
    """Print the results of the parts of a program, and the files written."""
    out = console()
    out.print(result.program, style="bold")
    if result.results:
        out.print(_parts_table(result))
        for part in result.results:
            out.print(f"{_part_of(part, result)}: {part.schedule or '(none)'}")
    for uri, why in result.failures.items():
        out.print(f"{uri} left out: {why}")
    for what, mean in (("the original program", result.speedup), ("the default", result.reference_ratio)):
        if mean is not None:
            out.print(f"geometric mean over {what}: {mean.mean:.4f}x, of {mean.n}")
    out.print(f"{result.proven} of {len(result.results)} are proven to be the best")
    for file in files.written:
        print(f"written: {file}")


def _parts_table(whole: TunedParts) -> WideTable:
    reference = next((part.reference.name for part in whole.results if part.reference), "default")
    costs = ("original", reference, "tuned", "over original", f"over {reference}")
    rows = [
        [
            _part_of(part, whole),
            cost_text(part.cost_as_written, part.objective),
            "" if part.reference is None else cost_text(part.reference.cost, part.objective),
            cost_text(part.cost, part.objective),
            f"{part.speedup:.3f}x",
            "" if part.reference_ratio is None else f"{part.reference_ratio:.3f}x",
            "yes" if part.validated else "not checkable" if part.validation and part.validation.ok else "NO",
        ]
        for part in whole.results
    ]
    return WideTable("", ["part", *costs, "validated"], rows)


def _part_of(part: Tuned, whole: TunedParts) -> str:
    return part.program.removeprefix(whole.program).lstrip("#")


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
