"""The page of one result: what was done, what it gained, and the program before and after."""

from html import escape
from pathlib import Path

from irgym.base.files import write_file
from irgym.core import capabilities
from irgym.judging.gains import gain_cells, gain_headings
from irgym.judging.result import Tuned
from irgym.reporting import html, listings, pictures
from irgym.reporting.facts import facts_of


def write_result_page(result: Tuned, out: Path) -> None:
    """Write the page of a result: one HTML file that needs nothing else, neither network nor scripts.

    Args:
        result: What `irgym.tune` or `irgym.replay` returned.
        out: File to write.

    Raises:
        StorageError: The file cannot be written.
        IrgymError: The program cannot be made into one of its texts.
    """
    sections = [("result", "Result", _result(result))]
    if result.steps:
        sections.append(("gains", "Gains", _gains(result)))
    sections.append(("program", "The program", _program(result)))
    write_file(out, html.page(f"irgym: {result.program}", sections).encode())


def _result(result: Tuned) -> str:
    actions = f"<pre>{escape(result.schedule.replace(' ', chr(10)) or '(none)')}</pre>"
    count = len(result.actions)
    words = f"The schedule: {count} action{'' if count == 1 else 's'}"
    return html.table((), facts_of(result), frozenset({0, 1})) + html.folded(words, actions)


def _gains(result: Tuned) -> str:
    rows = gain_cells(result.steps, result.objective)
    table = html.table(gain_headings(result.objective), rows, frozenset({0}))
    if not result.objective.timed:
        return table
    return (
        html.paragraph(
            "The programs before and after each group of rewrites, timed in turn: medians of the rounds. A "
            "gain is noise where the rounds do not tell it from none, with 95 % confidence. Some rewrites "
            "pay only together with later ones."
        )
        + table
    )


def _program(result: Tuned) -> str:
    text = f"<pre>{escape(result.program_after)}</pre>"
    listed = capabilities.ask(result.task, capabilities.Listed)
    if listed is not None:
        first, last = listed.listings(result.task.initial()), listed.listings(result.state)
        return text + "".join(listings.side_by_side(name, first[name], last[name]) for name in last)
    before = capabilities.drawing(result.task, result.task.initial())
    after = capabilities.drawing(result.task, result.state)
    if before is None or after is None:
        return text
    counts = [[label, str(first), str(second)] for label, first, second in pictures.counts(before, after)]
    table = html.table([before.parts, "before", "after"], counts, frozenset({0})) if counts else ""
    return pictures.side_by_side(before, after) + table + html.folded("The program after it, as text", text)
