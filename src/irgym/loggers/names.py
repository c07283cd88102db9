"""Loggers that a run was told to use, kept in its folder for later evaluations and resumptions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from irgym.base.errors import StorageError
from irgym.base.json_files import read_json, write_json
from irgym.base.values import MismatchError, conform
from irgym.loggers.logger import Cell

FILE = "loggers.json"
"""File in the run folder."""


@dataclass(frozen=True)
class NamesLogger:
    """Keeps the names of the other loggers; it logs nothing else.

    Attributes:
        names: Their names.
    """

    names: tuple[str, ...]

    def start(self, run: Path, configuration: Mapping[str, Any], iteration: int) -> None:
        """Write the names.

        Raises:
            StorageError: They cannot be written.
        """
        write_json(run / FILE, list(self.names))

    def metrics(self, iteration: int, values: Mapping[str, float]) -> None:
        """Do nothing."""

    def evaluation(self, iteration: int, name: str, rows: Sequence[Mapping[str, Cell]]) -> None:
        """Do nothing."""

    def artefact(self, iteration: int, path: Path) -> None:
        """Do nothing."""

    def end(self) -> None:
        """Do nothing."""


def kept_names(run: Path) -> tuple[str, ...] | None:
    """Return the names of a run's loggers; None where none were kept.

    Raises:
        StorageError: The file cannot be read, or it is damaged.
    """
    data = read_json(run / FILE)
    try:
        return None if data is None else conform(tuple[str, ...], data)
    except MismatchError as error:
        raise StorageError(f"{run / FILE} is damaged ({error}): remove it") from error
