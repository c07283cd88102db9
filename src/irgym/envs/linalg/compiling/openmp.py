"""Parallel loops on threads: the back end `openmp`, and the OpenMP runtime that its code calls."""

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
"""The back end that makes sequential loops of parallel ones."""

OPENMP = "openmp"
"""The back end that makes threads of them."""

NAMES = f"{MLIR}, {OPENMP} or {OPENMP}:N for N threads"
"""The back ends, for messages."""

WHEEL = "intel-openmp"
"""The package that brings a runtime; the extra `linalg` asks for it."""

SYSTEM_LIBRARY = "libomp.so.5"
"""LLVM's runtime, as Debian's package libomp5 installs it."""

LDCONFIG = Path("/sbin/ldconfig")
"""What lists the libraries of the system."""

CALLS = (
    "__kmpc_barrier",
    "__kmpc_for_static_fini",
    "__kmpc_for_static_init_8u",
    "__kmpc_fork_call",
    "__kmpc_global_thread_num",
    "__kmpc_push_num_threads",
)
"""What parallel loops call."""

PARALLEL_TIMING = Timing(clock="process")
"""How programs on threads are timed: threads that wait for others are no disturbance."""


def threads_of(backend: str | None) -> int | None:
    """Return the threads of a back end; None for sequential code, as by default.

    `openmp` means as many as there are cores that this process may use, `:N` the same as `openmp:N`.

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
    """An OpenMP runtime of LLVM's kind.

    Attributes:
        path: Its library.
        text: What it is, as far as costs may depend on it.
    """

    path: Path
    text: str


@cache
def runtime() -> Runtime:
    """Return the runtime of the wheel, else the system's.

    Raises:
        BackendError: There is neither.
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
    """Look where the dynamic linker would, without loading the library into this process."""
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
    """Return what costs depend on beside the schedule and the number of threads; None for no threads.

    Raises:
        BackendError: torch-mlir is missing, or the runtime where there are threads.
    """
    if threads is None:
        return toolchain()
    return f"{toolchain()}, OpenMP by {runtime().text}"


@cache
def runtime_calls() -> Mapping[str, ctypes.c_void_p]:
    """Load the runtime into this process, and return the addresses of what parallel loops call.

    Its names stay hidden from other libraries: GNU's are among them, so that a torch that is imported later
    would run on this runtime instead of on its own.

    Raises:
        BackendError: There is no runtime, or it cannot be loaded.
    """
    path = runtime().path
    try:
        library = ctypes.CDLL(str(path), mode=ctypes.RTLD_LOCAL)
    except OSError as error:
        raise BackendError(f"{path} cannot be loaded ({error}): run {INSTALL}") from error
    return {name: ctypes.cast(getattr(library, name), ctypes.c_void_p) for name in CALLS}
