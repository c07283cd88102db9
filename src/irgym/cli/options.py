"""Options that several commands share, checked before any work is done."""

from pathlib import Path
from typing import Any

from irgym.core.environment import Dataset, Environment, objective_of
from irgym.core.errors import IrgymError, StorageError
from irgym.core.files import check_writable
from irgym.core.task import Task, form_of
from irgym.measure.target import target_named
from irgym.search.session import Budget

DEFAULT_SECONDS = 10.0
"""Time of a search where neither time nor evaluations are given."""


MOST = 10**9
"""Greatest number and greatest time in seconds that an option takes: more is a slip of the pen."""


def budget(evaluations: int | None, seconds: float | None) -> Budget:
    """Return the budget that the options mean.

    Raises:
        IrgymError: One of them is too small or no number.
    """
    if evaluations is None and seconds is None:
        seconds = DEFAULT_SECONDS
    limits = Budget(evaluations, seconds)
    check_most(evaluations, "evaluations")
    check_most(seconds, "seconds")
    return limits


def check_most(number: float | None, what: str) -> None:
    """Make sure that a number is none that can only be a mistake.

    Raises:
        IrgymError: It is.
    """
    if number is not None and number > MOST:
        raise IrgymError(f"{number:g} {what} are too many: give at most {MOST}")


def check_seconds(seconds: float | None, purpose: str) -> None:
    """Make sure that some time is left for what it is meant for, and that it ends.

    Raises:
        IrgymError: It is too short, or does not end.
    """
    if seconds is not None and not seconds > 0:
        raise IrgymError(f"{seconds:g} seconds are too short {purpose}: give more than 0")
    check_most(seconds, "seconds")


def check_count(number: int | None, what: str, purpose: str) -> None:
    """Make sure that there is at least one of something.

    Raises:
        IrgymError: There is none, or so many that it can only be a mistake.
    """
    if number is not None and number < 1:
        raise IrgymError(f"{number} {what} are too few {purpose}: give at least 1")
    check_most(number, what)


def check_seed(seed: int) -> None:
    """Make sure that random generators take the seed.

    Raises:
        IrgymError: It is negative or too large.
    """
    if not 0 <= seed < 2**63:
        raise IrgymError(f"a seed of {seed} is out of range: give 0 or more, below 2^63")


def check_limit(limit: int | None) -> None:
    """Make sure that a limit leaves some programs.

    Raises:
        IrgymError: It leaves none.
    """
    if limit is not None and limit < 1:
        raise IrgymError(f"a limit of {limit} leaves no program: give at least 1")
    check_most(limit, "programs")


def check_file(path: Path | None) -> None:
    """Make sure that a file can be written where an option says, if it says so.

    Raises:
        StorageError: Its folder does not exist or is not writable, or the path is a folder.
    """
    if path is not None:
        check_writable(path)


def check_name(folder: Path) -> None:
    """Make sure that a folder's name is text, as TensorBoard asks.

    Raises:
        StorageError: It has bytes that are no UTF-8.
    """
    try:
        str(folder).encode()
    except UnicodeEncodeError as error:
        raise StorageError(
            f"{folder} has bytes in its name that are no UTF-8: choose another name"
        ) from error


def check_export(task: Task[Any], path: Path | None) -> None:
    """Make sure that an export can be written where an option says, if it says so, before any work is done.

    Raises:
        IrgymError: The suffix names no form that the task exports.
        StorageError: The file cannot be written there.
    """
    if path is not None:
        form_of(path, task.forms)
        check_file(path)


def check_objective(environment: Environment, objective: str | None) -> None:
    """Make sure that an environment has an objective, if one is named.

    Raises:
        IrgymError: It has none of that name; the message lists those that it has.
    """
    if objective is not None:
        objective_of(environment, objective)


def check_target(target: str | None) -> None:
    """Make sure that there is a target of that name, if one is named; also where costs depend on none.

    Raises:
        BackendError: There is none; the message lists those that there are.
    """
    if target is not None:
        target_named(target, runs=False)


def dataset_named(environment: Environment, name: str | None) -> Dataset:
    """Return a data set of an environment, by default its own.

    Raises:
        ProgramError: There is none of that name.
    """
    return environment.dataset(environment.default_dataset if name is None else name)


def task_of(
    environment: Environment,
    uri: str,
    backend: str | None = None,
    target: str | None = None,
    objective: str | None = None,
) -> Task[Any]:
    """Return the task of a URI for a target and under an objective, by default its own.

    Raises:
        IrgymError: There is no such program, back end, target or objective.
    """
    check_objective(environment, objective)
    check_target(target)
    return environment.task(uri, backend, target, objective)
