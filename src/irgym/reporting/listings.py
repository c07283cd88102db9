"""Programs as texts before and after, side by side: lines that differ are marked."""

from difflib import SequenceMatcher
from html import escape


def side_by_side(name: str, before: str, after: str) -> str:
    """Return two texts in two columns, in HTML; lines that are the same stand beside each other.

    Args:
        name: What the texts are, such as "assembly".
        before: The one.
        after: The other.
    """
    ours, theirs = before.splitlines(), after.splitlines()
    left: list[str] = []
    right: list[str] = []
    for kind, begin, end, other_begin, other_end in SequenceMatcher(
        None, ours, theirs, autojunk=False
    ).get_opcodes():
        own, other = ours[begin:end], theirs[other_begin:other_end]
        rows = max(len(own), len(other))
        left += _lines(own, rows, "" if kind == "equal" else "removed")
        right += _lines(other, rows, "" if kind == "equal" else "added")
    columns = "".join(
        f"<div><h3>{escape(name)} {when}</h3><pre>{chr(10).join(lines)}</pre></div>"
        for when, lines in (("before", left), ("after", right))
    )
    return f'<div class="listings">{columns}</div>'


def _lines(texts: list[str], rows: int, mark: str) -> list[str]:
    """Return lines of HTML, as many as asked for: empty ones fill up."""
    shown = [f'<span class="{mark}">{escape(text)}</span>' if mark else escape(text) for text in texts]
    return [*shown, *[""] * (rows - len(texts))]
