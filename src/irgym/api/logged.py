"""Loggers of a run: of its training, and of later evaluations and comparisons."""

from collections.abc import Mapping, Sequence

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
    told = kept if training.log is None else logger_names(training.log)
    if told is None:
        return [*make_loggers(logger_names(None)), *training.loggers]
    return [NamesLogger(told), *make_loggers(told), *training.loggers]


def later_loggers(folder: RunFolder) -> Loggers:
    """Return new loggers of a training for its later results; none where the folder has no training.

    Raises:
        BackendError: A package that a logger needs is not installed.
        StorageError: The names of the loggers are damaged.
    """
    if not folder.config.exists():
        return Loggers()
    told = kept_names(folder.path)
    return Loggers(make_loggers(logger_names(None) if told is None else told))


def log_comparison(loggers: Loggers, folder: RunFolder, name: str, comparison: Comparison) -> None:
    """Log a comparison.

    Args:
        loggers: Result of `later_loggers`.
        folder: Run folder.
        name: Name of the table, `evaluation` or `comparison`; the means are the metrics
            `NAME/speedup_mean/METHOD`.
        comparison: What to log.

    Raises:
        IrgymError: A logger's tool cannot be used.
        StorageError: The folder is damaged, or cannot be written.
    """
    if not loggers.members:
        return
    means = {
        f"{name}/speedup_mean/{_short(line.method, folder)}": line.speedup.mean
        for line in comparison.summary
        if line.speedup is not None
    }
    iteration = _last(folder)
    with loggers.logging(folder.path, folder.describe(), iteration):
        loggers.evaluation(iteration, name, [_cells(row) for row in comparison.rows])
        if means:
            loggers.metrics(iteration, means)


def log_snapshots(loggers: Loggers, folder: RunFolder, results: Mapping[int, Comparison]) -> None:
    """Log the mean speedup of each snapshot, by iteration, as the metric `snapshots/speedup_mean`.

    Raises:
        IrgymError: A logger's tool cannot be used.
        StorageError: The folder is damaged, or cannot be written.
    """
    with loggers.logging(folder.path, folder.describe(), _last(folder)):
        for iteration, comparison in results.items():
            [line] = comparison.summary
            if line.speedup is not None:
                loggers.metrics(iteration, {"snapshots/speedup_mean": line.speedup.mean})


def _last(folder: RunFolder) -> int:
    """Return the number of iterations of a training."""
    rows = folder.read_metrics()
    return rows[-1]["iteration"] if rows else 0


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
