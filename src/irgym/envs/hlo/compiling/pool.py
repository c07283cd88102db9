"""The processes in which XLA's passes run."""

import re

from irgym.envs.hlo.compiling.native.build import build
from irgym.envs.hlo.compiling.store import Request, Summary
from irgym.measure.isolation.protocol import GIB, Limits
from irgym.measure.passes.pool import PassPool

LIMITS = Limits(timeout_s=60.0, memory_bytes=6 * GIB)
"""Limits of a call; the passes of a batch that exceeds them are run one by one."""


class Pool(PassPool[Request, Summary]):
    """Isolated processes in which XLA's passes run. Close it, or let it go with the process.

    Building the engine on first use on a machine takes half a minute.

    Args:
        workers: Number of processes; by default one per core.

    Raises:
        BackendError: The engine cannot be built here.
    """

    def __init__(self, workers: int | None = None) -> None:
        build()
        super().__init__("irgym.envs.hlo.compiling.store", "XLA", LIMITS, workers, failed_check)


def failed_check(detail: str) -> str:
    """Return the failed check of XLA in the last lines of a process, or the lines if there is none."""
    check = re.search(r"Check failed: (.*?)(?: Fatal Python error| \*\*\*|$)", detail)
    return check.group(1) if check else detail
