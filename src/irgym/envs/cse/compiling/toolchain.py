"""Versions of the tools that scores depend on, and how to install them; none is imported here."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version

from irgym.base.errors import BackendError
from irgym.measure.code_digest import digest_of

INSTALL = "pip install 'irgym[cse]'"

RUNNER = "irgym.envs.cse.compiling.runner"
"""The module with the functions that children run to score and compile."""

CODE = ("llvmir/ir", "llvmir/programs/machines.py", "envs/cse/ir", "envs/cse/compiling")
"""Sources that write and score choices, besides those common to all environments."""


@cache
def llvm_version() -> str:
    """Return the package that contains LLVM, and its version.

    Raises:
        BackendError: It is not installed.
    """
    return _version("llvmlite", "LLVM comes with")


@cache
def z3_version() -> str:
    """Return the package that z3 is in, and its version.

    Raises:
        BackendError: It is not installed.
    """
    return _version("z3-solver", "proofs need")


@cache
def toolchain() -> str:
    """Return a text that identifies the tools and the code behind scores.

    Raises:
        BackendError: LLVM is not installed.
    """
    return f"{llvm_version()}; irgym's code {digest_of(*CODE)}"


def _version(package: str, what: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError as error:
        raise BackendError(f"{what} {package}, which is not installed: run {INSTALL}") from error
