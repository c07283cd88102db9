"""Parent side: passes run in isolated processes, which keep the modules of earlier passes loaded."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from irgym.base.errors import IrgymError
from irgym.core.cost import Call
from irgym.measure.isolation.protocol import Crashed, Limits, OutOfMemory, Raised, Reply, Returned
from irgym.measure.passes.store import Failure, Key, PassRequest, Path
from irgym.measure.pool import WorkerPool
from irgym.measure.replies import error_of

R = TypeVar("R", bound=PassRequest)
A = TypeVar("A")


def as_it_is(detail: str) -> str:
    """Return the last lines of a process that crashed."""
    return detail


class PassPool(Generic[R, A]):
    """Isolated processes in which passes run. Close it, or let it go with the process.

    Args:
        store: The module with the functions that the processes run: `step` and others.
        compiler: Name of the compiler in messages.
        limits: Limits of a call; the passes of a batch that exceeds them are run one by one.
        workers: Number of processes; by default one per core.
        told: Shortens the last lines of a process that crashed.
    """

    def __init__(
        self,
        store: str,
        compiler: str,
        limits: Limits,
        workers: int | None = None,
        told: Callable[[str], str] = as_it_is,
    ) -> None:
        self._store = store
        self._compiler = compiler
        self._told = told
        self._workers = WorkerPool(limits, workers)

    def step(self, requests: Sequence[R], sizes: Sequence[float] | None = None) -> list[A | Failure | None]:
        """Run passes, each in the process that holds the module, if there is one. None: nothing changed.

        A pass that crashes its process, or exceeds its time or memory, fails only its request.

        Args:
            requests: The passes.
            sizes: Sizes of the modules, by which the load is balanced.
        """
        return self.begin(requests, sizes, at_once=True)()

    def begin(
        self, requests: Sequence[R], sizes: Sequence[float] | None = None, at_once: bool = False
    ) -> Callable[[], list[A | Failure | None]]:
        """Begin what `step` does, with the same arguments; return a function that waits for the results.

        `at_once` is as in `WorkerPool.begin`.
        """
        call = f"{self._store}:step"
        wait = self._workers.begin(call, requests, key=_needed, left=_made, weights=sizes, at_once=at_once)
        return lambda: [
            self._reply(call, request, reply) for request, reply in zip(requests, wait(), strict=True)
        ]

    def call(self, function: str, program: str, path: Path, *arguments: Any) -> Any:
        """Call a function of the store on a module, in the process that probably holds it.

        Raises:
            IrgymError: The program is at fault, or it crashed the process.
        """
        call = Call(f"{self._store}:{function}", (program, path, *arguments))
        reply = self._workers.call(call, (program, path))
        if isinstance(reply, Returned):
            return reply.value
        if isinstance(reply, Raised):
            raise error_of(call, reply)
        raise IrgymError(f"{self._compiler} failed on {program}: {self._reason(reply)}")

    def close(self) -> None:
        """End the processes."""
        self._workers.close()

    def _reply(self, function: str, request: R, reply: Reply) -> A | Failure | None:
        if isinstance(reply, Returned):
            return reply.value
        if isinstance(reply, Raised):
            raise error_of(Call(function, (request,)), reply)
        return Failure(self._reason(reply))

    def _reason(self, reply: Reply) -> str:
        """Return in one line how a process ended."""
        if isinstance(reply, Crashed):
            return f"{self._compiler} aborted: {self._told(reply.detail)}"
        if isinstance(reply, OutOfMemory):
            return f"it ran out of memory: {reply.detail}"
        return "it took too long"


def _needed(request: PassRequest) -> Key:
    return request.program, request.path


def _made(request: PassRequest, reply: object) -> Key | None:
    """Return the key of the module that a pass made; None if it made none."""
    if reply is None or isinstance(reply, Failure):
        return None
    return request.program, (*request.path, request.kind)
