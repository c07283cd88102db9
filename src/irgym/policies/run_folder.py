"""The folder of a run: names of its files, and access to those that need no torch.

config.json             what was trained, and how
metrics.jsonl           a line for each iteration
checkpoint.pt           the newest state of the training, to resume from
checkpoint.previous.pt  the one before it
policy.pt               the policy to use
snapshots/              copies of the policy after some iterations
loggers.json            names of the loggers, whose own files are tensorboard/, csv/, wandb/, mlruns/
evaluation.json         the policy on every program of a split
snapshots.json          the same of all snapshots
steps.json              the best of its schedules, step by step
comparison.json         methods side by side
report.html             the page that shows all this
"""

import json
import os
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, cast

from irgym.base.errors import IrgymError, StorageError, explained
from irgym.base.files import check_writable, lock_for, write_file
from irgym.base.json_files import read_json, read_json_lines, write_json
from irgym.base.values import MismatchError, Range, conform
from irgym.core.uri import is_file

PROGRAMS = "programs"
"""Name of the digest of the training programs in the description of a run."""
BUDGET = ("budget_iterations", "budget_seconds")
"""Limits of a training in its description."""
CHANGING = (*BUDGET, "device")
"""Values of a description that a resumption may change."""
SNAPSHOTS = "snapshots"
"""Folder of the snapshots in a run folder."""


@dataclass(frozen=True)
class RunProblem:
    """The problem of a training run.

    Attributes:
        environment: Name of the environment.
        dataset: What names the programs, whose training split was used; several as a list.
        backend: Back end that was asked for; None for the preferred one.
        objective: Objective that was asked for; None for the tasks' own.
        targets: Names of the targets; empty if costs depend on no target.
        peaks: The peak of each target in GFLOP/s, for rewards; empty if they need none.
        holdout: Share of test programs, if one was given.
        horizon: Steps of an episode that were asked for; None for the tasks' own.
        actions: Actions that were asked for; None for all.
    """

    environment: str
    dataset: str | tuple[str, ...]
    backend: str | None
    objective: str | None = None
    targets: tuple[str, ...] = ()
    peaks: Annotated[tuple[float, ...], Range(above=0)] = ()
    holdout: Annotated[float | None, Range(0, below=1)] = None
    horizon: Annotated[int | None, Range(low=1)] = None
    actions: str | None = None


class _File:
    """The path of a file in a run folder, as an attribute of the folder."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, folder: "RunFolder", owner: type) -> Path:
        return folder.path / self._name


@dataclass(frozen=True)
class RunFolder:
    """A run on disk; the module's docstring describes its files.

    Attributes:
        path: The folder.
    """

    path: Path

    config = _File("config.json")
    metrics = _File("metrics.jsonl")
    checkpoint = _File("checkpoint.pt")
    previous = _File("checkpoint.previous.pt")
    policy = _File("policy.pt")
    snapshot_evaluation = _File("snapshots.json")
    evaluation = _File("evaluation.json")
    steps = _File("steps.json")
    comparison = _File("comparison.json")
    report = _File("report.html")

    def check(self, resume: bool) -> None:
        """Check, before any work is done, that a run can start in the folder, or resume.

        Raises:
            IrgymError: A run is to start, and the folder already holds one.
            StorageError: The folder cannot be written; or there is no run to resume.
        """
        if resume:
            self.describe()
            return
        with _written(self.path):
            if self.checkpoint.exists() or self.previous.exists():
                raise IrgymError(
                    f"{self.path} already holds a run: continue it (--resume, in Python resume=True), or "
                    "choose another folder"
                )
            nearest = next(folder for folder in (self.path, *self.path.parents) if folder.exists())
        check_writable(nearest / self.config.name)

    @contextmanager
    def held(self, resume: bool) -> Generator[None]:
        """Hold the folder as the only process that trains in it; make it for a new run.

        Raises:
            IrgymError: As for `check`.
            StorageError: As for `check`, or another process trains in the folder.
        """
        self.check(resume)
        with _written(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        with lock_for(self.path):
            yield

    def create(self, description: dict[str, Any]) -> None:
        """Create the files of a new run, whose folder is held.

        Raises:
            IrgymError: The folder already holds a run.
            StorageError: It cannot be written.
        """
        self.check(resume=False)
        with _written(self.metrics):
            self.metrics.unlink(missing_ok=True)
        write_json(self.config, description)

    def describe(self) -> dict[str, Any]:
        """Return the description given to `create`.

        Raises:
            StorageError: There is no run in the folder, or the file is damaged.
        """
        content = read_json(self.config)
        if content is None:
            raise StorageError(f"there is no run in {self.path}: check the path or start one first")
        if not isinstance(content, dict):
            raise StorageError(f"{self.config} is damaged: restore it from a copy or start another run")
        return cast(dict[str, Any], content)

    def expect(self, description: dict[str, Any]) -> None:
        """Check that the run was started with `description`.

        Raises:
            IrgymError: It was started with something else; the message names the first difference.
            StorageError: There is no run in the folder, or the file is damaged.
        """
        # Through JSON, so that tuples compare equal to the lists that they were written as.
        wanted, found = _leaves(json.loads(json.dumps(description))), _leaves(self.describe())
        for name in (name for name in (*wanted, *found) if name not in CHANGING):
            if name == PROGRAMS and wanted.get(name) != found.get(name):
                raise IrgymError(
                    f"the programs of the run in {self.path} have changed since it began: restore their "
                    "files, or start another run"
                )
            if wanted.get(name) != found.get(name):
                raise IrgymError(
                    f"the run in {self.path} has {name} = {found.get(name)}, not {wanted.get(name)}: "
                    "resume it with the options that it was started with"
                )

    def renew(self, description: dict[str, Any]) -> None:
        """Record the budget and the device of a run that is resumed; `expect` has compared the rest.

        Raises:
            StorageError: The file cannot be written.
        """
        write_json(self.config, description)

    def problem(self) -> RunProblem:
        """Return the problem of a training run.

        Raises:
            StorageError: The folder is no training run, or the file is damaged.
        """
        config = read_json(self.config)
        if config is None:
            raise StorageError(f"{self.path} is not a training run: name a folder that irgym train wrote")
        try:
            known = {field.name: config[field.name] for field in fields(RunProblem) if field.name in config}
            return conform(RunProblem, known)
        except (TypeError, MismatchError) as error:
            raise StorageError(f"{self.config} is damaged ({error}): restore it or train again") from error

    def snapshot(self, iteration: int) -> Path:
        """Return the file of the snapshot after an iteration; make its folder where it is missing.

        Raises:
            StorageError: The folder cannot be made.
        """
        file = self.path / SNAPSHOTS / f"policy-{iteration:06d}.pt"
        with _written(file.parent):
            file.parent.mkdir(exist_ok=True)
        return file

    def snapshots(self) -> dict[int, Path]:
        """Return the files of the snapshots by iteration, in order."""
        files = sorted((self.path / SNAPSHOTS).glob("policy-*.pt"))
        return {int(file.stem.removeprefix("policy-")): file for file in files}

    def read_metrics(self) -> list[dict[str, Any]]:
        """Return the metrics of all iterations; a last line that was cut off is left out.

        Raises:
            StorageError: The file cannot be read or is damaged.
        """
        return read_json_lines(self.metrics)

    @property
    def annealed(self) -> int | None:
        """Number of iterations over which the run anneals hyper-parameters; None where it is not recorded.

        Raises:
            StorageError: There is no run in the folder, or the file is damaged.
        """
        learner: Any = self.describe().get("config")
        iterations: Any = (
            cast(dict[str, Any], learner).get("iterations") if isinstance(learner, dict) else None
        )
        return iterations if isinstance(iterations, int) else None

    @property
    def untrained(self) -> bool:
        """Whether a training in the folder has learned nothing yet, and began with random weights.

        Raises:
            StorageError: A file is damaged.
        """
        config = read_json(self.config)
        if not isinstance(config, dict) or self.read_metrics():
            return False
        agent = cast(dict[str, Any], config).get("config")
        return isinstance(agent, dict) and not cast(dict[str, Any], agent).get("start")

    @property
    def cut_off(self) -> str:
        """A sentence if the last line of the metrics was cut off, as by a full disk; empty if it is whole."""
        if not is_file(self.metrics) or not self.metrics.stat().st_size:
            return ""
        with self.metrics.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            whole = file.read() == b"\n"
        return "" if whole else f"the last line of {self.metrics} was cut off and is left out"

    def append_metrics(self, metrics: dict[str, Any]) -> None:
        """Add a line.

        Raises:
            StorageError: It cannot be written.
        """
        with _written(self.metrics), self.metrics.open("a") as file:
            file.write(json.dumps(metrics) + "\n")

    def truncate_metrics(self, iteration: int) -> None:
        """Forget the lines after `iteration`.

        Raises:
            StorageError: The file cannot be read or written.
        """
        rows = self.read_metrics()
        for number, row in enumerate(rows, start=1):
            if not isinstance(row.get("iteration"), int):
                raise StorageError(f"{self.metrics} is damaged at line {number}: remove that line")
        lines = [json.dumps(row) + "\n" for row in rows if row["iteration"] <= iteration]
        write_file(self.metrics, "".join(lines).encode())


def _written(path: Path) -> AbstractContextManager[None]:
    return explained(f"cannot write {path}", "free some space or choose another folder")


def _leaves(values: dict[str, Any]) -> dict[str, Any]:
    """Return the leaf values of nested dictionaries by their keys."""
    leaves: dict[str, Any] = {}
    for name, value in values.items():
        leaves.update(_leaves(cast(dict[str, Any], value)) if isinstance(value, dict) else {name: value})
    return leaves


def options_of_run(description: dict[str, Any]) -> dict[str, Any] | None:
    """Return the options of `irgym train` that a run was started with; None for another configuration.

    Args:
        description: The content of a configuration file.
    """
    learner = description.get("config")
    if not isinstance(learner, dict) or not {"environment", "agent"} <= description.keys():
        return None
    settings = dict(cast(dict[str, Any], learner))
    options = {name: value for name, value in description.items() if name not in ("config", *BUDGET)}
    iterations, seconds = (description.get(name) for name in BUDGET)
    annealed = settings.pop("iterations", None)
    return options | {
        "seed": settings.pop("seed", 0),
        "set": settings,
        "iterations": annealed if iterations is None and seconds is None else iterations,
        "seconds": seconds,
    }
