"""Pictures of the trees that searches walked, as SVG and as a graph for Graphviz.

Large trees are pruned to their cheapest schedules and the ways to them, and the picture says so.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from irgym.base.files import write_file
from irgym.base.json_files import write_json
from irgym.core.task import Task, form_of
from irgym.judging.units import cost_text
from irgym.search.tree import TREES, Branch, SearchTree

MOST = 80
"""Schedules that a picture shows, besides those on the ways to them."""

LONGEST = 34
"""Characters of the actions in a box; of longer texts the middle is left out."""

ROW, HEIGHT, GAP, MARGIN, HEAD = 40, 32, 42, 12, 26
"""Distance of rows, height of boxes, room between columns, margin, and height of the line at the top."""

LETTER = 6.4
"""Room for a letter."""


@dataclass
class Box:
    """A box of a picture: a schedule that was tried, or a state where schedules part.

    Attributes:
        actions: Texts of the actions from the box before; several where none between was tried.
        branch: The state.
        best: Whether it is on the way to the least cost.
        boxes: What follows.
        hidden: Number of schedules behind it that are not shown.
    """

    actions: list[str]
    branch: Branch
    best: bool = False
    boxes: "list[Box]" = field(default_factory=list["Box"])
    hidden: int = 0


def write_tree(tree: SearchTree, task: Task[Any], path: Path, title: str) -> None:
    """Write a tree to a file, as its suffix says: `TREES`.

    Args:
        tree: The tree.
        task: The program.
        path: The file.
        title: Line at the top: the program and the search.

    Raises:
        IrgymError: The suffix names no form.
        StorageError: The file cannot be written.
    """
    form = form_of(path, TREES)
    if form == ".json":
        objective = {"name": task.objective.name, "unit": task.objective.unit}
        data = {"program": task.uri, "title": title, "objective": objective, "tried": tree.tried}
        write_json(path, {**data, "nodes": tree.to_json(task.space)})
    else:
        write_file(path, (as_svg if form == ".svg" else as_dot)(tree, task, title).encode())


def pruned(tree: SearchTree, task: Task[Any], most: int = MOST) -> Box:
    """Return the boxes of the cheapest schedules of a tree, and of the way to each.

    Schedules of equal costs mostly lead to one program: the first of each cost go before all others.

    Args:
        tree: The tree.
        task: The program.
        most: Schedules to show, besides those on the way; the original and the best are among them.
    """
    before: dict[int, Branch] = {}
    tried: list[Branch] = []
    waiting = [tree.root]
    while waiting:
        branch = waiting.pop()
        if branch.cost is not None:
            tried.append(branch)
        for child in branch.branches.values():
            before[id(child)] = branch
            waiting.append(child)
    tried.sort(key=lambda branch: (branch.cost, branch.place))
    first = {id(branch) for branch in {branch.cost: branch for branch in reversed(tried)}.values()}
    tried.sort(key=lambda branch: id(branch) not in first)
    kept: set[int] = {id(tree.root)}
    for branch in tried[:most]:
        way = branch
        while id(way) not in kept:
            kept.add(id(way))
            way = before[id(way)]
    best = {id(branch) for branch in _along(tree)}
    return _boxes(tree.root, [], kept, best, task)


def _along(tree: SearchTree) -> Iterator[Branch]:
    """Yield the branches on the way to the least cost."""
    branch = tree.root
    yield branch
    for action in tree.best:
        branch = branch.branches[action]
        yield branch


def _boxes(root: Branch, actions: list[str], kept: set[int], best: set[int], task: Task[Any]) -> Box:
    """Return the box of a branch, with those of the kept branches behind it."""
    top = Box(actions, root, id(root) in best)
    waiting = [top]
    while waiting:
        box = waiting.pop()
        for action, child in box.branch.branches.items():
            if id(child) not in kept:
                box.hidden += _tried(child)
                continue
            texts, end = [task.space.text(action)], child
            while end.cost is None and len(end.branches) == 1:
                [(following, end)] = end.branches.items()
                texts.append(task.space.text(following))
            box.boxes.append(Box(texts, end, id(end) in best))
        box.boxes.sort(key=lambda following: following.branch.place or math.inf)
        waiting += box.boxes
    return top


def _tried(branch: Branch) -> int:
    """Return the number of schedules that were tried at a branch and behind it."""
    count, waiting = 0, [branch]
    while waiting:
        here = waiting.pop()
        count += here.cost is not None
        waiting += here.branches.values()
    return count


def _all(top: Box) -> list[Box]:
    """Return a box and all behind it, each before those behind it, rows from top to bottom."""
    found: list[Box] = []
    waiting = [top]
    while waiting:
        box = waiting.pop()
        found.append(box)
        waiting += reversed(box.boxes)
    return found


def head(tree: SearchTree, top: Box, title: str) -> str:
    """Return the line at the top of a picture, which says how much of the tree it shows."""
    shown = sum(box.branch.cost is not None for box in _all(top))
    if shown == tree.tried:
        return f"{title}: all {shown} schedules that it tried"
    return (
        f"{title}: {shown} of the {tree.tried} schedules that it tried, the cheapest and those on the way; "
        "+N: N more behind a box"
    )


def _lines(box: Box, tree: SearchTree, task: Task[Any]) -> tuple[str, str]:
    """Return the two lines of a box: its actions, and its cost beside the original's."""
    text = " ".join(box.actions) or "original"
    if len(text) > LONGEST:
        half = LONGEST // 2 - 1
        text = f"{text[:half]} … {text[-half:]}"
    cost, first = box.branch.cost, tree.root.cost
    if cost is None:
        return text, "not tried"
    if not math.isfinite(cost):
        return text, f"#{box.branch.place} failed"
    over = f" ({first / cost:.2f}x)" if first and math.isfinite(first) and cost else ""
    return text, f"#{box.branch.place} {cost_text(cost, task.objective)}{over}"


def _style(box: Box, tree: SearchTree) -> str:
    """Return the style of a box: its cost beside the original's."""
    cost, first = box.branch.cost, tree.root.cost
    if cost is None:
        return "between"
    if not math.isfinite(cost):
        return "failed"
    return "same" if first is None or cost == first else "cheaper" if cost < first else "dearer"


def as_dot(tree: SearchTree, task: Task[Any], title: str) -> str:
    """Return a tree as a graph in the language of Graphviz, from left to right."""
    top = pruned(tree, task)
    colours = {
        "between": "#ffffff",
        "failed": "#f3c6c6",
        "same": "#eceff1",
        "cheaper": "#c9e7d3",
        "dearer": "#f6dfc8",
    }
    lines = [
        "digraph search {",
        f"  rankdir=LR; labelloc=t; label={_quoted(head(tree, top, title))};",
        '  node [shape=box, style="rounded,filled", fontname="sans-serif", fontsize=10];',
    ]
    numbers = {id(box): number for number, box in enumerate(_all(top))}
    for box in _all(top):
        number = numbers[id(box)]
        label = _quoted("\n".join(_lines(box, tree, task)))
        bold = ", penwidth=2.5" if box.best else ""
        fill = colours[_style(box, tree)]
        lines.append(f'  n{number} [label={label}, fillcolor="{fill}"{bold}];')
        lines += [
            f"  n{number} -> n{numbers[id(following)]}{' [penwidth=2.5]' if following.best else ''};"
            for following in box.boxes
        ]
        if box.hidden:
            lines.append(f'  h{number} [label="{box.hidden} more", shape=plaintext, style=""];')
            lines.append(f"  n{number} -> h{number} [style=dashed];")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def as_svg(tree: SearchTree, task: Task[Any], title: str) -> str:
    """Return a tree as the text of an SVG file, from left to right, a row for each leaf."""
    top = pruned(tree, task)
    texts = {id(box): _lines(box, tree, task) for box in _all(top)}
    depths, rows, count = _placed(top)
    widths: list[float] = [0.0] * (1 + max(depths.values()))
    for box in _all(top):
        width = LETTER * max(map(len, texts[id(box)])) + 16
        widths[depths[id(box)]] = max(widths[depths[id(box)]], width)
    lefts = [MARGIN + sum(widths[:depth]) + GAP * depth for depth in range(len(widths))]
    line = head(tree, top, title)
    parts: list[str] = []
    for box in _all(top):
        depth = depths[id(box)]
        x, y, width = lefts[depth], HEAD + MARGIN + ROW * rows[id(box)], widths[depth]
        ends = [(HEAD + MARGIN + ROW * rows[id(following)], following.best) for following in box.boxes]
        parts += [_wire(x + width, y, lefts[depth + 1], end, "best" if best else "") for end, best in ends]
        actions, cost = texts[id(box)]
        style = f"{_style(box, tree)}{' best' if box.best else ''}"
        parts.append(
            f'<g class="{style}"><title>{escape(" ".join(box.actions) or "original")}</title>'
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{HEIGHT}" rx="4"/>'
            f'<text x="{x + 8:.0f}" y="{y + 13:.0f}">{escape(actions)}</text>'
            f'<text class="cost" x="{x + 8:.0f}" y="{y + 26:.0f}">{escape(cost)}</text></g>'
        )
        if box.hidden:
            parts.append(
                f'<text class="more" x="{x + width + 5:.0f}" y="{y + HEIGHT - 2:.0f}">'
                f"+{box.hidden}<title>{box.hidden} more schedules behind it are not shown</title></text>"
            )
    width = max(lefts[-1] + widths[-1] + 60, MARGIN + 1.3 * LETTER * len(line) + MARGIN)
    height = HEAD + 2 * MARGIN + ROW * count
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="graph" role="img" aria-label="{escape(line)}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}">'
        f'<style>{_styles()}</style><text class="head" x="{MARGIN}" y="{HEAD - 6}">{escape(line)}</text>'
        f"{''.join(parts)}</svg>\n"
    )


def _placed(top: Box) -> tuple[dict[int, int], dict[int, float], int]:
    """Return the column and the row of each box, by identity, and the number of rows.

    A box stands beside the first of those behind it, so that the way that was tried first is a straight line.
    """
    depths, rows = {id(top): 0}, dict[int, float]()
    order: Sequence[Box] = _all(top)
    for box in order:
        depths |= {id(following): depths[id(box)] + 1 for following in box.boxes}
    count = 0
    for box in order:  # leaves from top to bottom
        if not box.boxes:
            rows[id(box)] = count
            count += 1
    for box in reversed(order):
        if box.boxes:
            rows[id(box)] = rows[id(box.boxes[0])]
    return depths, rows, count


def _wire(x: float, y: float, to_x: float, to_y: float, style: str) -> str:
    """Return a curve from the right of a box to the left of another."""
    start, end, middle = y + HEIGHT / 2, to_y + HEIGHT / 2, (x + to_x) / 2
    curve = f"M{x:.0f} {start:.0f}C{middle:.0f} {start:.0f} {middle:.0f} {end:.0f} {to_x:.0f} {end:.0f}"
    return f'<path class="{style}" d="{curve}"/>'


def _styles() -> str:
    """Return the style sheet of a picture: the colours of the pages, light and dark."""
    folder = files("irgym.reporting")
    colours = folder.joinpath("report.css").read_text().partition("* {")[0]
    return colours + folder.joinpath("tree.css").read_text()
