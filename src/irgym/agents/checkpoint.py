"""The state of a training in its run folder, and the one before it."""

from typing import Any

from irgym.base.errors import StorageError
from irgym.networks import storage
from irgym.policies.run_folder import RunFolder


def save(folder: RunFolder, state: dict[str, Any]) -> None:
    """Write a checkpoint and keep the one before it.

    Raises:
        StorageError: It cannot be written; the checkpoint before it stays.
    """
    storage.write(folder.checkpoint, {"kind": "checkpoint", **state}, folder.previous)


def restore(folder: RunFolder) -> dict[str, Any]:
    """Return the newest checkpoint.

    Raises:
        StorageError: It is missing or damaged; the message says how to go back to the one before.
    """
    try:
        return storage.read(folder.checkpoint, "checkpoint")
    except StorageError as error:
        if not folder.previous.exists():
            raise
        raise StorageError(
            f"{folder.checkpoint} is missing or damaged: to continue from the one before it, "
            f"run: mv {folder.previous} {folder.checkpoint}"
        ) from error
