"""The report of a run: one HTML file that needs nothing else, neither network nor scripts."""

from html import escape
from pathlib import Path
from typing import Annotated, Any, cast

from irgym.base.errors import IrgymError, StorageError
from irgym.base.files import write_file
from irgym.base.values import MismatchError, Range, conform
from irgym.comparing.results import Comparison, read_comparison
from irgym.comparing.rows import VAST
from irgym.comparing.steps import Step, read_steps
from irgym.core.catalogue import ENVIRONMENTS
from irgym.core.uri import is_folder
from irgym.judging.units import gain_word
from irgym.policies.run_folder import RunFolder
from irgym.reporting import html
from irgym.reporting.pictures import side_by_side
from irgym.reporting.plots import anytime_curves, per_program, training_curves

PANELS = (
    ("mean reward", ("reward_mean", "validation")),
    ("speedup of the episodes", ("speedup", "best_speedup")),
    ("speedup on the test programs", ("eval_speedup",)),
    ("entropy (nats)", ("entropy", "eval_entropy")),
    ("policy loss", ("policy_loss",)),
    ("value loss", ("value_loss",)),
    ("divergence from the old policy (nats)", ("kl",)),
    ("explained variance of the returns", ("explained_variance",)),
    ("norm of the gradient before clipping", ("grad_norm", "value_grad_norm")),
    ("exploration", ("epsilon",)),
    ("seconds of an iteration", ("collecting_s", "measuring_s", "learning_s", "values_s", "evaluating_s")),
    ("evaluations a second", ("evaluations_per_s",)),
)
"""Training curves: title and the metrics in one panel."""

COUNTS = ("iteration", "episodes", "evaluations", "cached", "failures")
"""Metrics that are counts."""

SHOWN = {name for _, names in PANELS for name in names} | {*COUNTS, "seconds"}
"""Metrics that a report shows."""

Quantity = Annotated[float | None, Range(-VAST, VAST)]
"""Type of a metric; values that are not finite, as in diverged trainings, are not shown."""


def write_report(run: Path, out: Path) -> None:
    """Write the report of a run folder.

    Shown is what the folder holds: metrics, a comparison, an evaluation, the steps of a schedule.

    Args:
        run: Run folder.
        out: HTML file to write.

    Raises:
        StorageError: The folder does not exist or holds none of these, one of them is damaged, or `out`
            cannot be written.
        BackendError: matplotlib is not installed.
    """
    if not is_folder(run):
        raise StorageError(f"there is no folder {run}: name one that irgym train or irgym compare wrote")
    folder = RunFolder(run)
    metrics = _read_metrics(folder)
    comparison = read_comparison(folder.comparison)
    evaluation = read_comparison(folder.evaluation)
    steps = read_steps(folder.steps)
    if not (metrics or comparison or evaluation or steps):
        raise StorageError(f"{run} has nothing to report: run irgym train, evaluate or compare into it first")
    sections = [
        ("comparison", "Comparison of methods", _comparison(comparison, "comparison")),
        ("evaluation", "Evaluation of the policy", _comparison(evaluation, "evaluation")),
        ("steps", "A schedule, step by step", _steps(steps)),
        ("training", "Training", _training(metrics, _gain(folder))),
        ("settings", "Settings", _settings(folder)),
    ]
    shown = [section for section in sections if section[2]]
    write_file(out, html.page(f"irgym: {run.resolve().name}", shown).encode())


def _read_metrics(folder: RunFolder) -> list[dict[str, Any]]:
    """Return the metrics, one mapping an iteration; what cannot be drawn becomes None.

    Raises:
        StorageError: It cannot be read, or it is damaged.
    """
    metrics = folder.read_metrics()
    for number, row in enumerate(metrics, start=1):
        for name in SHOWN & row.keys():
            value = row[name]
            if isinstance(value, float) and not abs(value) < VAST:
                row[name] = None
                continue
            try:
                row[name] = conform(Quantity, value)
            except MismatchError as error:
                raise StorageError(
                    f"{folder.metrics} is damaged at line {number} ({error.within(name)}): remove that line"
                ) from error
    return metrics


def _gain(folder: RunFolder) -> str:
    """Return the word for what a training gains; a neutral one where its environment is not known here."""
    described = folder.describe() if folder.config.exists() else {}
    environment, objective = described.get("environment"), described.get("objective")
    if not isinstance(environment, str) or environment not in ENVIRONMENTS:
        return "gain"
    try:
        home = ENVIRONMENTS.load(environment)
        return gain_word(home.objective(objective if isinstance(objective, str) else None))
    except IrgymError:
        return "gain"


def _training(metrics: list[dict[str, Any]], gain: str) -> str:
    if not metrics:
        return ""
    curves = training_curves(metrics, PANELS, gain)
    last = metrics[-1]
    facts = [
        f"{html.count(int(last[name]))} {words.removesuffix('s') if last[name] == 1 else words}"
        for name, words in (
            ("iteration", "iterations"),
            ("episodes", "episodes"),
            ("evaluations", "evaluations"),
            ("cached", "of them from the cost cache"),
            ("failures", "failed"),
        )
        if last.get(name) is not None
    ]
    seconds = last.get("seconds")
    if seconds is not None:
        facts.append(f"{html.duration(seconds)} of training")
    words = html.paragraph(", ".join(facts) + ".") if facts else ""
    return words + (html.figure(curves) if curves else "")


def _settings(folder: RunFolder) -> str:
    """Return what was trained, on what and how; nothing for a folder without a run."""
    if not folder.config.exists():
        return ""
    described = folder.describe()
    learner = described.get("config")
    own = cast(dict[str, Any], learner) if isinstance(learner, dict) else dict[str, Any]()
    others = {name: value for name, value in described.items() if name != "config"}
    rows = [[name, _setting(value)] for name, value in (*others.items(), *own.items())]
    return html.folded(f"All {len(rows)} settings", html.table([], rows, frozenset({0, 1})))


def _setting(value: Any) -> str:
    """Return a setting in words."""
    if value is None or value == "" or value == []:
        return "none"
    return ", ".join(map(str, cast(list[Any], value))) if isinstance(value, list) else str(value)


def _comparison(comparison: Comparison | None, name: str) -> str:
    if comparison is None:
        return ""
    gain = gain_word(comparison.objective)
    parts = [
        html.summary_table(comparison),
        html.conditions(comparison),
        html.failures(comparison),
        html.further_tables(comparison),
    ]
    speedups = per_program(comparison, "speedup", f"{gain} over the original program", f"{name}-speedup")
    if speedups:
        parts.append(f"<h3>{gain.capitalize()} of each program</h3>" + html.figure(speedups))
    gains = per_program(comparison, "gain_ratio", f"gain over {comparison.reference}'s gain", f"{name}-gain")
    if gains:
        parts.append(f"<h3>Against {escape(str(comparison.reference))}</h3>" + html.figure(gains))
    ratios = per_program(
        comparison, "baseline_ratio", f"{comparison.baseline}'s time over ours", f"{name}-ratio"
    )
    if ratios:
        parts.append(f"<h3>Against {escape(str(comparison.baseline))}</h3>" + html.figure(ratios))
    curves = anytime_curves(comparison, f"{name}-anytime")
    if curves:
        parts.append("<h3>Searches over time</h3>" + html.figure(curves))
    return "".join([*parts, html.rows_table(comparison)])


def _steps(steps: list[Step]) -> str:
    if not steps:
        return ""
    before, after = steps[0].drawing, steps[-1].drawing
    drawn = "" if before is None or after is None else side_by_side(before, after)
    return html.steps(steps) + drawn
