"""What a run folder says about the problem that its policy was trained on."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

from irgym.core.errors import StorageError
from irgym.core.files import read_json
from irgym.core.values import MismatchError, Range, conform


@dataclass(frozen=True)
class RunProblem:
    """The problem of a training run.

    Attributes:
        environment: Name of the environment.
        dataset: Name of the data set, whose training split was used.
        backend: Back end that was asked for; None for the preferred one.
        peak_gflops: The machine's peak that rewards refer to; None where they need none.
        objective: Objective that was asked for; None for the tasks' own.
        target: Name of the target that code was made for; None where costs depend on none.
    """

    environment: str
    dataset: str
    backend: str | None
    peak_gflops: Annotated[float | None, Range(above=0)]
    objective: str | None = None
    target: str | None = None


def read_problem(folder: Path) -> RunProblem:
    """Read `config.json` of a run folder.

    Raises:
        StorageError: The folder is no training run, or the file is damaged.
    """
    path = folder / "config.json"
    config = read_json(path)
    if config is None:
        raise StorageError(f"{folder} is not a training run: name a folder that irgym train wrote")
    try:
        known = {field.name: config[field.name] for field in fields(RunProblem) if field.name in config}
        return conform(RunProblem, known)
    except (TypeError, MismatchError) as error:
        raise StorageError(f"{path} is damaged ({error}): restore it or train again") from error
