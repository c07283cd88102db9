"""Versions of the packages and of the code that models are measured with."""

from importlib.metadata import PackageNotFoundError, version

from irgym.base.errors import BackendError
from irgym.envs.graph.programs.sources import INSTALL
from irgym.measure.code_digest import digest_of

CODE = (
    "envs/graph/costs/measuring.py",
    "envs/graph/ir",
    "envs/graph/programs/inputs.py",
    "envs/graph/programs/ranges.py",
    "envs/graph/runner.py",
    "envs/graph/checking",
    "envs/graph/running",
)
"""Files and folders of irgym that measurements depend on."""


def toolchain() -> str:
    """Return the versions of ONNX Runtime and ONNX, and the digest of irgym's code for measuring.

    Raises:
        BackendError: ONNX or ONNX Runtime is not installed.
    """
    try:
        versions = f"onnxruntime {version('onnxruntime')}; onnx {version('onnx')}"
    except PackageNotFoundError as error:
        raise BackendError(f"{error.name} is not installed: run {INSTALL}") from error
    return f"{versions}; irgym's code {digest_of(*CODE)}"
