"""Options that several commands share, checked before any work is done."""

import math
from pathlib import Path
from typing import Any

from irgym.core.environment import Environment
from irgym.core.errors import IrgymError
from irgym.core.files import check_writable
from irgym.core.task import Task, form_of
from irgym.search.session import Budget

DEFAULT_SECONDS = 10.0
"""Time of a search where neither time nor evaluations are given."""


def budget(evaluations: int | None, seconds: float | None) -> Budget:
    """Return the budget that the options mean.

    Raises:
        IrgymError: One of them is too small or no number.
    """
    if evaluations is None and seconds is None:
        seconds = DEFAULT_SECONDS
    if seconds == math.inf:
        raise IrgymError("a search needs an end: give a finite number of seconds")
    return Budget(evaluations, seconds)


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


def check_file(path: Path | None) -> None:
    """Make sure that a file can be written where an option says, if it says so.

    Raises:
        StorageError: Its folder does not exist or is not writable, or the path is a folder.
    """
    if path is not None:
        check_writable(path)


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
    known = environment.objectives()
    if objective is not None and objective not in known:
        raise IrgymError(
            f"{environment.name} has no objective {objective!r}: choose among {', '.join(known)}"
        )


def task_of(
    environment: Environment, uri: str, backend: str | None = None, objective: str | None = None
) -> Task[Any]:
    """Return the task of a URI under an objective, by default its own.

    Raises:
        IrgymError: There is no such program, back end or objective.
    """
    check_objective(environment, objective)
    task = environment.task(uri, backend)
    return task if objective is None else task.under(objective)
