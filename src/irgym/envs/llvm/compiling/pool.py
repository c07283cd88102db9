"""The processes in which LLVM's passes run."""

from irgym.envs.llvm.compiling.installed import llvm_named
from irgym.envs.llvm.compiling.native.build import build
from irgym.envs.llvm.compiling.store import Request, Summary
from irgym.measure.isolation.protocol import GIB, Limits
from irgym.measure.passes.pool import PassPool

LIMITS = Limits(timeout_s=30.0, memory_bytes=4 * GIB)
"""Limits of a call; the passes of a batch that exceeds them are run one by one."""


class Pool(PassPool[Request, Summary]):
    """Isolated processes in which the passes of one LLVM run. Close it, or let it go with the process.

    Attributes:
        backend: Name of the LLVM.

    Raises:
        BackendError: It is not installed.
    """

    def __init__(self, backend: str, workers: int | None = None) -> None:
        llvm_named(backend)
        build()
        super().__init__("irgym.envs.llvm.compiling.store", "LLVM", LIMITS, workers)
        self.backend = backend
