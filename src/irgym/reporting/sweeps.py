"""Results of the runs of a sweep: means over the seeds with intervals, as a table and as curves."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from irgym.comparing.results import read_comparison
from irgym.comparing.rows import RAW
from irgym.judging.statistics import Interval, geometric_interval, t_quantile
from irgym.policies.run_folder import RunFolder
from irgym.reporting import html
from irgym.reporting.plots import INK, SERIES, add_axes, new_figure, set_title, svg_of
from irgym.reporting.tables import interval_text

TAIL = 0.1
"""Share of a run's iterations, the last ones, whose mean is the run's result."""

WIDTH = 0.95
"""Probability that an interval covers the truth."""


@dataclass(frozen=True)
class Run:
    """A run of a sweep.

    Attributes:
        name: Name of its folder.
        setting: The values that it was started with, the seed left out, as text.
        metrics: Its iterations.
        test: Geometric mean of the speedup of the policy alone on test programs; None without an evaluation.
    """

    name: str
    setting: str
    metrics: Sequence[Mapping[str, Any]] = ()
    test: float | None = None

    def result(self, quantity: str) -> float | None:
        """Return the mean of a quantity over the last iterations; None where it is unknown."""
        found = [row[quantity] for row in self.metrics if row.get(quantity) is not None]
        last = found[-max(1, math.ceil(TAIL * len(found))) :]
        return math.fsum(last) / len(last) if last else None


@dataclass(frozen=True)
class Setting:
    """A setting of a sweep over its seeds.

    Attributes:
        name: The swept values.
        runs: Number of runs with results.
        iterations: Iterations of its runs, the fewest and the most.
        reward: Mean return of the last iterations, with the ends of its interval.
        speedup: Mean speedup of the last iterations.
        test: Speedup of the policy alone on test programs.
    """

    name: str
    runs: int
    iterations: tuple[int, int]
    reward: tuple[float, float, float] | None
    speedup: Interval | None
    test: Interval | None = field(default=None)


def read_run(folder: Path, setting: str) -> Run:
    """Return what a run came to so far.

    Raises:
        StorageError: A file of it is damaged.
    """
    files = RunFolder(folder)
    evaluation = read_comparison(files.evaluation)
    lines = evaluation.summary if evaluation else []
    raw = next((line.speedup for line in lines if line.method.startswith(f"{RAW}:")), None)
    return Run(folder.name, setting, files.read_metrics(), raw.mean if raw else None)


def settings_of(runs: Sequence[Run]) -> list[Setting]:
    """Return the settings in the order of their first runs, each over its seeds."""
    return [_setting(name, [run for run in runs if run.setting == name]) for name in _names(runs)]


def _names(runs: Sequence[Run]) -> list[str]:
    return list(dict.fromkeys(run.setting for run in runs))


def _setting(name: str, runs: Sequence[Run]) -> Setting:
    begun = [run for run in runs if run.metrics]
    lengths = [len(run.metrics) for run in begun]
    return Setting(
        name,
        len(begun),
        (min(lengths, default=0), max(lengths, default=0)),
        mean_interval([run.result("reward_mean") for run in begun]),
        _geometric([run.result("speedup") for run in begun]),
        _geometric([run.test for run in begun]),
    )


def _geometric(values: Sequence[float | None]) -> Interval | None:
    known = [value for value in values if value is not None and 0.0 < value < math.inf]
    return geometric_interval(known, WIDTH) if known else None


def mean_interval(values: Sequence[float | None]) -> tuple[float, float, float] | None:
    """Return the mean of the known values and the ends of Student's interval; None without values.

    A single value bounds nothing: then the ends are infinite.
    """
    known = [value for value in values if value is not None and math.isfinite(value)]
    if not known:
        return None
    n = len(known)
    mean = math.fsum(known) / n
    if n < 2:
        return mean, -math.inf, math.inf
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in known) / (n - 1))
    half = t_quantile(0.5 + WIDTH / 2, n - 1) * deviation / math.sqrt(n)
    return mean, mean - half, mean + half


def curves(runs: Sequence[Run], gain: str) -> str | None:
    """Return the mean curve of each setting with the interval over its seeds, as SVG; None without metrics.

    Args:
        runs: The runs.
        gain: The word to show for a speedup.
    """
    if not any(run.metrics for run in runs):
        return None
    figure = new_figure(10.2, 3.6)
    for place, (quantity, title) in enumerate((("reward_mean", "mean reward"), ("speedup", gain)), start=1):
        axes = add_axes(figure, 1, 2, place)
        for color, name in zip(SERIES * len(runs), _names(runs), strict=False):
            points = _curve([run for run in runs if run.setting == name], quantity)
            if points:
                at, means, lows, highs = zip(*points, strict=True)
                axes.plot(at, means, color=color, linewidth=1.6, label=name or "all runs")
                axes.fill_between(at, lows, highs, color=color, alpha=0.18, linewidth=0)
        axes.set_xlabel("iteration", fontsize=9, color=INK)
        axes.legend(frameon=False, fontsize=8, labelcolor=INK)
        set_title(axes, f"{title}, mean and {WIDTH:.0%} interval over the seeds")
    return svg_of(figure, "sweep", "curves of the runs")


def _curve(runs: Sequence[Run], quantity: str) -> list[tuple[int, float, float, float]]:
    """Return mean and interval at each iteration that any run has; no interval where a single run has it."""
    values: dict[int, list[float]] = {}
    for run in runs:
        for row in run.metrics:
            if row.get(quantity) is not None:
                values.setdefault(int(row["iteration"]), []).append(float(row[quantity]))
    points: list[tuple[int, float, float, float]] = []
    for iteration, known in sorted(values.items()):
        found = mean_interval(known)
        if found is not None:
            mean, low, high = found if len(known) > 1 else (found[0],) * 3
            points.append((iteration, mean, low, high))
    return points


def page(name: str, runs: Sequence[Run], gain: str) -> str | None:
    """Return a page with curves and tables; None where no run has metrics yet.

    Args:
        name: Name of the sweep.
        runs: Its runs.
        gain: The word to show for a speedup.
    """
    drawn = curves(runs, gain)
    if drawn is None:
        return None
    rows = [cells(setting) for setting in settings_of(runs)]
    table = html.table(headings(gain), rows, frozenset({0}))
    of_runs = html.table(
        ("run", "iterations"), [(run.name, str(len(run.metrics))) for run in runs], frozenset({0})
    )
    sections = [
        ("curves", "Curves", html.figure(drawn)),
        ("settings", "Settings", table),
        ("runs", "Runs", of_runs),
    ]
    return html.page(f"irgym: sweep {name}", sections)


def headings(gain: str) -> tuple[str, ...]:
    """Return the columns of the table of settings."""
    return ("setting", "runs", "iterations", "reward", gain, f"{gain} on test programs")


def cells(setting: Setting) -> list[str]:
    """Return a line of the table of settings."""
    low, high = setting.iterations
    reward = "-"
    if setting.reward is not None:
        mean, least, most = setting.reward
        reward = f"{mean:+.3f}" + (f" [{least:+.3f}, {most:+.3f}]" if setting.runs > 1 else "")
    return [
        setting.name or "all",
        str(setting.runs),
        str(low) if low == high else f"{low} to {high}",
        reward,
        interval_text(setting.speedup, "x"),
        interval_text(setting.test, "x"),
    ]
