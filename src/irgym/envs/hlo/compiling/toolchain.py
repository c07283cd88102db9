"""The versions that HLO results depend on."""

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
)
"""The sources that run passes, and check and time modules, beside those of all environments."""


@cache
def toolchain() -> str:
    """Return in words what passes and measurements run on."""
    jaxlib = installed("jaxlib") or "missing"
    return f"XLA of TensorFlow {TENSORFLOW}; jaxlib {jaxlib}; irgym's code {digest_of(*CODE)}"


def installed(package: str) -> str:
    """Return a package's version; empty where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
