"""Other libraries that compute the same program, prepared to be timed. Imported in a child only."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.core.errors import BackendError


@dataclass(frozen=True)
class PreparedBaseline:
    """A baseline, prepared for one program and its inputs.

    Attributes:
        run: Computes the result that many times.
        result: Returns the last result.
        detail: What it ran on: library, kernels, threads.
    """

    run: Callable[[int], None]
    result: Callable[[], NDArray[np.floating]]
    detail: str


def repeat(function: Callable[[], Any]) -> Callable[[int], None]:
    """Return what calls a function as many times as it is told."""

    def run(repetitions: int) -> None:
        for _ in range(repetitions):
            function()

    return run


def numpy_kernels() -> str:
    """Return which BLAS numpy uses, the kernels it picked, and its threads."""
    if "OPENBLAS_CORETYPE" in os.environ or "OPENBLAS_L2_SIZE" in os.environ:
        raise BackendError(
            "numpy is restricted to slow kernels: unset OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE"
        )
    config: Any = np.show_config(mode="dicts")
    blas = config["Build Dependencies"]["blas"]
    text = f"numpy {np.__version__}, {blas['name']} {blas['version']}"
    core = _openblas_core()
    threads = os.environ.get("OPENBLAS_NUM_THREADS", "all")
    count = "1 thread" if threads == "1" else f"{threads} threads"
    return f"{text}{f' on {core} kernels' if core else ''}, {count}"


def _openblas_core() -> str | None:
    """Return the name of the kernels that OpenBLAS picked for this CPU, None with another BLAS."""
    import ctypes

    libraries = {
        line.split()[-1]
        for line in (
            Path("/proc/self/maps").read_text().splitlines() if Path("/proc/self/maps").exists() else ()
        )
        if "openblas" in line
    }
    for path in libraries:
        library = ctypes.CDLL(path)
        for prefix in ("scipy_openblas_get_corename64_", "openblas_get_corename"):
            function: Any = getattr(library, prefix, None)
            if function is not None:
                function.restype = ctypes.c_char_p
                return function().decode()
    return None
