"""Where LLVM is: the library of a wheel, or of Debian. Nothing is loaded here."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from irgym.base.errors import BackendError

WHEEL = "karellen-llvm-core"
"""The package that holds LLVM's shared library."""

VERSION = "23.1.4"
"""Its version that irgym is tested with."""

INSTALL = "pip install 'irgym[llvm]'"

RUNTIME = ("libunwind.so.1", "libc++abi.so.1", "libc++.so.1")
"""Libraries of the wheel that LLVM's needs, in the order in which they are loaded."""

SYSTEM_FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib/llvm-19/lib")
"""Folders with a distribution's libraries."""


@dataclass(frozen=True)
class Llvm:
    """An LLVM that is installed.

    Attributes:
        name: Name of the back end.
        library: The shared library.
        runtime: Libraries to load before it.
        origin: Where it comes from, with its version: part of the key of costs.
    """

    name: str
    library: Path
    runtime: tuple[Path, ...]
    origin: str


PREFERRED, SYSTEM = "llvm-23", "llvm-19"

BACKENDS = (PREFERRED, SYSTEM)
"""Names of the back ends, the preferred first."""


@cache
def llvm_named(name: str) -> Llvm:
    """Return an LLVM.

    Raises:
        BackendError: There is no such back end, or it is not installed.
    """
    if name == PREFERRED:
        return _of_wheel()
    if name == SYSTEM:
        return _of_system()
    raise BackendError(f"llvm has no back end {name!r}: choose among {', '.join(BACKENDS)}")


def _of_wheel() -> Llvm:
    try:
        found = distribution(WHEEL)
    except PackageNotFoundError as error:
        raise BackendError(f"LLVM is not installed: run {INSTALL}") from error
    if found.version != VERSION:
        raise BackendError(f"{WHEEL} {found.version} is installed, and {VERSION} is needed: run {INSTALL}")
    files = {Path(str(file)).name: Path(str(found.locate_file(file))).resolve() for file in found.files or ()}
    library = next((path for name, path in files.items() if name.startswith("libLLVM.so.")), None)
    if library is None or not library.is_file():
        raise BackendError(f"{WHEEL} is damaged: run pip install --force-reinstall {WHEEL}=={VERSION}")
    folder = next(path.parent for name, path in files.items() if name.startswith("libunwind.so."))
    runtime = tuple(sorted(folder.glob(f"{name}*"))[0] for name in RUNTIME)
    return Llvm(PREFERRED, library, runtime, f"{WHEEL} {found.version}")


def _of_system(folders: Sequence[str] = SYSTEM_FOLDERS) -> Llvm:
    for folder in folders:
        for library in sorted(Path(folder).glob("libLLVM*19*.so*")):
            return Llvm(SYSTEM, library, (), f"{library.name} {library.stat().st_size}")
    raise BackendError("LLVM 19 is not installed: run apt install libllvm19")
