"""`irgym evaluate`."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from rich.table import Table
from tyro.conf import Positional

from irgym.cli.options import check_file, check_limit, check_objective, check_seed, check_target, task_of
from irgym.cli.output import console, load_policy, write_json
from irgym.core.environment import ENVIRONMENTS, Bench, Environment, spread
from irgym.core.files import lock_for
from irgym.core.schedule import Schedule
from irgym.evaluate.comparison import run_comparison
from irgym.evaluate.results import Comparison
from irgym.evaluate.run import read_problem
from irgym.evaluate.steps import Step, steps_of
from irgym.evaluate.tables import conditions, interval_text, ratio_headings
from irgym.evaluate.units import cost_text, gain_word
from irgym.search.session import Budget


@dataclass(frozen=True)
class Evaluate:
    """Run a trained policy, greedily and without search, on every program of a split.

    The folder gets evaluation.json, and steps.json: the schedule of the greatest speedup step by step.
    """

    folder: Positional[Path]
    """Run folder."""
    split: Literal["train", "test"] = "test"
    """Which programs."""
    dataset: str | None = None
    """Name of another data set than the run's."""
    limit: int | None = None
    """Only this many programs, evenly spread over the split."""
    objective: str | None = None
    """What costs are, such as `time`; by default what the policy was trained on."""
    seed: int = 0
    """Seed of the inputs that results are checked on."""
    target: str | None = None
    """What code is made for, such as x86-64-v3 (AVX2); by default what the policy was trained for."""
    farm: str | None = None
    """Where to measure: local:N, dask://HOST:PORT or slurm?workers=N; by default in one process here."""
    json: Path | None = None
    """Write the result as JSON to this file as well as to evaluation.json in the folder."""

    def run(self) -> None:
        """Evaluate, print, record."""
        check_limit(self.limit)
        check_seed(self.seed)
        check_file(self.json)
        problem = read_problem(self.folder)
        evaluation = self.folder / "evaluation.json"
        check_file(evaluation)
        environment = ENVIRONMENTS.load(problem.environment)
        dataset = environment.dataset(problem.dataset if self.dataset is None else self.dataset)
        uris = spread(dataset.split(self.split), self.limit)
        objective = problem.objective if self.objective is None else self.objective
        check_objective(environment, objective)
        target = problem.target if self.target is None else self.target
        check_target(target)
        method = f"policy:{self.folder}"
        out = console()
        with (
            lock_for(evaluation),
            environment.bench(self.farm, problem.backend) as bench,
            out.status("evaluating") as status,
        ):
            comparison = run_comparison(
                environment,
                bench,
                uris,
                [method],
                Budget(evaluations=1),
                self.seed,
                lambda name, task: load_policy(environment, name, task),
                lambda uri, _: status.update(uri),
                problem.backend,
                objective,
                target=target,
            )
            steps = _steps(environment, bench, comparison, problem.backend, target)
            write_json(evaluation, comparison.to_json())
            write_json(self.folder / "steps.json", [asdict(step) for step in steps])
        out.print(_table(comparison))
        out.print(_mean(comparison))
        out.print(conditions(comparison), style="dim")
        write_json(self.json, comparison.to_json())


def _steps(
    environment: Environment, bench: Bench, comparison: Comparison, backend: str | None, target: str | None
) -> list[Step]:
    """Return the steps of the schedule with the greatest speedup; none where the policy failed everywhere."""
    rows = [row for row in comparison.rows if row.speedup is not None]
    if not rows:
        return []
    best = max(rows, key=lambda row: row.speedup or 0.0)
    task = task_of(environment, best.program, backend, target, comparison.objective.name)
    return steps_of(task, bench.evaluator, Schedule.parse(best.schedule, task.space))


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
