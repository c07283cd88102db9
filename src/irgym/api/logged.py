"""Loggers of a run: of its training, and of later evaluations and comparisons."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

from irgym.api.requests import Training
from irgym.comparing.results import Comparison
from irgym.comparing.rows import Row
from irgym.loggers import logger_names, make_loggers
from irgym.loggers.logger import Cell, Logger, Loggers
from irgym.loggers.names import NamesLogger, kept_names
from irgym.policies.run_folder import RunFolder


def loggers_of(folder: RunFolder, training: Training) -> Sequence[Logger]:
    """Return new loggers of a training; one that is resumed goes on with those that it had.

    Raises:
        BackendError: A package that a logger needs is not installed.
        StorageError: The names of the loggers are damaged.
    """
    kept = kept_names(folder.path) if training.resume and training.log is None else None
    names = logger_names(training.log) if kept is None else kept
    return [NamesLogger(names), *make_loggers(names), *training.loggers]


def log_comparison(folder: RunFolder, name: str, comparison: Comparison) -> None:
    """Log a comparison to the loggers of the run in a folder, if a training left any there.

    Args:
        folder: Run folder.
        name: Name of the table, `evaluation` or `comparison`; the means are the metrics
            `NAME/speedup_mean/METHOD`.
        comparison: What to log.

    Raises:
        BackendError: A package that a logger needs is not installed.
        StorageError: The folder is damaged, or cannot be written.
    """
    means = {
        f"{name}/speedup_mean/{_short(line.method, folder)}": line.speedup.mean
        for line in comparison.summary
        if line.speedup is not None
    }
    rows = folder.read_metrics()
    iteration = rows[-1]["iteration"] if rows else 0
    with _logging(folder, iteration) as loggers:
        loggers.evaluation(iteration, name, [_cells(row) for row in comparison.rows])
        if means:
            loggers.metrics(iteration, means)


def log_snapshots(folder: RunFolder, results: Mapping[int, Comparison]) -> None:
    """Log the mean speedup of each snapshot, by iteration, as the metric `snapshots/speedup_mean`.

    Raises:
        BackendError: A package that a logger needs is not installed.
        StorageError: The folder is damaged, or cannot be written.
    """
    with _logging(folder, max(results)) as loggers:
        for iteration, comparison in results.items():
            [line] = comparison.summary
            if line.speedup is not None:
                loggers.metrics(iteration, {"snapshots/speedup_mean": line.speedup.mean})


@contextmanager
def _logging(folder: RunFolder, iteration: int) -> Generator[Loggers]:
    """Open the loggers of a run for later results; none if no training left their names."""
    loggers = Loggers(make_loggers(kept_names(folder.path) or ()))
    with loggers.logging(folder.path, folder.describe() if loggers.members else {}, iteration):
        yield loggers


def _short(method: str, folder: RunFolder) -> str:
    """Return a method's name without the path of the run folder itself."""
    return method.removesuffix(f":{folder.path}")


def _cells(row: Row) -> dict[str, Cell]:
    return {
        "program": row.program,
        "method": row.method,
        "cost": row.cost,
        "speedup": row.speedup,
        "baseline_ratio": row.baseline_ratio,
        "seconds": row.seconds,
        "evaluations": row.evaluations,
        "validated": row.validated,
        "schedule": row.schedule,
        "detail": row.detail,
    }
