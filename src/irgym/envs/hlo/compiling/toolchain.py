"""Versions that the results of hlo depend on."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version

from irgym.envs.hlo.compiling.native.build import INSTALL, TENSORFLOW
from irgym.measure.code_digest import digest_of

__all__ = ["INSTALL", "installed", "toolchain"]

CODE = (
    "envs/hlo/checking/checks.py",
    "envs/hlo/compiling/engine.py",
    "envs/hlo/compiling/executable.py",
    "envs/hlo/compiling/execution.py",
    "envs/hlo/checking/inputs.py",
    "envs/hlo/compiling/native",
    "envs/hlo/actions.py",
    "envs/hlo/checking/rounding.py",
    "envs/hlo/runner.py",
    "envs/hlo/checking/special.py",
    "envs/hlo/compiling/stablehlo.py",
    "envs/hlo/compiling/store.py",
    "measure/passes/store.py",
)
"""Sources that run passes, and check and time modules, in addition to those of all environments."""


@cache
def toolchain() -> str:
    """Return the toolchain of passes and measurements, in words."""
    jaxlib = installed("jaxlib") or "missing"
    return f"XLA of TensorFlow {TENSORFLOW}; jaxlib {jaxlib}; irgym's code {digest_of(*CODE)}"


def installed(package: str) -> str:
    """Return a package's version; empty if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
