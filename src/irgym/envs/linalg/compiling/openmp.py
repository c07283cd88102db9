"""The back end `openmp`, which runs parallel loops on threads, and the OpenMP runtime that its code calls."""

import ctypes
import hashlib
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from irgym.base.errors import BackendError
from irgym.envs.linalg.compiling.toolchain import INSTALL, toolchain
from irgym.measure.machine import SLOT, core_count
from irgym.measure.timing import Timing

MLIR = "mlir"
"""Name of the back end that runs parallel loops sequentially."""

OPENMP = "openmp"
"""Name of the back end that runs parallel loops on threads."""

NAMES = f"{MLIR}, {OPENMP} or {OPENMP}:N for N threads"
"""The back ends, for messages."""

WHEEL = "intel-openmp"
"""Package that contains a runtime, installed by the extra `linalg`."""

SYSTEM_LIBRARY = "libomp.so.5"
"""LLVM's runtime, as Debian's package libomp5 installs it."""

LDCONFIG = Path("/sbin/ldconfig")
"""Program that lists the libraries of the system."""

CALLS = (
    "__kmpc_barrier",
    "__kmpc_for_static_fini",
    "__kmpc_for_static_init_8u",
    "__kmpc_fork_call",
    "__kmpc_global_thread_num",
    "__kmpc_push_num_threads",
)
"""Functions of the runtime that parallel loops call."""

PARALLEL_TIMING = Timing(clock="process")
"""The timing protocol of programs on threads: a thread that waits for others is no disturbance."""


def threads_of(backend: str | None) -> int | None:
    """Return the number of threads of a back end; None for sequential code, the default.

    `openmp` means one thread for each core that this process may use; `:N` is short for `openmp:N`.

    Raises:
        BackendError: There is no such back end.
    """
    if backend is None or backend == MLIR:
        return None
    match = re.fullmatch(rf"(?:{OPENMP})?(?::([1-9]\d{{0,3}}))?", backend)
    if match is None or not backend:
        raise BackendError(f"linalg has no back end {backend!r}: choose {NAMES}")
    return int(match[1] or core_count())


def require_cores(threads: int) -> None:
    """Make sure that each thread has a core to be timed on.

    Raises:
        BackendError: There are fewer.
    """
    slot = SLOT.get()
    cores = len(slot.cores) if slot and slot.cores else core_count()
    if cores < threads:
        raise BackendError(
            f"{OPENMP}:{threads} needs {threads} cores and candidates have {cores} here: choose "
            f"{OPENMP}:{cores}, or pass this back end to bench() too"
        )


@dataclass(frozen=True)
class Runtime:
    """An OpenMP runtime that is compatible with LLVM's.

    Attributes:
        path: Its library.
        text: Name and version, on which costs may depend.
    """

    path: Path
    text: str


@cache
def runtime() -> Runtime:
    """Return the wheel's runtime, or else the system's.

    Raises:
        BackendError: Neither is installed.
    """
    found = _of_wheel() or _of_system()
    if found is None:
        raise BackendError(
            f"{OPENMP} needs an OpenMP runtime, and none is installed: run {INSTALL} or apt install libomp5"
        )
    return found


def _of_wheel() -> Runtime | None:
    try:
        package = distribution(WHEEL)
    except PackageNotFoundError:
        return None
    for file in package.files or ():
        path = Path(str(file.locate()))
        if file.name == "libiomp5.so" and path.exists():
            return Runtime(path.resolve(), f"{WHEEL} {package.version}")
    return None


def _of_system() -> Runtime | None:
    """Search where the dynamic linker would, without loading the library into this process."""
    if not LDCONFIG.exists():
        return None
    done = subprocess.run([LDCONFIG, "-p"], capture_output=True, text=True, check=True)
    match = re.search(rf"^\s*{re.escape(SYSTEM_LIBRARY)} \(libc6,[^)]+\) => (.+)$", done.stdout, re.MULTILINE)
    if match is None:
        return None
    path = Path(match[1])
    content = hashlib.sha256(path.read_bytes()).hexdigest()[:8]
    return Runtime(path, f"{SYSTEM_LIBRARY} {content}")


def toolchain_with(threads: int | None) -> str:
    """Return the toolchain's identity, on which costs depend; with threads it includes the runtime.

    Raises:
        BackendError: torch-mlir is missing, or there are threads and no runtime.
    """
    if threads is None:
        return toolchain()
    return f"{toolchain()}, OpenMP by {runtime().text}"


@cache
def runtime_calls() -> Mapping[str, ctypes.c_void_p]:
    """Load the runtime into this process, and return the addresses of `CALLS`.

    Its symbols stay hidden from other libraries: they include GNU's names, so that a torch imported later
    would otherwise run on this runtime.

    Raises:
        BackendError: There is no runtime, or it cannot be loaded.
    """
    path = runtime().path
    try:
        library = ctypes.CDLL(str(path), mode=ctypes.RTLD_LOCAL)
    except OSError as error:
        raise BackendError(f"{path} cannot be loaded ({error}): run {INSTALL}") from error
    return {name: ctypes.cast(getattr(library, name), ctypes.c_void_p) for name in CALLS}
