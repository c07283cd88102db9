"""What a run folder says about the problem that its policy was trained on."""

import json
from dataclasses import dataclass
from pathlib import Path

from irgym.core.errors import StorageError


@dataclass(frozen=True)
class RunProblem:
    """The problem of a training run.

    Attributes:
        environment: Name of the environment.
        dataset: Name of the data set, whose training split was used.
        backend: Back end that was asked for; None for the preferred one.
        peak_gflops: The machine's peak that rewards refer to; None where they need none.
        objective: Objective that was asked for; None for the tasks' own.
    """

    environment: str
    dataset: str
    backend: str | None
    peak_gflops: float | None
    objective: str | None = None


def read_problem(folder: Path) -> RunProblem:
    """Read `config.json` of a run folder.

    Raises:
        StorageError: The folder is no training run, or the file is damaged.
    """
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text())
        return RunProblem(
            config["environment"],
            config["dataset"],
            config["backend"],
            config["peak_gflops"],
            config.get("objective"),
        )
    except (FileNotFoundError, NotADirectoryError):
        raise StorageError(f"{folder} is not a training run: name a folder that irgym train wrote") from None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise StorageError(f"{path} is damaged: restore it or train again") from error
