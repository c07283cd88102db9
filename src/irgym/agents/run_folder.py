"""The folder of a training run: its configuration, metrics, checkpoints and policy.

config.json             what was trained, and how
metrics.jsonl           a line for each iteration
checkpoint.pt           the newest state of the training, to resume from
checkpoint.previous.pt  the one before it
policy.pt               the policy to use
tensorboard/            the metrics once more, where TensorBoard is installed
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from irgym.core.errors import IrgymError, StorageError
from irgym.nets import storage


@dataclass(frozen=True)
class RunFolder:
    """A training run on disk.

    Attributes:
        path: The folder.
    """

    path: Path

    @property
    def config(self) -> Path:
        """What was trained, and how."""
        return self.path / "config.json"

    @property
    def metrics(self) -> Path:
        """A line for each iteration."""
        return self.path / "metrics.jsonl"

    @property
    def checkpoint(self) -> Path:
        """The newest state of the training."""
        return self.path / "checkpoint.pt"

    @property
    def previous(self) -> Path:
        """The checkpoint before the newest."""
        return self.path / "checkpoint.previous.pt"

    @property
    def policy(self) -> Path:
        """The policy to use."""
        return self.path / "policy.pt"

    @property
    def tensorboard(self) -> Path:
        """Event files."""
        return self.path / "tensorboard"

    def create(self, description: dict[str, Any]) -> None:
        """Make the folder of a new run.

        Raises:
            IrgymError: It already holds a run.
            StorageError: It cannot be written.
        """
        if self.checkpoint.exists() or self.previous.exists():
            raise IrgymError(
                f"{self.path} already holds a run: pass --resume to continue it, or choose another folder"
            )
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self.metrics.unlink(missing_ok=True)
            self.config.write_text(json.dumps(description, indent=2) + "\n")
        except OSError as error:
            raise StorageError(
                f"cannot write {self.config}: {error.strerror}; choose another folder"
            ) from error

    def describe(self) -> dict[str, Any]:
        """Return what `create` was given.

        Raises:
            StorageError: There is no run in the folder, or the file is damaged.
        """
        try:
            content: Any = json.loads(self.config.read_text())
        except OSError as error:
            raise StorageError(
                f"there is no run in {self.path}: check the path or start one first"
            ) from error
        except ValueError as error:
            raise StorageError(
                f"{self.config} is damaged: restore it from a copy or start another run"
            ) from error
        return cast(dict[str, Any], content)

    def expect(self, description: dict[str, Any]) -> None:
        """Make sure that the run was started with `description`.

        Raises:
            IrgymError: It was started with something else; the message names the first difference.
            StorageError: There is no run in the folder, or the file is damaged.
        """
        # Through JSON, so that tuples compare equal to the lists that they were written as.
        wanted, found = _leaves(json.loads(json.dumps(description))), _leaves(self.describe())
        for name in (*wanted, *found):
            if wanted.get(name) != found.get(name):
                raise IrgymError(
                    f"the run in {self.path} has {name} = {found.get(name)}, not {wanted.get(name)}: "
                    "resume it with the options that it was started with"
                )

    def save(self, state: dict[str, Any]) -> None:
        """Write a checkpoint and keep the one before it.

        Raises:
            StorageError: It cannot be written; the checkpoint before it stays.
        """
        storage.write(self.checkpoint, {"sort": "checkpoint", **state}, self.previous)

    def restore(self) -> dict[str, Any]:
        """Return the newest checkpoint.

        Raises:
            StorageError: It is missing or damaged; the message says how to go back to the one before.
        """
        try:
            return storage.read(self.checkpoint, "checkpoint")
        except StorageError as error:
            if not self.previous.exists():
                raise
            raise StorageError(
                f"{self.checkpoint} is missing or damaged: to continue from the one before it, "
                f"run: mv {self.previous} {self.checkpoint}"
            ) from error

    def read_metrics(self) -> list[dict[str, Any]]:
        """Return the metrics of all iterations; a last line that was cut off is left out.

        Raises:
            StorageError: The file cannot be read or is damaged.
        """
        try:
            lines = self.metrics.read_text().split("\n")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StorageError(f"cannot read {self.metrics}: {error.strerror}") from error
        try:
            # Every whole line ends with a line break, so what follows the last one is a torn line or nothing.
            return [cast(dict[str, Any], json.loads(line)) for line in lines[:-1]]
        except ValueError as error:
            raise StorageError(f"{self.metrics} is damaged: remove the lines that are not JSON") from error

    def append_metrics(self, metrics: dict[str, Any]) -> None:
        """Add a line.

        Raises:
            StorageError: It cannot be written.
        """
        try:
            with self.metrics.open("a") as file:
                file.write(json.dumps(metrics) + "\n")
        except OSError as error:
            raise StorageError(f"cannot write {self.metrics}: {error.strerror}; free some space") from error

    def truncate_metrics(self, iteration: int) -> None:
        """Forget the lines after `iteration`.

        Raises:
            StorageError: The file cannot be read or written.
        """
        lines = [json.dumps(row) + "\n" for row in self.read_metrics() if row["iteration"] <= iteration]
        fresh = self.metrics.with_name(self.metrics.name + ".tmp")
        try:
            fresh.write_text("".join(lines))
            fresh.replace(self.metrics)
        except OSError as error:
            raise StorageError(f"cannot write {self.metrics}: {error.strerror}; free some space") from error


def _leaves(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of nested dictionaries by their own names."""
    leaves: dict[str, Any] = {}
    for name, value in values.items():
        leaves.update(_leaves(cast(dict[str, Any], value)) if isinstance(value, dict) else {name: value})
    return leaves
