"""`irgym.evaluate_snapshots`: how good the policy was in the course of its training."""

from collections.abc import Sequence
from pathlib import Path

from irgym.api.checks import check_file, check_options, path_of
from irgym.api.evaluating import evaluation_plan
from irgym.api.logged import later_loggers, log_snapshots
from irgym.api.requests import Evaluating, Measuring, checked
from irgym.base.errors import IrgymError
from irgym.base.files import lock_for
from irgym.base.json_files import write_json
from irgym.comparing.comparison import ComparisonObserver, run_comparison
from irgym.comparing.results import Comparison
from irgym.comparing.rows import RAW
from irgym.policies.run_folder import RunFolder


def evaluate_snapshots(
    run: str | Path,
    programs: Sequence[str | Path] = (),
    *,
    seed: int = 0,
    evaluating: Evaluating = Evaluating(),
    measuring: Measuring = Measuring(),
    observer: ComparisonObserver | None = None,
) -> dict[int, Comparison]:
    """Run each snapshot of a training on every program of a split, greedily and without a search.

    Each is judged by its final states as they are. Writes the comparison of all into the run folder, and logs
    the means to the loggers of the run.

    Args:
        run: Run folder of a training with `snapshot_every`.
        programs: URIs or files; by default a split of the data set.
        seed: Seed of the inputs that results are checked on.
        evaluating: Data set, by default the run's, and split.
        measuring: Objective, back end, target and farm.
        observer: Sees each result and the progress.

    Returns:
        By iteration, a comparison whose only method is the snapshot of that iteration.

    Raises:
        IrgymError: The run has no snapshots, or as for `evaluate`.
        StorageError: As for `evaluate`.
    """
    check_options(seed=seed)
    checked(evaluating, Evaluating)
    checked(measuring, Measuring)
    folder = RunFolder(path_of(run, "a run folder"))
    problem = folder.problem()
    methods = {iteration: f"{RAW}:{file}" for iteration, file in folder.snapshots().items()}
    if not methods:
        raise IrgymError(f"{folder.path} has no snapshots: train with --snapshot-every N to keep some")
    place = folder.snapshot_evaluation
    check_file(place)
    loggers = later_loggers(folder)
    plan, where = evaluation_plan(problem, tuple(methods.values()), programs, evaluating, seed, measuring)
    with lock_for(place), where.bench(plan.environment) as bench:
        comparison = run_comparison(plan, bench, observer=observer)
        write_json(place, comparison.to_json())
    results = {iteration: comparison.of(method) for iteration, method in methods.items()}
    log_snapshots(loggers, folder, results)
    return results
