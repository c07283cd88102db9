"""Drawings as SVG: a program before and after, side by side, with what changed marked."""

from collections import Counter
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from typing import Literal, NamedTuple, TypeAlias

from irgym.core.drawing import Drawing
from irgym.reporting.layering import Layout, Wire, layout

MOST = 2000
"""Most boxes of a picture: beyond it nobody would find anything, and the page would be slow."""

HEIGHT, STEP, MARGIN = 22, 46, 8
"""Height of a box, distance of layers, and margin around the picture."""

LETTER, PADDING = 6.6, 18
"""Room for a letter of a label, and for what is around the label."""

APART = 40
"""Room between two pictures in a file."""

Mark: TypeAlias = Literal["gone", "new"]
"""How boxes are marked: as removed, or as added."""

SIGNS: Mapping[Mark, str] = {"gone": "\u2212 ", "new": "+ "}

COLOURS = 10
"""Colours that the style sheet has for kinds."""


def side_by_side(before: Drawing, after: Drawing) -> str:
    """Return two drawings side by side in HTML, with a legend and a choice of sizes.

    Boxes that the other drawing does not have as they are, are marked: removed on the left, added on the
    right. Sizes are chosen by style sheet alone, so the page needs no script.
    """
    most = max(len(before.boxes), len(after.boxes))
    if most > MOST:
        return f'<p class="note">Not drawn: {most} boxes are more than the {MOST} that fit a picture.</p>'
    gone, new = changed(before, after), changed(after, before)
    sizes = "".join(
        f'<input type="radio" name="size" id="size-{name}" class="size-{name}"{chosen}>'
        f'<label for="size-{name}">{words}</label>'
        for name, words, chosen in (
            ("fit", "fit width", " checked"),
            ("half", "half size", ""),
            ("full", "full size", ""),
        )
    )
    columns: tuple[tuple[str, Drawing, frozenset[str], Mark, str], ...] = (
        ("Before", before, gone, "gone", "of them removed (dashed)"),
        ("After", after, new, "new", "of them added (thick)"),
    )
    if before == after:
        columns = (("Before and after", before, gone, "gone", "of them changed"),)
    sides = "".join(
        f"<figure><figcaption>{title}: {len(drawing.boxes)} boxes, {len(marked)} {words}</figcaption>"
        f'<div class="scroll">{svg(drawing, marked, mark, title)}</div></figure>'
        for title, drawing, marked, mark, words in columns
    )
    return f'<div class="drawn">{_legend(before, after)}{sizes}<div class="pictures">{sides}</div></div>'


def changed(drawing: Drawing, other: Drawing) -> frozenset[str]:
    """Return the names of the boxes that another drawing does not have, or has with other words in them."""
    known = {box.name: box for box in other.boxes}
    return frozenset(box.name for box in drawing.boxes if known.get(box.name) != box)


def counts(before: Drawing, after: Drawing) -> list[tuple[str, int, int]]:
    """Return how many boxes of each label either drawing has, where these numbers differ; most first."""
    first, second = (Counter(box.label for box in drawing.boxes) for drawing in (before, after))
    rows = [(label, first[label], second[label]) for label in first | second if first[label] != second[label]]
    return sorted(rows, key=lambda row: (-max(row[1:]), row[0]))


def standalone(before: Drawing, after: Drawing) -> str:
    """Return two drawings side by side as the text of an SVG file, with what changed marked."""
    folder = files("irgym.reporting")
    colours = folder.joinpath("report.css").read_text().partition("* {")[0]
    style = f"{colours}{folder.joinpath('picture.css').read_text()}svg{{background:var(--paper)}}"
    first = _picture(before, changed(before, after), "gone")
    second = _picture(after, changed(after, before), "new")
    width, height = first.width + second.width + APART, max(first.height, second.height)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="graph" role="img" aria-label="before and after" '
        f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"><style>{style}</style>'
        f'{first.content}<g transform="translate({first.width + APART})">{second.content}</g></svg>\n'
    )


def svg(drawing: Drawing, marked: frozenset[str], mark: Mark, title: str) -> str:
    """Return a drawing as an SVG element, which takes its colours from the page's style sheet.

    Args:
        drawing: What to draw.
        marked: Names of the boxes to mark.
        mark: How.
        title: Text for readers that do not see it.
    """
    picture = _picture(drawing, marked, mark)
    return (
        f'<svg class="graph" role="img" aria-label="{escape(title)}" '
        f'viewBox="0 0 {picture.width} {picture.height}" style="--w:{picture.width}">{picture.content}</svg>'
    )


class _Picture(NamedTuple):
    """The content of an SVG element, and its size."""

    content: str
    width: int
    height: int


def _picture(drawing: Drawing, marked: frozenset[str], mark: Mark) -> _Picture:
    boxes = {box.name: box for box in drawing.boxes}
    labels = {name: (SIGNS[mark] if name in marked else "") + box.label for name, box in boxes.items()}
    widths = {name: LETTER * len(label) + PADDING for name, label in labels.items()}
    placed = layout(widths, [(arrow.source, arrow.target, arrow.label) for arrow in drawing.arrows])
    ports = _ports(placed, widths)
    parts = [_wire(placed, wire, ports) for wire in placed.wires if wire.pieces]
    for name, layer, x in zip(placed.points, placed.layer, placed.x, strict=True):
        if name is not None:
            style = f"k{drawing.kinds.index(boxes[name].kind) % COLOURS}"
            if name in marked:
                style += f" {mark}"
            parts.append(
                f'<g class="{style}">{_title(boxes[name].detail)}'
                f'<rect x="{_number(x - widths[name] / 2 + MARGIN)}" y="{_top(layer)}" '
                f'width="{_number(widths[name])}" height="{HEIGHT}" rx="4"/>'
                f'<text x="{_number(x + MARGIN)}" y="{_top(layer) + 15}">{escape(labels[name])}</text></g>'
            )
    height = STEP * placed.layers - (STEP - HEIGHT) + 2 * MARGIN
    return _Picture("".join(parts), round(placed.width + 2 * MARGIN), height)


def _ports(placed: Layout, widths: Mapping[str, float]) -> dict[tuple[int, int], float]:
    """Return where each piece ends at the top of a box: side by side, in the order that they come from."""
    coming: dict[int, list[int]] = {}
    for wire in placed.wires:
        for source, target in wire.pieces:
            coming.setdefault(target, []).append(source)
    ports: dict[tuple[int, int], float] = {}
    for target, sources in coming.items():
        name = placed.points[target]
        room = 0.0 if name is None else widths[name] / 2
        for place, source in enumerate(sorted(sources, key=lambda box: placed.x[box])):
            share = (place + 0.5) / len(sources) - 0.5
            ports[source, target] = placed.x[target] + share * room
    return ports


def _wire(placed: Layout, wire: Wire, ports: Mapping[tuple[int, int], float]) -> str:
    """Return the curves of a wire; those that follow one another are one stroke."""
    strokes: list[str] = []
    pen: int | None = None
    for source, target in wire.pieces:
        begin = _top(placed.layer[source]) + HEIGHT
        end = _top(placed.layer[target])
        x, to = _number(placed.x[source] + MARGIN), _number(ports[source, target] + MARGIN)
        if pen != source:
            strokes.append(f"M{x} {begin}")
        middle = (begin + end) // 2
        strokes.append(f"V{end}" if x == to else f"C{x} {middle} {to} {middle} {to} {end}")
        if placed.points[target] is None:
            strokes.append(f"V{end + HEIGHT}")
        pen = target if placed.points[target] is None else None
    return f'<path d="{"".join(strokes)}">{_title(wire.label)}</path>'


def _top(layer: int) -> int:
    return layer * STEP + MARGIN


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _title(text: str) -> str:
    return f"<title>{escape(text)}</title>" if text else ""


def _legend(before: Drawing, after: Drawing) -> str:
    used = {box.kind for drawing in (before, after) for box in drawing.boxes}
    entries = "".join(
        f'<span class="k{place % COLOURS}">{escape(kind)}</span>'
        for place, kind in enumerate(before.kinds)
        if kind in used
    )
    return f'<p class="legend">{entries}</p>'
