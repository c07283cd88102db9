"""TensorBoard: scalars, and tables as Markdown, in the folder `tensorboard` of a run."""

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from typing import Any

from irgym.base.errors import BackendError, explained
from irgym.loggers.events import without_tensorflow
from irgym.loggers.logger import Cell

FOLDER = "tensorboard"
"""Folder of the events in the run folder."""


class TensorBoardLogger:
    """Writes event files, without torch.

    Raises:
        BackendError: TensorBoard is not installed.
    """

    def __init__(self) -> None:
        without_tensorflow()
        try:
            writers: Any = import_module("tensorboard.summary.writer.event_file_writer")
            self._kind: Any = writers.EventFileWriter
            self._event: Any = import_module("tensorboard.compat.proto.event_pb2")
            self._summary: Any = import_module("tensorboard.compat.proto.summary_pb2")
            self._tensor: Any = import_module("tensorboard.compat.proto.tensor_pb2").TensorProto
            self._shape: Any = import_module("tensorboard.compat.proto.tensor_shape_pb2").TensorShapeProto
        except ImportError as error:
            raise BackendError("tensorboard is not installed: run pip install 'irgym[learn]'") from error

    def start(self, run: Path, configuration: Mapping[str, Any], iteration: int) -> None:
        """Open a new event file, which hides earlier events of later iterations.

        Raises:
            StorageError: It cannot be written.
        """
        with _storage():
            self._writer: Any = self._kind(str(run / FOLDER))
        if iteration:
            status = self._event.SessionLog(status=self._event.SessionLog.START)
            self._add(iteration + 1, session_log=status)
        else:
            lines = json.dumps(configuration, indent=4).split("\n")
            self._add_text(0, "configuration", "\n".join("    " + line for line in lines))

    def metrics(self, iteration: int, values: Mapping[str, float]) -> None:
        """Add scalars, in single precision.

        Raises:
            StorageError: They cannot be written.
        """
        scalars = [
            self._summary.Summary.Value(tag=name, simple_value=value) for name, value in values.items()
        ]
        self._add(iteration, summary=self._summary.Summary(value=scalars))

    def evaluation(self, iteration: int, name: str, rows: Sequence[Mapping[str, Cell]]) -> None:
        """Add a table as Markdown.

        Raises:
            StorageError: It cannot be written.
        """
        if rows:
            self._add_text(iteration, name, _markdown(rows))

    def artefact(self, iteration: int, path: Path) -> None:
        """Do nothing: TensorBoard keeps no files, and the run folder has them."""

    def end(self) -> None:
        """Close the event file.

        Raises:
            StorageError: It cannot be written.
        """
        with _storage():
            self._writer.close()

    def _add_text(self, iteration: int, name: str, text: str) -> None:
        """Add Markdown, as the plug-in `text` of TensorBoard reads it."""
        plugin = self._summary.SummaryMetadata.PluginData(plugin_name="text")
        tensor = self._tensor(
            dtype="DT_STRING",
            string_val=[text.encode()],
            tensor_shape=self._shape(dim=[self._shape.Dim(size=1)]),
        )
        metadata = self._summary.SummaryMetadata(plugin_data=plugin)
        value = self._summary.Summary.Value(tag=f"{name}/text_summary", metadata=metadata, tensor=tensor)
        self._add(iteration, summary=self._summary.Summary(value=[value]))

    def _add(self, iteration: int, **content: Any) -> None:
        """Add an event of now."""
        with _storage():
            self._writer.add_event(self._event.Event(step=iteration, wall_time=time.time(), **content))


def _markdown(rows: Sequence[Mapping[str, Cell]]) -> str:
    lines = [list(rows[0]), ["---"] * len(rows[0])]
    lines += [
        ["" if cell is None else str(cell).replace("|", "\\|") for cell in row.values()] for row in rows
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _storage() -> AbstractContextManager[None]:
    return explained("cannot write TensorBoard's events", "free some space")
