"""Pieces of the report's page. Every text that comes from outside is escaped here."""

from collections.abc import Sequence
from html import escape
from importlib.resources import files

from irgym.comparing.results import Comparison
from irgym.comparing.rows import Row
from irgym.comparing.steps import Step
from irgym.core.objective import Objective
from irgym.judging.units import cost_text, gain_word
from irgym.reporting import tables
from irgym.reporting.plots import short_name


def page(title: str, sections: Sequence[tuple[str, str, str]]) -> str:
    """Return a page that needs nothing else: the style sheets are in it.

    Args:
        title: Plain text.
        sections: Of each its anchor, its heading as plain text, and its content in HTML.
    """
    folder = files("irgym.reporting")
    style = "".join(folder.joinpath(name).read_text() for name in ("report.css", "picture.css"))
    title = escape(title)
    links = "".join(f'<a href="#{anchor}">{escape(heading)}</a>' for anchor, heading, _ in sections)
    body = "".join(
        f'<section id="{anchor}"><h2>{escape(heading)}</h2>{content}</section>'
        for anchor, heading, content in sections
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{style}</style></head>"
        f"<body><h1>{title}</h1><nav>{links}</nav>{body}</body></html>\n"
    )


def paragraph(text: str) -> str:
    """Return a paragraph of plain text."""
    return f"<p>{escape(text)}</p>"


def folded(summary: str, content: str) -> str:
    """Return content that the reader unfolds; the summary is plain text."""
    return f"<details><summary>{escape(summary)}</summary>{content}</details>"


def figure(svg: str) -> str:
    """Return a figure around an SVG element."""
    return f"<figure>{svg}</figure>"


def count(value: int) -> str:
    """Return a whole number with thin spaces between thousands."""
    return f"{value:,}".replace(",", "\u2009")


def duration(seconds: float) -> str:
    """Return a time span with a fitting unit."""
    if seconds >= 5400:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.1f} min" if seconds >= 90 else f"{seconds:.3g} s"


def cost(value: float | None, objective: Objective) -> str:
    """Return a cost with a fitting unit."""
    return "failed" if value is None else cost_text(value, objective)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], texts: frozenset[int]) -> str:
    """Return a table, with headings if any; columns whose places are in `texts` are set flush left."""

    def line(cells: Sequence[str], tag: str) -> str:
        marked = (
            f"<{tag}{_class(cell, place, texts)}>{escape(cell)}</{tag}>" for place, cell in enumerate(cells)
        )
        return f"<tr>{''.join(marked)}</tr>"

    head = f"<thead>{line(headings, 'th')}</thead>" if headings else ""
    body = "".join(line(row, "td") for row in rows)
    return f'<div class="wide"><table>{head}<tbody>{body}</tbody></table></div>'


def _class(cell: str, place: int, texts: frozenset[int]) -> str:
    if cell in ("faster", "better"):
        return ' class="faster"'
    if cell in ("slower", "worse"):
        return ' class="slower"'
    if place in texts:
        return ' class="text long"' if len(cell) > 60 else ' class="text"'
    return ""


def summary_table(comparison: Comparison) -> str:
    """Return the geometric means, a line a method."""
    rows = [tables.summary_cells(comparison, line) for line in comparison.summary]
    return table(tables.headings(comparison), rows, frozenset({0}))


def further_tables(comparison: Comparison) -> str:
    """Return the means under other objectives and by family, where there are any."""
    parts: list[str] = []
    for objective in comparison.also:
        rows = [tables.side_cells(comparison, line, objective) for line in comparison.summary]
        headings = tables.side_headings(comparison, objective)
        parts.append(f"<h3>{escape(tables.side_title(objective))}</h3>")
        parts.append(table(headings, rows, frozenset({0})))
    if tables.families(comparison):
        parts.append(f"<h3>{escape(tables.family_title(comparison))}</h3>")
        cells = [tables.family_cells(comparison, name) for name in tables.families(comparison)]
        parts.append(table(["family", *comparison.methods], cells, frozenset({0})))
    return "".join(parts)


def conditions(comparison: Comparison) -> str:
    """Return what the numbers depend on and refer to."""
    return f'<p class="note">{escape(tables.conditions(comparison))}</p>'


def failures(comparison: Comparison) -> str:
    """Return the failures with their reasons; nothing where there are none."""
    reasons = tables.failures(comparison)
    if not reasons:
        return ""
    items = "".join(f"<li>{escape(reason)}</li>" for reason in reasons)
    summary = f"{len(reasons)} failed, without a ratio or not checkable"
    return folded(summary, f"<ul>{items}</ul>")


def rows_table(comparison: Comparison) -> str:
    """Return every row, folded away."""
    headings = [
        "program",
        "method",
        comparison.objective.name,
        gain_word(comparison.objective),
        *tables.ratio_headings(comparison),
        *(objective.name for objective in comparison.also),
        "seconds",
        "evaluations",
        "validated",
        "schedule",
    ]
    rows = [_row(comparison, row) for row in comparison.rows]
    content = table(headings, rows, frozenset({0, 1, len(headings) - 1}))
    return folded(f"All {len(rows)} results, with schedules", content)


def _row(comparison: Comparison, row: Row) -> list[str]:
    def number(value: float | None, form: str) -> str:
        return "" if value is None else format(value, form)

    return [
        short_name(row.program),
        row.method,
        cost(row.cost, comparison.objective),
        number(row.speedup, ".2f"),
        *([row.ratio_text] if comparison.baseline else []),
        *(
            [number(row.reference_ratio, ".2f"), number(row.gain_ratio, ".2f")]
            if comparison.reference
            else []
        ),
        *(
            cost(row.also[objective.name].cost, objective) if objective.name in row.also else ""
            for objective in comparison.also
        ),
        number(row.seconds, ".3g"),
        "" if row.evaluations is None else count(row.evaluations),
        "yes" if row.validated else "not checkable" if row.not_checkable else "no",
        " ".join(part for part in (row.schedule, row.no_gain and f"({row.no_gain})") if part),
    ]


def steps(entries: Sequence[Step]) -> str:
    """Return the original program and after each action, with costs."""
    first = entries[0].cost
    items: list[str] = []
    for place, entry in enumerate(entries):
        name = f"{place}. <code>{escape(entry.action)}</code>" if entry.action else "original"
        text = cost(entry.cost, entry.objective)
        if place and first and entry.cost:
            text += f" \u00b7 {first / entry.cost:.2f}x"
        items.append(
            f'<li><header><strong>{name}</strong><span class="cost">{escape(text)}</span></header>'
            f"{f'<pre>{escape(entry.text)}</pre>' if entry.text else ''}</li>"
        )
    intro = (
        f"The program {entries[0].program or ''} before and after each step: its cost, and "
        "the original cost over it. Some steps pay only together with later ones."
    )
    return paragraph(" ".join(intro.split())) + f'<ol class="steps">{"".join(items)}</ol>'
