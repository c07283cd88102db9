"""Programs as files: how large they may be, and their content."""

import stat
from pathlib import Path

from irgym.base.errors import ProgramError, explained

LARGEST = 6 << 30
"""Most bytes of a program, with the files beside it that hold its weights."""

LARGEST_TEXT = 1 << 28
"""Most bytes of a program that is text."""


def is_regular(path: Path) -> bool:
    """Say whether a file is no folder, FIFO or device, which could be read without end.

    Raises:
        OSError: There is none, or nobody can tell.
    """
    return stat.S_ISREG(path.stat().st_mode)


def check_size(path: Path, largest: int = LARGEST) -> int:
    """Return the bytes of a regular file.

    Args:
        path: The file.
        largest: Most bytes that it may have.

    Raises:
        ProgramError: It is larger, cannot be read, or is none, such as a FIFO or a device.
    """
    with explained(f"cannot read {path}", "check the path and its permissions", ProgramError):
        status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise ProgramError(f"{path} is no regular file: name one")
    if status.st_size > largest:
        size, most = (f"{count / (1 << 20):,.0f} MiB" for count in (status.st_size, largest))
        raise ProgramError(f"{path} has {size}, and at most {most} are read: choose a smaller program")
    return status.st_size


def content_of_program(path: Path, largest: int = LARGEST_TEXT) -> bytes:
    """Return the content of a file.

    Raises:
        ProgramError: As for `check_size`.
    """
    size = check_size(path, largest)
    remedy = "check the path and its permissions"
    with explained(f"cannot read {path}", remedy, ProgramError), path.open("rb") as file:
        return file.read(size)
