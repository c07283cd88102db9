"""Metrics for TensorBoard, where it is installed."""

from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from irgym.agents.events import without_tensorflow
from irgym.agents.metrics import Metrics
from irgym.base.errors import explained


class Board:
    """Writes metrics for TensorBoard, where it is installed; metrics.jsonl has them in any case."""

    def __init__(self, path: Path, iteration: int) -> None:
        try:
            without_tensorflow()
            from torch.utils import tensorboard
        except ImportError:
            self._writer: Any = None
            return
        writer = cast(Any, tensorboard).SummaryWriter
        with _storage():
            self._writer = writer(log_dir=str(path), purge_step=iteration + 1 if iteration else None)

    def write(self, metrics: Metrics) -> None:
        """Add the metrics of one iteration.

        Raises:
            StorageError: They cannot be written.
        """
        if self._writer is None:
            return
        with _storage():
            for name, value in asdict(metrics).items():
                if name != "iteration" and value is not None:
                    self._writer.add_scalar(f"train/{name}", value, metrics.iteration)

    def close(self) -> None:
        """Write what is left.

        Raises:
            StorageError: It cannot be written.
        """
        if self._writer is not None:
            with _storage():
                self._writer.close()


def _storage() -> AbstractContextManager[None]:
    return explained("cannot write TensorBoard's events", "free some space")
