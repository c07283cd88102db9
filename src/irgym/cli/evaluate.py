"""`irgym evaluate`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rich.table import Table
from tyro.conf import Positional

from irgym.api.training import evaluate
from irgym.cli.output import console, write_json_to
from irgym.cli.progress import Shown
from irgym.evaluation.results import Comparison
from irgym.evaluation.tables import conditions, interval_text, ratio_headings
from irgym.evaluation.units import cost_text, gain_word


@dataclass(frozen=True)
class Evaluate:
    """Run a trained policy on every program of a split, greedily and without a search.

    Writes evaluation.json into the run folder, and steps.json: the schedule of the greatest speedup, step by
    step.
    """

    folder: Positional[Path]
    """Run folder."""
    split: Literal["train", "test"] = "test"
    """Which programs."""
    dataset: str | None = None
    """Name of a data set; by default the run's."""
    limit: int | None = None
    """Only this many programs, evenly spread over the split."""
    objective: str | None = None
    """What is measured, such as `time`; by default the objective that the policy was trained on."""
    target: str | None = None
    """What code is made for, such as x86-64-v3 (AVX2); by default the policy's own."""
    seed: int = 0
    """Seed of the inputs that results are checked on."""
    farm: str | None = None
    """Where to measure: local:N, dask://HOST:PORT or slurm?workers=N; by default in one process here."""
    json: Path | None = None
    """Also write the result as JSON to this file, beside evaluation.json in the folder."""

    def run(self) -> None:
        """Evaluate, print, record."""
        out = console()
        with out.status("evaluating") as status:
            comparison = evaluate(
                self.folder,
                split=self.split,
                dataset=self.dataset,
                limit=self.limit,
                objective=self.objective,
                target=self.target,
                seed=self.seed,
                farm=self.farm,
                observer=Shown(out, status, with_method=False),
            )
        out.print(_table(comparison))
        out.print(_mean(comparison))
        out.print(conditions(comparison), style="dim")
        write_json_to(self.json, comparison.to_json())


def _mean(comparison: Comparison) -> str:
    """Return the geometric means in words."""
    [line] = comparison.summary
    means = [f"{gain_word(comparison.objective)} {interval_text(line.speedup, 'x')}"]
    if comparison.baseline:
        means.append(f"ratio to {comparison.baseline} {interval_text(line.baseline_ratio)}")
    if comparison.reference:
        means.append(f"ratio to {comparison.reference} {interval_text(line.reference_ratio)}")
        means.append(f"gain ratio {interval_text(line.gain_ratio)}")
    return f"geometric mean over {line.programs} programs: {', '.join(means)}"


def _table(comparison: Comparison) -> Table:
    """Return a line for each program."""
    objective = comparison.objective
    ratios = ratio_headings(comparison)
    heads = ["program", "schedule", "result", "best state seen", gain_word(objective)]
    table = Table(*heads, *ratios, "decided in")
    for row in comparison.rows:
        if row.cost is None or row.best_seen is None:
            table.add_row(row.program, f"failed: {row.detail}")
            continue
        values = [row.baseline_ratio] if comparison.baseline else []
        values += [row.reference_ratio, row.gain_ratio] if comparison.reference else []
        table.add_row(
            row.program,
            row.schedule,
            cost_text(row.cost, objective),
            cost_text(row.best_seen, objective),
            "-" if row.speedup is None else f"{row.speedup:.2f}x",
            *("-" if value is None else f"{value:.2f}" for value in values),
            "-" if row.seconds is None else f"{row.seconds * 1e3:.1f} ms",
        )
    return table
