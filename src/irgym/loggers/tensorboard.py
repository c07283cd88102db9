"""TensorBoard: scalars, and tables as Markdown, in the folder `tensorboard` of a run."""

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, cast

from irgym.base.errors import BackendError, explained
from irgym.loggers.events import without_tensorflow
from irgym.loggers.logger import Cell

FOLDER = "tensorboard"
"""Folder of the events in the run folder."""


class TensorBoardLogger:
    """Writes event files.

    Raises:
        BackendError: TensorBoard or torch is not installed.
    """

    def __init__(self) -> None:
        try:
            without_tensorflow()
            from torch.utils import tensorboard
        except ImportError as error:
            raise BackendError(
                "TensorBoard needs torch and tensorboard: run pip install 'irgym[learn]', or log elsewhere"
            ) from error
        self._kind: Any = cast(Any, tensorboard).SummaryWriter

    def start(self, run: Path, configuration: Mapping[str, Any], iteration: int) -> None:
        """Open a new event file, which hides earlier events of later iterations.

        Raises:
            StorageError: It cannot be written.
        """
        with _storage():
            purge = iteration + 1 if iteration else None
            self._writer: Any = self._kind(log_dir=str(run / FOLDER), purge_step=purge)
            if not iteration:
                text = json.dumps(configuration, indent=4)
                self._writer.add_text("configuration", "\n".join("    " + line for line in text.split("\n")))

    def metrics(self, iteration: int, values: Mapping[str, float]) -> None:
        """Add scalars, in single precision.

        Raises:
            StorageError: They cannot be written.
        """
        with _storage():
            for name, value in values.items():
                self._writer.add_scalar(name, value, iteration)

    def evaluation(self, iteration: int, name: str, rows: Sequence[Mapping[str, Cell]]) -> None:
        """Add a table as Markdown.

        Raises:
            StorageError: It cannot be written.
        """
        if rows:
            with _storage():
                self._writer.add_text(name, _markdown(rows), iteration)

    def artefact(self, iteration: int, path: Path) -> None:
        """Do nothing: TensorBoard keeps no files, and the run folder has them."""

    def end(self) -> None:
        """Close the event file.

        Raises:
            StorageError: It cannot be written.
        """
        with _storage():
            self._writer.close()


def _markdown(rows: Sequence[Mapping[str, Cell]]) -> str:
    lines = [list(rows[0]), ["---"] * len(rows[0])]
    lines += [
        ["" if cell is None else str(cell).replace("|", "\\|") for cell in row.values()] for row in rows
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _storage() -> AbstractContextManager[None]:
    return explained("cannot write TensorBoard's events", "free some space")
