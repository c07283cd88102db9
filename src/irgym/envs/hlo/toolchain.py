"""The versions that HLO results depend on."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version

from irgym.envs.hlo.native.build import INSTALL, TENSORFLOW
from irgym.measure.sources import digest_of

__all__ = ["INSTALL", "installed", "toolchain"]

CODE = (
    "envs/hlo/checking.py",
    "envs/hlo/engine.py",
    "envs/hlo/executable.py",
    "envs/hlo/execution.py",
    "envs/hlo/inputs.py",
    "envs/hlo/native",
    "envs/hlo/passes.py",
    "envs/hlo/rounding.py",
    "envs/hlo/runner.py",
    "envs/hlo/special.py",
    "envs/hlo/stablehlo.py",
    "envs/hlo/store.py",
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
