"""The versions that HLO results depend on."""

import hashlib
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from irgym.envs.hlo.native.build import INSTALL, SOURCE, TENSORFLOW
from irgym.envs.hlo.passes import PASSES

__all__ = ["INSTALL", "installed", "toolchain"]


@cache
def toolchain() -> str:
    """Return in words what passes and measurements run on."""
    recipe = hashlib.sha256(SOURCE.read_bytes() + repr(PASSES).encode()).hexdigest()[:12]
    return f"XLA of TensorFlow {TENSORFLOW}, engine {recipe}; jaxlib {installed('jaxlib') or 'missing'}"


def installed(package: str) -> str:
    """Return a package's version; empty where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
