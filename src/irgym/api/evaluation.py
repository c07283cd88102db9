"""`irgym.evaluate`: how good a policy is on programs that it has not seen."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from irgym.api.checks import check_file, check_options
from irgym.api.evaluating import evaluation_plan
from irgym.api.logged import later_loggers, log_comparison
from irgym.api.requests import Evaluating, Measuring, checked
from irgym.api.stopping import is_unchanged, note_of_no_change
from irgym.api.subjects import subject_of
from irgym.base.files import lock_for
from irgym.comparing.comparison import ComparisonObserver, Recorder, run_comparison
from irgym.comparing.results import Comparison
from irgym.comparing.rows import RAW
from irgym.comparing.steps import Step, steps_of, write_steps
from irgym.core.bench import Bench
from irgym.core.environment import Environment
from irgym.core.schedule import Schedule
from irgym.loggers.logger import Loggers


def evaluate(
    run: Any,
    programs: Sequence[str | Path] = (),
    *,
    environment: str | None = None,
    seed: int = 0,
    evaluating: Evaluating = Evaluating(),
    measuring: Measuring = Measuring(),
    observer: ComparisonObserver | None = None,
) -> Comparison:
    """Run a trained policy on programs, by default of the run's test split, greedily and without a search.

    The result is the best of the final state, the best state seen on the way, and the original program, so it
    is never worse than the original. The policy's final state as it is, by which to judge the policy, is
    another method of the comparison.

    Writes the comparison into the run folder, and the schedule of the greatest speedup, step by step.

    Args:
        run: Run folder; where the environment is named also another policy, see `irgym.api.subjects`.
        programs: URIs or files; by default a split of the data set.
        environment: Name of the environment, for a policy that has no run folder; by default the run's.
        seed: Seed of the inputs that results are checked on.
        evaluating: Data set, by default the run's, and split.
        measuring: Objective, back end, target and farm; by default those of the run, but for the farm, and
            this machine if the run has several targets.
        observer: Sees each result and the progress, and is told if the policy changes no program.

    Returns:
        A comparison with two methods: `policy:NAME`, NAME being the folder, and the raw policy, `raw:NAME`.

    Raises:
        IrgymError: Something that is named does not exist or makes no sense.
        StorageError: The folder is no training run, is damaged, or cannot be written.
    """
    check_options(seed=seed)
    checked(evaluating, Evaluating)
    checked(measuring, Measuring)
    subject = subject_of(run, environment)
    folder, found = subject.folder, subject.policies.environment
    watching = observer or ComparisonObserver()
    methods = (subject.method,)
    plan, where = evaluation_plan(
        subject.problem, methods, programs, evaluating, seed, measuring, watching.note
    )
    places: list[Path] = []
    if folder is not None:
        places.append(folder.evaluation)
        check_file(folder.evaluation)
    loggers = Loggers() if folder is None else later_loggers(folder)
    with ExitStack() as held:
        for place in places:
            held.enter_context(lock_for(place))
        bench = held.enter_context(where.bench(found))
        comparison = run_comparison(plan, bench, subject.policies, Recorder(places, watching))
        if folder is not None:
            write_steps(folder.steps, _best_steps(comparison, subject.method, where, found, bench))
    if folder is not None:
        log_comparison(loggers, folder, "evaluation", comparison)
    if observer is not None and _leaves_all(comparison, where, found):
        observer.note(note_of_no_change(found, len(plan.programs)))
    return comparison


def _leaves_all(comparison: Comparison, measuring: Measuring, environment: Environment) -> bool:
    """Say whether the raw policy ran on every program, and left each as it is."""
    rows = [row for row in comparison.rows if row.method.startswith(f"{RAW}:")]
    return len(rows) == len(comparison.programs) and all(
        row.cost is not None and is_unchanged(measuring.task(environment, row.program), row.schedule)
        for row in rows
    )


def _best_steps(
    comparison: Comparison, method: str, measuring: Measuring, environment: Environment, bench: Bench
) -> Sequence[Step]:
    """Return the steps of a method's schedule with the greatest speedup; none if it failed everywhere."""
    rows = [row for row in comparison.rows if row.method == method and row.speedup is not None]
    if not rows:
        return []
    best = max(rows, key=lambda row: row.speedup or 0.0)
    task = measuring.task(environment, best.program)
    return steps_of(task, bench.evaluator, Schedule.parse(best.schedule, task.space))
