"""Baselines: other libraries that compute the same program, prepared for timing. Imported in a child only."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.base.errors import BackendError
from irgym.core.target import X86_64_V3, Target
from irgym.measure.target import host_target


@dataclass(frozen=True)
class PreparedBaseline:
    """A baseline, prepared for one program and its inputs.

    Attributes:
        run: Computes the result the given number of times.
        result: Returns the last result.
        detail: Library, kernels and threads that it uses.
    """

    run: Callable[[int], None]
    result: Callable[[], NDArray[np.floating]]
    detail: str


HELD_TO_AVX2 = {
    "OPENBLAS_CORETYPE": "Haswell",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "ATEN_CPU_CAPABILITY": "avx2",
}
"""Environment variables that limit numpy and torch to AVX2 kernels, from their documentation."""


def held_to(target: Target) -> tuple[tuple[str, str], ...]:
    """Return the environment variables that limit numpy and torch to a target's instructions.

    They are empty where the target is this machine, and where there are no such variables.
    """
    if target.name == X86_64_V3.name and host_target().name != target.name:
        return tuple(HELD_TO_AVX2.items())
    return ()


def repeat(function: Callable[[], Any]) -> Callable[[int], None]:
    """Return a function that calls `function` the given number of times."""

    def run(repetitions: int) -> None:
        for _ in range(repetitions):
            function()

    return run


def numpy_kernels() -> str:
    """Return numpy's BLAS, the kernels that it selected, and its threads."""
    held = all(os.environ.get(name) == value for name, value in HELD_TO_AVX2.items())
    if ("OPENBLAS_CORETYPE" in os.environ and not held) or "OPENBLAS_L2_SIZE" in os.environ:
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
    """Return the name of the kernels that OpenBLAS selected for this CPU; None with another BLAS."""
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
