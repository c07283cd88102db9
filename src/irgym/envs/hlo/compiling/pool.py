"""Parent side: passes run in isolated processes, which keep the modules of earlier passes loaded."""

import re
from collections.abc import Sequence
from typing import Any

from irgym.base.errors import IrgymError
from irgym.core.cost import Call
from irgym.envs.hlo.compiling.native.build import build
from irgym.envs.hlo.compiling.store import Failure, Key, Reply, Request, Summary
from irgym.measure.isolation.protocol import GIB, Crashed, Limits, OutOfMemory, Raised, Returned
from irgym.measure.isolation.protocol import Reply as ChildReply
from irgym.measure.pool import WorkerPool
from irgym.measure.replies import error_of

LIMITS = Limits(timeout_s=60.0, memory_bytes=6 * GIB)
"""Limits of a call; the passes of a batch that exceeds them are run one by one."""

_MODULE = "irgym.envs.hlo.compiling.store"


class Pool:
    """Isolated processes in which passes run. Close it, or let it go with the process.

    Building the engine on first use on a machine takes half a minute.

    Args:
        workers: Number of processes; by default one per core.

    Raises:
        BackendError: The engine cannot be built here.
    """

    def __init__(self, workers: int | None = None) -> None:
        build()
        self._workers = WorkerPool(LIMITS, workers)

    def step(self, requests: Sequence[Request]) -> list[Reply]:
        """Run passes, each in the process that holds the module, if there is one.

        A pass that crashes its process, or exceeds its time or memory, fails only its request.
        """
        call = f"{_MODULE}:step"
        replies = self._workers.run(call, requests, key=lambda request: request[:2], left=_made)
        return [
            _step_reply(Call(call, (request,)), reply)
            for request, reply in zip(requests, replies, strict=True)
        ]

    def call(self, function: str, program: str, path: tuple[int, ...], *arguments: Any) -> Any:
        """Call a function of the store on a module, in the process that probably holds it.

        Raises:
            IrgymError: The program is at fault, or it crashed the process.
        """
        call = Call(f"{_MODULE}:{function}", (program, path, *arguments))
        reply = self._workers.call(call, (program, path))
        if isinstance(reply, Returned):
            return reply.value
        if isinstance(reply, Raised):
            raise error_of(call, reply)
        raise IrgymError(f"XLA failed on {program}: {_reason(reply)}")

    def close(self) -> None:
        """End the processes."""
        self._workers.close()


def _made(request: Request, reply: Reply) -> Key | None:
    """Return the key of the module that a pass made; None if it made none."""
    return (request.program, (*request.path, request.kind)) if isinstance(reply, Summary) else None


def _step_reply(call: Call, reply: ChildReply) -> Reply:
    if isinstance(reply, Returned):
        return reply.value
    if isinstance(reply, Raised):
        raise error_of(call, reply)
    return Failure(_reason(reply))


def failed_check(detail: str) -> str:
    """Return the failed check of XLA in the last lines of a process, or the lines if there is none."""
    check = re.search(r"Check failed: (.*?)(?: Fatal Python error| \*\*\*|$)", detail)
    return check.group(1) if check else detail


def _reason(reply: ChildReply) -> str:
    """Return in one line how a process ended."""
    if isinstance(reply, Crashed):
        return f"XLA aborted: {failed_check(reply.detail)}"
    if isinstance(reply, OutOfMemory):
        return f"it ran out of memory: {reply.detail}"
    return "it took too long"
