"""Which MLIR makes the code: part of what identifies a cost, and whether it is installed."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version

from irgym.core.errors import BackendError

PACKAGE = "torch-mlir"

VERSION = "20261001"
"""The version that the lowering is written for: names and order of MLIR's passes change with it."""

INSTALL = "pip install 'irgym[linalg]'"
"""The command that installs what is missing."""

LOWERING = 3
"""Number of the lowering in `compiler`; to be raised with every change of the code that it makes."""


@cache
def toolchain() -> str:
    """Return what costs depend on beside the schedule.

    Raises:
        BackendError: torch-mlir is missing or of another version.
    """
    try:
        found = version(PACKAGE)
    except PackageNotFoundError as error:
        raise BackendError(
            f"{PACKAGE} {VERSION} is not installed, whose MLIR linalg uses: run {INSTALL}"
        ) from error
    if found != VERSION:
        raise BackendError(f"linalg needs {PACKAGE} {VERSION}, but {found} is installed: run {INSTALL}")
    return f"{PACKAGE} {found}, lowering {LOWERING}"
