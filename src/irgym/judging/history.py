"""History: a line for each result of `tune`; a later search can continue from them."""

import fcntl
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

from irgym.base.errors import StorageError, explained
from irgym.base.files import make_folder
from irgym.base.json_files import read_json_lines
from irgym.core.task import Task
from irgym.judging.finding import over
from irgym.judging.result import Tuned
from irgym.measure.machine import cache_dir


@dataclass(frozen=True)
class Known:
    """A result of the past.

    Attributes:
        program: URI.
        objective: Name of what a cost is.
        unit: Its unit, empty for counts.
        target: What code was made for; empty where costs depend on none.
        conditions: Key of the machine, and of what a candidate could use.
        schedule: Text of the schedule; empty for the original program.
        cost: Cost measured after the search.
        cost_as_written: Cost of the program with no action taken.
        baseline: Name of the baseline; None where there was none.
        baseline_ratio: The baseline's time over ours; None without one.
        validated: Whether the results agreed with the original program's.
        search: Name of the search.
        policy: Name of the policy that led it; None where none did.
        evaluations: Number of distinct candidates evaluated.
        seconds: Wall-clock time of the search.
        date: ISO 8601, UTC.
        version: Version of irgym.
    """

    program: str
    objective: str
    unit: str
    target: str
    conditions: str
    schedule: str
    cost: float
    cost_as_written: float
    baseline: str | None
    baseline_ratio: float | None
    validated: bool
    search: str
    policy: str | None
    evaluations: int
    seconds: float
    date: str
    version: str

    @property
    def speedup(self) -> float:
        """Original cost over the cost."""
        return over(self.cost_as_written, self.cost)


class History:
    """The results of the past, in a file of JSON lines.

    Args:
        path: The file; by default in the folder of the user's caches.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or cache_dir() / "history.jsonl"

    def add(self, result: Tuned, conditions: str) -> None:
        """Record a result of a search.

        Raises:
            StorageError: The file cannot be written.
        """
        search = result.search
        if search is None:
            raise ValueError("the schedule was given, not found")
        known = Known(
            program=result.program,
            objective=result.objective.name,
            unit=result.objective.unit,
            target=_target(result.task),
            conditions=conditions,
            schedule=result.schedule,
            cost=result.cost,
            cost_as_written=result.cost_as_written,
            baseline=result.baseline,
            baseline_ratio=result.baseline_ratio,
            validated=result.validated,
            search=search.name,
            policy=search.policy,
            evaluations=search.evaluations,
            seconds=search.seconds,
            date=result.date,
            version=version("irgym"),
        )
        line = (json.dumps(asdict(known)) + "\n").encode()
        make_folder(self.path.parent)
        with explained(f"cannot write {self.path}", "free some space, or set IRGYM_CACHE_DIR"):
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                while line:
                    line = line[os.write(descriptor, line) :]
            finally:
                os.close(descriptor)

    def of(self, task: Task[Any], conditions: str) -> list[Known]:
        """Return the results on a program under the same conditions, the oldest first.

        Raises:
            StorageError: The file cannot be read, or is damaged.
        """
        wanted = task.uri, task.objective.name, _target(task), conditions
        names = {field.name for field in fields(Known)}
        found: list[Known] = []
        for row in read_json_lines(self.path):
            if row.keys() != names:
                raise StorageError(f"{self.path} holds rows that are no results: move it away")
            known = Known(**row)
            if (known.program, known.objective, known.target, known.conditions) == wanted:
                found.append(known)
        return found


def best_first(known: Sequence[Known]) -> list[Known]:
    """Return the results with the least costs first, one for each schedule."""
    distinct = {result.schedule: result for result in sorted(known, key=lambda result: -result.cost)}
    return sorted(distinct.values(), key=lambda result: result.cost)


def _target(task: Task[Any]) -> str:
    return "" if task.target is None else task.target.name
