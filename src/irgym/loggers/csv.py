"""CSV files in the folder `csv` of a run: metrics.csv, and one file for each table."""

import csv
import io
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from irgym.base.errors import StorageError, explained
from irgym.base.files import write_file
from irgym.loggers.logger import Cell

FOLDER = "csv"
"""Folder of the files in the run folder."""


class CsvLogger:
    """Writes a row for each iteration; a metric that appears later becomes a further column."""

    def start(self, run: Path, configuration: Mapping[str, Any], iteration: int) -> None:
        """Read back the rows of the iterations already done, and forget later ones.

        Raises:
            StorageError: The files cannot be read or written.
        """
        self._folder = run / FOLDER
        self._file = self._folder / "metrics.csv"
        self._columns: list[str] = ["iteration"]
        with _storage(self._file):
            self._folder.mkdir(parents=True, exist_ok=True)
            rows: list[dict[str, str]] = []
            if self._file.exists():
                rows = [row for row in _rows(self._file) if int(row["iteration"]) <= iteration]
        if rows:
            self._columns = list(rows[0])
        write_file(self._file, _text(self._columns, rows).encode())

    def metrics(self, iteration: int, values: Mapping[str, float]) -> None:
        """Append a row.

        Raises:
            StorageError: It cannot be written.
        """
        added = [name for name in values if name not in self._columns]
        with _storage(self._file):
            if added:
                earlier = _rows(self._file)
                self._columns += added
                write_file(self._file, _text(self._columns, earlier).encode())
            with self._file.open("a", newline="") as file:
                row = {"iteration": iteration, **values}
                csv.DictWriter(file, self._columns, lineterminator="\n").writerow(row)

    def evaluation(self, iteration: int, name: str, rows: Sequence[Mapping[str, Cell]]) -> None:
        """Write a table to a separate file, in place of an earlier one of that name.

        Raises:
            StorageError: It cannot be written.
        """
        if rows:
            write_file(self._folder / f"{name}.csv", _text(list(rows[0]), rows).encode())

    def artefact(self, iteration: int, path: Path) -> None:
        """Do nothing: the run folder has the files."""

    def end(self) -> None:
        """Do nothing: all is written."""


def _rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a file of metrics.

    Raises:
        StorageError: It is damaged.
    """
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    if not all((row.get("iteration") or "").isdecimal() and None not in row for row in rows):
        raise StorageError(f"{path} is damaged: remove it")
    return rows


def _text(columns: Sequence[str], rows: Sequence[Mapping[str, Cell]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _storage(path: Path) -> AbstractContextManager[None]:
    return explained(f"cannot write {path}", "free some space or choose another folder")
