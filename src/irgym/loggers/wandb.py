"""Weights & Biases: a run for each run folder, online or offline.

It needs `wandb login` or `WANDB_MODE=offline`; `WANDB_PROJECT`, `WANDB_ENTITY` and the other variables of
wandb apply.
"""

import os
import secrets
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from irgym.base.errors import BackendError, IrgymError, StorageError, explained
from irgym.loggers.logger import Cell

PROJECT = "irgym"
"""Project of the runs, unless `WANDB_PROJECT` names another."""

ID_FILE = "wandb.id"
"""File in the run folder with the identifier of its run, by which it is continued."""


class WandbLogger:
    """Logs to a run of Weights & Biases; offline, `wandb sync` sends it later.

    Raises:
        BackendError: wandb is not installed.
    """

    def __init__(self) -> None:
        self._wandb = _imported()

    def start(self, run: Path, configuration: Mapping[str, Any], iteration: int) -> None:
        """Start a run, or continue that of the folder.

        Raises:
            IrgymError: Weights & Biases cannot be reached, or there is no API key.
            StorageError: The folder cannot be written.
        """
        file = run / ID_FILE
        with explained(f"cannot write {file}", "free some space or choose another folder"):
            if not file.exists():
                file.write_text(secrets.token_hex(4))
            self._id = file.read_text().strip()
        with _reached(self._wandb, "run wandb login, or set WANDB_MODE=offline"):
            self._run: Any = self._wandb.init(
                project=os.environ.get("WANDB_PROJECT", PROJECT),
                id=self._id,
                name=run.resolve().name,
                dir=str(run),
                config=dict(configuration),
                resume="allow",
                # The command's own output stays as it is, and no list of all metrics follows it.
                settings=self._wandb.Settings(console="off", quiet=True),
            )
            # wandb's own steps only grow, which a run that resumes from an earlier checkpoint does not keep.
            self._run.define_metric("iteration")
            self._run.define_metric("*", step_metric="iteration")

    def metrics(self, iteration: int, values: Mapping[str, float]) -> None:
        """Log numbers along the axis `iteration`."""
        self._run.log({"iteration": iteration, **values})

    def evaluation(self, iteration: int, name: str, rows: Sequence[Mapping[str, Cell]]) -> None:
        """Log a table."""
        if rows:
            table = self._wandb.Table(columns=list(rows[0]), data=[list(row.values()) for row in rows])
            self._run.log({"iteration": iteration, name: table})

    def artefact(self, iteration: int, path: Path) -> None:
        """Log a file as a version of the artefact `NAME-RUN`, such as `policy-1a2b3c4d`."""
        artefact = self._wandb.Artifact(
            f"{path.stem}-{self._id}", type="policy", metadata={"iteration": iteration}
        )
        artefact.add_file(str(path), name=path.name)
        self._run.log_artifact(artefact)

    def end(self) -> None:
        """Send or write what is left."""
        self._run.finish()

    @staticmethod
    def fetch(name: str) -> Path:
        """Download the policy of an artefact, such as `ENTITY/irgym/policy-1a2b3c4d:latest`.

        Raises:
            IrgymError: There is no such artefact, it holds no policy, or it cannot be reached.
            BackendError: wandb is not installed.
        """
        wandb = _imported()
        with _reached(wandb, "run wandb login, and check the name"):
            folder = Path(wandb.Api().artifact(name).download(root=mkdtemp(prefix="irgym-artefact-")))
        files = sorted(folder.rglob("*.pt"))
        if len(files) != 1:
            raise StorageError(f"the artefact {name} holds {len(files)} policies: name one that irgym logged")
        return files[0]


def _imported() -> Any:
    try:
        import wandb
    except ImportError as error:
        raise BackendError("wandb is not installed: run pip install 'irgym[wandb]'") from error
    return wandb


@contextmanager
def _reached(wandb: Any, remedy: str) -> Generator[None]:
    """Turn what Weights & Biases refuses into one sentence."""
    try:
        yield
    except (wandb.errors.Error, ValueError) as error:  # ValueError: an artefact that does not exist
        reason = " ".join(str(error).split()).rstrip(".")
        raise IrgymError(f"Weights & Biases cannot be used ({reason}): {remedy}") from error
