"""Identity of the MLIR that compiles programs, which is part of a cost's key, and whether it is installed."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version

from irgym.base.errors import BackendError
from irgym.measure.code_digest import digest_of

PACKAGE = "torch-mlir"

VERSION = "20261001"
"""The version that the lowering is written for; names and order of MLIR's passes change between versions."""

INSTALL = "pip install 'irgym[linalg]'"
"""The command that installs torch-mlir."""

CODE = (
    "envs/linalg/checking",
    "envs/linalg/compiling",
    "envs/linalg/importing/cleaning.py",
    "envs/linalg/importing/description.py",
    "envs/linalg/programs/function_text.py",
    "envs/linalg/programs/sequences.py",
    "envs/linalg/runner.py",
    "envs/linalg/scheduling/operations.py",
    "envs/linalg/scheduling/script.py",
    "envs/linalg/scheduling/transformations.py",
)
"""The sources that lower, check and time programs, in addition to those shared by all environments."""


def toolchain() -> str:
    """Return the identity of MLIR and of `CODE`, on which costs depend.

    Raises:
        BackendError: torch-mlir is missing or of another version.
    """
    return f"{compiler_version()}, irgym's code {digest_of(*CODE)}"


@cache
def compiler_version() -> str:
    """Return name and version of the installed MLIR.

    Raises:
        BackendError: torch-mlir is missing or of another version.
    """
    try:
        found = version(PACKAGE)
    except PackageNotFoundError as error:
        raise BackendError(
            f"{PACKAGE} {VERSION}, which linalg needs, is not installed: run {INSTALL}"
        ) from error
    if found != VERSION:
        raise BackendError(f"linalg needs {PACKAGE} {VERSION}, but {found} is installed: run {INSTALL}")
    return f"{PACKAGE} {found}"
