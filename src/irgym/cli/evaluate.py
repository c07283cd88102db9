"""`irgym evaluate`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import stdev

from tyro.conf import OmitArgPrefixes, Positional

from irgym.api.evaluation import evaluate
from irgym.api.jit_cse import JIT_CSE, evaluate_jit_cse
from irgym.api.requests import Evaluating, Measuring
from irgym.api.snapshots import evaluate_snapshots
from irgym.base.errors import IrgymError
from irgym.cli.output import Output, StatusLine, console, write_json_to
from irgym.cli.progress import Shown
from irgym.comparing.results import Comparison
from irgym.comparing.rows import RAW, Row
from irgym.comparing.summary import Summary
from irgym.judging.units import cost_text, gain_word
from irgym.reporting.tables import NO_GAIN, cell, conditions, failures, interval_text, ratio_headings
from irgym.reporting.wide_table import WideTable


@dataclass(frozen=True)
class Evaluate:
    """Run a trained policy on every program of a split, greedily and without a search.

    The result is the best of the final state, the best state seen on the way, and the original program. The
    policy's final state as it is stands beside it, as `raw policy`.

    Writes evaluation.json into the run folder, and steps.json: the schedule of the greatest speedup, step by
    step.
    """

    folder: Positional[str]
    """Run folder; with --environment also another policy: the name of one that ships, sb3:FILE, or
    file.py:function or package.module:function, which returns one."""
    programs: tuple[str, ...] = ()
    """URIs or files; by default a split of the data set."""
    environment: str | None = None
    """Name of the environment, for a policy that has no run folder; by default the run's. irgym/JitCse-v0
    takes models of Stable-Baselines3."""
    wrap: tuple[str, ...] = ()
    """Gymnasium wrappers that a model of irgym/JitCse-v0 was trained in, the innermost first:
    package.module:Class or file.py:function."""
    evaluating: OmitArgPrefixes[Evaluating] = field(default_factory=Evaluating)
    seed: int = 0
    """Seed of the inputs that results are checked on."""
    measuring: OmitArgPrefixes[Measuring] = field(default_factory=Measuring)
    """Objective, back end and target are the run's unless given."""
    json: Path | None = None
    """Also write the result as JSON to this file, beside evaluation.json in the folder."""

    csv: Path | None = None
    """Write a row for each program to this file, for the policy and for its final states as they are: ratios,
    schedule, seconds and others."""

    snapshots: bool = False
    """Evaluate the snapshots of the training instead, each by its final states; writes snapshots.json."""

    def run(self) -> None:
        """Evaluate, print, record."""
        out = console()
        if self.csv is not None and (self.snapshots or self.environment == JIT_CSE):
            other = "--snapshots" if self.snapshots else f"--environment {JIT_CSE}"
            raise IrgymError(f"{other} writes no CSV: leave out --csv, and use --json")
        if self.snapshots:
            self._run_snapshots(out)
            return
        if self.environment == JIT_CSE:
            evaluation = evaluate_jit_cse(
                self.folder, evaluating=self.evaluating, target=self.measuring.target, wrappers=self.wrap
            )
            out.print(evaluation.text)
            write_json_to(self.json, evaluation.to_json())
            return
        if self.wrap:
            raise IrgymError(
                f"--wrap is for models of {JIT_CSE}: give --environment {JIT_CSE}, or leave it out"
            )
        notes: list[str] = []
        with out.status("evaluating") as status:
            shown = _Shown(out, status, notes, self.csv)
            with shown.showing_when_interrupted(lambda so_far: self._show(out, so_far, [])):
                comparison = evaluate(
                    self.folder,
                    self.programs,
                    environment=self.environment,
                    seed=self.seed,
                    evaluating=self.evaluating,
                    measuring=self.measuring,
                    observer=shown,
                )
        self._show(out, comparison, notes)

    def _show(self, out: Output, comparison: Comparison, notes: Sequence[str]) -> None:
        """Print a result, and write it."""
        out.print(_table(comparison))
        for line in _schedules(comparison):
            out.print(line, style="dim")
        for reason in failures(comparison):
            out.print(reason)
        policy, raw = comparison.summary
        out.print(f"geometric mean over {policy.programs} programs: {_means(comparison, policy)}")
        out.print(f"raw policy: {_means(comparison, raw)}")
        for note in notes:
            out.print(note)
        out.print(conditions(comparison), style="dim")
        write_json_to(self.json, comparison.to_json())

    def _run_snapshots(self, out: Output) -> None:
        """Evaluate the snapshots, print, record."""
        with out.status("evaluating") as status:
            results = evaluate_snapshots(
                self.folder,
                self.programs,
                seed=self.seed,
                evaluating=self.evaluating,
                measuring=self.measuring,
                observer=Shown(out, status),
            )
        out.print(_snapshot_table(results))
        for comparison in results.values():
            for reason in failures(comparison):
                out.print(reason)
        out.print(conditions(next(iter(results.values()))), style="dim")
        data = {str(iteration): comparison.to_json() for iteration, comparison in results.items()}
        write_json_to(self.json, data)


def _snapshot_table(results: Mapping[int, Comparison]) -> WideTable:
    """Return a line for each snapshot."""
    first = next(iter(results.values()))
    lines: list[list[str]] = []
    for iteration, comparison in results.items():
        [line] = comparison.summary
        cells = [f"{line.programs - line.failed} of {line.programs}", interval_text(line.speedup, "x")]
        lines.append([str(iteration), *cells])
    return WideTable("", ["iteration", "programs", f"mean {gain_word(first.objective)}"], lines)


class _Shown(Shown):
    """Shows which program is at hand, and keeps notes for the end."""

    def __init__(self, out: Output, status: StatusLine, notes: list[str], csv: Path | None) -> None:
        super().__init__(out, status, with_method=False, csv=csv)
        self._notes = notes

    def note(self, text: str) -> None:
        """Keep a note."""
        self._notes.append(text)


def _means(comparison: Comparison, line: Summary) -> str:
    """Return the geometric means of the policy, or of the raw policy, and the spread, in words."""
    rows = [row for row in comparison.rows if row.method == line.method]
    gains = [row.speedup for row in rows if row.speedup is not None]
    means = [f"{gain_word(comparison.objective)} {interval_text(line.speedup, 'x')}"]
    if len(gains) > 1:
        means[0] += f" (standard deviation {stdev(gains):.2f}, greatest {max(gains):.2f}x)"
    if comparison.baseline:
        means.append(f"ratio to {comparison.baseline} {interval_text(line.baseline_ratio)}")
    if comparison.reference:
        means.append(f"ratio to {comparison.reference} {interval_text(line.reference_ratio)}")
        means.append(f"gain ratio {interval_text(line.gain_ratio)}")
    return ", ".join(means)


def _table(comparison: Comparison) -> WideTable:
    """Return a line for each program."""
    heads = ["program", "result", "best state seen", gain_word(comparison.objective)]
    heads += [*ratio_headings(comparison), "raw policy", "decided in"]
    raw = {row.program: row for row in comparison.rows if row.method.startswith(f"{RAW}:")}
    rows = [row for row in comparison.rows if row is not raw[row.program]]
    cells = [[row.program, *_cells(comparison, row, raw[row.program])] for row in rows]
    return WideTable("", heads, [line + [""] * (len(heads) - len(line)) for line in cells])


def _schedules(comparison: Comparison) -> list[str]:
    """Return the schedule of each program, which may be long."""
    rows = [row for row in comparison.rows if not row.method.startswith(f"{RAW}:") and row.cost is not None]
    return [f"{row.program}: {row.schedule or '(none)'}" for row in rows]


def _cells(comparison: Comparison, row: Row, raw: Row) -> list[str]:
    """Return what there is to say of a program, beside the raw policy."""
    objective = comparison.objective
    if row.cost is None or row.best_seen is None:
        return ["failed"]
    values = [row.reference_ratio, row.gain_ratio] if comparison.reference else []
    return [
        cost_text(row.cost, objective) + (NO_GAIN if row.no_gain else ""),
        cost_text(row.best_seen, objective),
        "-" if row.speedup is None else f"{row.speedup:.2f}x",
        *([row.ratio_text or "-"] if comparison.baseline else []),
        *("-" if value is None else f"{value:.2f}" for value in values),
        cell(raw),
        "-" if raw.seconds is None else f"{raw.seconds * 1e3:.1f} ms",
    ]
