"""Plots as inline SVG that takes its colours from the page's style sheet, so that it suits light and dark."""

import io
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, TypeAlias, cast

from irgym.base.errors import BackendError
from irgym.comparing.results import Comparison, Trace
from irgym.comparing.rows import BASE

# matplotlib's own type hints leave out most keyword arguments.
Axes: TypeAlias = Any
Figure: TypeAlias = Any

SERIES = tuple(f"#0102{place:02x}" for place in range(11))
"""Stand-ins for the style sheet's series colours `--s0` to `--s10`; the last is that of `base`."""

INK, RULE = "#010301", "#010302"
"""Stand-ins for the colours of text and of rules."""

MARKERS = "osD^vPX<>*h"

BAR_LIMIT = 48
"""Most bars that a bar chart holds; beyond it programs are shown as dots."""

LONGEST = 80
"""Most characters of a name in a plot; the tables have it whole."""

PROGRAM_LIMIT = 60
"""Most programs that are shown one by one; beyond it each method is one curve."""


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure; sizes in inches."""
    try:
        from matplotlib import figure
    except ImportError:
        raise BackendError("a report needs matplotlib: run pip install 'irgym[report]'") from None
    return figure.Figure(figsize=(width, height), layout="constrained")


def add_axes(figure: Figure, rows: int = 1, columns: int = 1, place: int = 1) -> Axes:
    """Add axes to a figure, at a place in a grid of rows and columns that counts from 1."""
    axes: Axes = figure.add_subplot(rows, columns, place)
    axes.tick_params(which="both", colors=INK, labelsize=9, length=0)
    axes.grid(color=RULE, linewidth=0.7)
    axes.set_axisbelow(True)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return axes


def svg_of(figure: Figure, name: str, title: str) -> str:
    """Return a figure as an SVG element.

    Args:
        figure: What to draw.
        name: Prefix that keeps the ids of several figures on a page apart.
        title: Text for readers that do not see it.
    """
    import matplotlib

    settings: Any = {"svg.fonttype": "none", "svg.hashsalt": name}
    out = io.StringIO()
    with cast(Any, matplotlib).rc_context(settings), warnings.catch_warnings():
        # The reader's browser draws the letters, with a font that has them.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    text = out.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text)
    for place, color in enumerate(SERIES):
        text = text.replace(color, f"var(--s{place})")
    text = text.replace(INK, "currentColor").replace(RULE, "var(--rule)")
    return text.replace("<svg ", f'<svg role="img" aria-label="{escape(title)}" ', 1)


def _plain(text: str) -> str:
    """Return text that fits beside a plot and can be drawn, and whose dollar signs do not begin a formula."""
    short = text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
    short = "".join(character if character.isprintable() else "?" for character in short)
    return short.replace("$", r"\$")


def set_title(axes: Axes, text: str) -> None:
    """Write a title above axes."""
    axes.set_title(text, loc="left", fontsize=10, color=INK)


def _legend(figure: Figure, axes: Axes, columns: int) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside upper left",
        ncols=columns,
        frameon=False,
        fontsize=9,
        labelcolor=INK,
        handlelength=1.4,
    )


def training_curves(
    metrics: Sequence[Mapping[str, Any]], panels: Sequence[tuple[str, Sequence[str]]], gain: str
) -> str | None:
    """Return curves over the iterations, a panel for each quantity, as SVG; None where there is nothing.

    A quantity that never changes, such as the exploration of a learner that does not explore, has no panel.

    Args:
        metrics: One mapping for each iteration.
        panels: Titles, and the names of the quantities in each panel.
        gain: The word to show for `speedup`.
    """
    shown = [
        (title, curves)
        for title, names in panels
        if (curves := {name: points for name in names if (points := _points(metrics, name))})
    ]
    if not shown:
        return None
    columns = min(3, len(shown))
    rows = -(-len(shown) // columns)
    figure = new_figure(3.4 * columns, 2.3 * rows)
    for place, (title, curves) in enumerate(shown, start=1):
        axes = add_axes(figure, rows, columns, place)
        for color, (name, points) in zip(SERIES, curves.items(), strict=False):
            axes.plot(*zip(*points, strict=True), color=color, linewidth=1.6, label=_named(name, gain))
        if len(curves) > 1:
            axes.legend(frameon=False, fontsize=8, labelcolor=INK)
        if place > len(shown) - columns:
            axes.set_xlabel("iteration", fontsize=9, color=INK)
        set_title(axes, _named(title, gain))
    return svg_of(figure, "training", "training curves")


def _named(text: str, gain: str) -> str:
    """Return the words for a quantity or a title."""
    return text.removesuffix("_s").replace("_", " ").replace("speedup", gain)


def _points(metrics: Sequence[Mapping[str, Any]], name: str) -> list[tuple[float, float]]:
    """Return the values of a quantity; none where it never changes."""
    points = [
        (float(row.get("iteration", place)), float(row[name]))
        for place, row in enumerate(metrics, start=1)
        if row.get(name) is not None
    ]
    return points if len({value for _, value in points}) > 1 else []


def short_name(uri: str) -> str:
    """Return a URI without its scheme."""
    return uri.partition("://")[2] or uri


def per_program(comparison: Comparison, quantity: str, label: str, name: str) -> str | None:
    """Return a quantity of every program and method as SVG: bars, dots, or for many programs curves.

    Args:
        comparison: The data.
        quantity: `speedup`, `baseline_ratio` or `gain_ratio`.
        label: What the axis says.
        name: Prefix of ids.
    """
    values = _values(comparison, quantity)
    programs = [
        program for program in comparison.programs if any(program in ratios for ratios in values.values())
    ]
    if not programs:
        return None
    colors = series(comparison.methods)
    bars = len(values) * len(programs) <= BAR_LIMIT
    if len(programs) > PROGRAM_LIMIT:
        figure = new_figure(10.2, 4.2)
        axes = add_axes(figure)
        _profiles(axes, values, colors)
    else:
        row = 0.13 * len(values) + 0.14 if bars else 0.27
        figure = new_figure(10.2, 1.1 + row * len(programs))
        axes = add_axes(figure)
        (_bars if bars else _dots)(axes, programs, values, colors)
        axes.set_yticks(range(len(programs)), [_plain(short_name(program)) for program in programs])
        axes.set_ylim(len(programs) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
    axes.axvline(1.0, color=INK, linewidth=1.0)
    axes.set_xlabel(_plain(label), fontsize=9, color=INK)
    _legend(figure, axes, 5)
    return svg_of(figure, name, label)


def _values(comparison: Comparison, quantity: str) -> dict[str, dict[str, float]]:
    """Return for each method its values by program; methods whose value is 1 by definition are left out."""
    unit = {"speedup": BASE, "baseline_ratio": comparison.baseline, "gain_ratio": comparison.reference}[
        quantity
    ]
    values: dict[str, dict[str, float]] = {}
    for row in comparison.rows:
        value = getattr(row, quantity)
        if value is not None and row.method != unit:
            values.setdefault(row.method, {})[row.program] = value
    return values


def series(methods: Sequence[str]) -> dict[str, int]:
    """Return for each method the place of its colour, the same in all plots of a comparison."""
    return {method: place for place, method in enumerate(method for method in methods if method != BASE)} | {
        BASE: len(SERIES) - 1
    }


def _bars(
    axes: Axes,
    programs: Sequence[str],
    values: Mapping[str, Mapping[str, float]],
    colors: Mapping[str, int],
) -> None:
    height = 0.8 / len(values)
    for place, (method, ratios) in enumerate(values.items()):
        shift = (place - (len(values) - 1) / 2) * height
        rows = [row for row, program in enumerate(programs) if program in ratios]
        axes.barh(
            [row + shift for row in rows],
            [ratios[programs[row]] for row in rows],
            height=0.88 * height,
            color=SERIES[colors[method] % len(SERIES)],
            label=_plain(method),
        )


def _dots(
    axes: Axes,
    programs: Sequence[str],
    values: Mapping[str, Mapping[str, float]],
    colors: Mapping[str, int],
) -> None:
    for method, ratios in values.items():
        rows = [row for row, program in enumerate(programs) if program in ratios]
        axes.plot(
            [ratios[programs[row]] for row in rows],
            rows,
            linestyle="none",
            marker=MARKERS[colors[method] % len(MARKERS)],
            markersize=6.5,
            markeredgewidth=0,
            alpha=0.9,
            color=SERIES[colors[method] % len(SERIES)],
            label=_plain(method),
        )
    for row in range(len(programs)):
        axes.axhline(row, color=RULE, linewidth=0.5, zorder=0)


def _profiles(axes: Axes, values: Mapping[str, Mapping[str, float]], colors: Mapping[str, int]) -> None:
    """Draw for each method the share of programs that reach a value."""
    for method, ratios in values.items():
        ordered = sorted(ratios.values())
        axes.plot(
            ordered,
            [100 * (1 - place / len(ordered)) for place in range(len(ordered))],
            linewidth=1.8,
            drawstyle="steps-pre",
            color=SERIES[colors[method] % len(SERIES)],
            label=_plain(method),
        )
    set_title(axes, "percentage of programs that reach at least this")


def anytime_curves(comparison: Comparison, name: str) -> str | None:
    """Return the geometric mean over the programs of first over best cost, against time, as SVG.

    Args:
        comparison: The data.
        name: Prefix of ids.
    """
    # A cost of 0 has no ratio to others.
    usable = [trace for trace in comparison.traces if trace.points and trace.points[-1][2] > 0]
    if not usable:
        return None
    end = max(trace.end_s for trace in usable)
    start = max(1e-3, min(trace.points[0][1] for trace in usable))
    grid = [start * (max(end / start, 1.01)) ** (step / 120) for step in range(121)]
    figure = new_figure(10.2, 3.8)
    axes = add_axes(figure)
    colors = series(comparison.methods)
    for method in dict.fromkeys(trace.method for trace in usable):
        mine = [trace for trace in usable if trace.method == method]
        means = [math.exp(math.fsum(_log_gain(trace, time) for trace in mine) / len(mine)) for time in grid]
        axes.plot(
            grid,
            means,
            color=SERIES[colors[method] % len(SERIES)],
            linewidth=1.8,
            drawstyle="steps-post",
            label=_plain(method),
        )
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("seconds", fontsize=9, color=INK)
    set_title(axes, "first cost / best cost so far, geometric mean over the programs")
    _legend(figure, axes, 6)
    return svg_of(figure, name, "anytime curves of the searches")


def _log_gain(trace: Trace, time: float) -> float:
    """Return the logarithm of first over best cost at a time; 0 before the first cost."""
    best = trace.points[0][2]
    for _, seconds, cost in trace.points:
        if seconds <= time:
            best = cost
    return math.log(trace.points[0][2] / best)
