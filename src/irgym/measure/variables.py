"""Environment variables that affect measurements: they are removed for candidates, or part of costs' keys."""

import os
import resource
from collections.abc import Mapping
from fnmatch import fnmatchcase

from irgym.measure.machine import Machine

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Set to the number of threads in every child unless its limits say otherwise."""

SHORT_SPIN = {"KMP_BLOCKTIME": "1", "GOMP_SPINCOUNT": "100000", "OPENBLAS_THREAD_TIMEOUT": "20"}
"""Set in children with several threads: those of compiled code, torch and OpenBLAS then spin for at most a
millisecond.

So they are awake for the next call, as they are by default, but do not occupy the cores of what is timed
next."""

REST_S = 0.005
"""Seconds after which they are asleep."""

NO_PLUGINS = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
"""Set in every child: otherwise torch imports installed packages for accelerators, and spends a fifth of a
second on looking for them."""

REMOVED = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
"""Variables that can force OpenBLAS onto slow kernels: no child inherits them."""

KEYED: Mapping[str, str] = {
    "XLA_*": "XLA's flags: instruction set, passes, fast math",
    "TF_XLA_*": "the same for TensorFlow's XLA, whose passes hlo runs",
    "TF_ENABLE_*": "oneDNN on or off, and others",
    "TF_NUM_*": "threads",
    "JAX_*": "precision and types of what JAX lowers",
    "OMP_*": "how threads wait and where they run",
    "KMP_*": "the same, for LLVM's and Intel's runtime",
    "GOMP_*": "the same, for GNU's runtime",
    "MKL_*": "kernels by instruction set, reproducibility modes",
    "OPENBLAS_*": "how OpenBLAS's threads wait, and others",
    "GOTO_*": "OpenBLAS's older names",
    "BLIS_*": "another BLAS's kernels and threads",
    "DNNL_*": "oneDNN's kernels by instruction set",
    "ONEDNN_*": "the same",
    "NPY_*": "numpy's instruction sets, huge pages",
    "ATEN_*": "torch's kernels by instruction set",
    "TORCH*": "torch's and its compiler's switches",
    "PYTORCH_*": "the same",
    "TVM_*": "a baseline's threads and kernels",
    "MALLOC_*": "where memory comes from: page faults, huge pages, filling",
    "GLIBC_TUNABLES": "the same, and which string functions run",
    "LD_PRELOAD": "other allocators and mathematical functions",
    "LD_LIBRARY_PATH": "other libraries of the same name",
    "LD_AUDIT": "code in every call of a library",
    "PYTHONMALLOC": "another allocator",
    "PYTHONOPTIMIZE": "checks left out",
}
"""Patterns of variables that the toolchains, the libraries below and baselines read, and why: costs measured
with different values are kept apart."""

SILENT = (
    "*_VERBOSE",
    "*_LOG_*",
    "*_LOGS",
    "OMP_DISPLAY_*",
    "*_CACHE_DIR",
    "*_HOME",
    "KMP_DUPLICATE_LIB_OK",
    "KMP_INIT_AT_FORK",
)
"""Exceptions among these patterns, which affect no cost: variables for output and locations of files, and
those that libraries set on import."""

_SYSTEM_LIMITS = {
    "ulimit -t": resource.RLIMIT_CPU,
    "ulimit -d": resource.RLIMIT_DATA,
    "ulimit -v": resource.RLIMIT_AS,
}


def keyed(environment: Mapping[str, str]) -> str:
    """Return the variables of an environment that costs depend on, as one line.

    Variables that every child has, or that no child has, are left out.
    """
    names = sorted(name for name in environment if _matters(name))
    return "; ".join(f"{name}={_one_line(environment[name])}" for name in names)


def _matters(name: str) -> bool:
    if name in (*THREADS, *REMOVED, *NO_PLUGINS) or any(fnmatchcase(name, pattern) for pattern in SILENT):
        return False
    return any(fnmatchcase(name, pattern) for pattern in KEYED)


def _one_line(value: str) -> str:
    return value if value.isprintable() else ascii(value)


def machine_key(machine: Machine) -> str:
    """Return the key of this machine, with the environment variables and limits that candidates inherit.

    Args:
        machine: This machine.
    """
    limits = [(name, resource.getrlimit(which)[0]) for name, which in _SYSTEM_LIMITS.items()]
    limited = [f"{name} {value}" for name, value in limits if value != resource.RLIM_INFINITY]
    return "; ".join(filter(None, (machine.key, keyed(os.environ), *limited)))


def for_child(environment: Mapping[str, str], threads: int, overrides: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of an isolated process.

    Args:
        environment: Environment of its parent.
        threads: Number of threads of a candidate.
        overrides: Variables that take precedence over all others.
    """
    inherited = {name: value for name, value in environment.items() if name not in REMOVED}
    spin = SHORT_SPIN if threads > 1 else {}
    return {**inherited, **dict.fromkeys(THREADS, str(threads)), **NO_PLUGINS, **spin, **overrides}
