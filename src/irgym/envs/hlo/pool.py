"""The parent's side: child processes that hold the modules, and requests spread over them."""

import os
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from irgym.core.cost import Call
from irgym.core.errors import IrgymError
from irgym.envs.hlo.native.build import build
from irgym.envs.hlo.store import Failure, Reply, Request, Summary
from irgym.measure.evaluators import error_of
from irgym.measure.isolation.child import Child
from irgym.measure.isolation.protocol import GIB, Crashed, Limits, OutOfMemory, Raised, Returned
from irgym.measure.isolation.protocol import Reply as ChildReply

LIMITS = Limits(timeout_s=60.0, memory_bytes=6 * GIB)
"""What a call may use, a batch of passes or one alone; a batch that takes longer is run one by one."""

HOMES = 200_000
"""Modules of which a pool remembers the process that holds them."""

_MODULE = "irgym.envs.hlo.store"


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
        count = workers or len(os.sched_getaffinity(0))
        self._children = [Child(LIMITS) for _ in range(count)]
        self._homes: dict[tuple[str, tuple[int, ...]], int] = {}
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="hlo")

    def step(self, requests: Sequence[Request]) -> list[Reply]:
        """Run passes, each in the process that holds the module, if one does.

        A pass that ends its process, takes too long or wants too much memory costs its own request only.
        """
        shares = self._shares(requests)
        replies: list[Reply] = [None] * len(requests)

        def work(worker: int, places: list[int]) -> None:
            # Requests from one module side by side: the store then copies it as rarely as it can.
            places.sort(key=lambda place: requests[place][:2])
            answers = self._step(worker, [requests[place] for place in places])
            for place, answer in zip(places, answers, strict=True):
                replies[place] = answer

        self._each(shares, work)
        for worker, places in shares.items():
            for place in places:
                if isinstance(replies[place], Summary):
                    program, path, kind, _ = requests[place]
                    self._homes[program, (*path, kind)] = worker
        while len(self._homes) > HOMES:
            del self._homes[next(iter(self._homes))]
        return replies

    def call(self, function: str, program: str, path: tuple[int, ...], *arguments: Any) -> Any:
        """Call a function of the store on a module, in the process that is likely to hold it.

        Raises:
            IrgymError: The program is at fault, or its process died of it.
        """
        call = Call(f"{_MODULE}:{function}", (program, path, *arguments))
        reply = self._children[self._homes.get((program, path), 0)].call(call)
        if isinstance(reply, Returned):
            return reply.value
        if isinstance(reply, Raised):
            raise error_of(call, reply)
        raise IrgymError(f"XLA failed on {program}: {_reason(reply)}")

    def close(self) -> None:
        """End the processes."""
        self._threads.shutdown()
        for child in self._children:
            child.close()

    def _shares(self, requests: Sequence[Request]) -> dict[int, list[int]]:
        """Return the places of the requests that each process gets; modules without a home even them out."""
        shares: dict[int, list[int]] = {worker: [] for worker in range(len(self._children))}
        homeless: list[int] = []
        for place, request in enumerate(requests):
            home = self._homes.get(request[:2])
            if home is None:
                homeless.append(place)
            else:
                shares[home].append(place)
        for place in homeless:
            min(shares.values(), key=len).append(place)
        return {worker: places for worker, places in shares.items() if places}

    def _each(self, shares: dict[int, list[int]], work: Callable[[int, list[int]], None]) -> None:
        if len(shares) == 1:
            [(worker, places)] = shares.items()
            work(worker, places)
            return
        for run in [self._threads.submit(work, worker, places) for worker, places in shares.items()]:
            run.result()

    def _step(self, worker: int, requests: list[Request]) -> list[Reply]:
        child = self._children[worker]
        call = Call(f"{_MODULE}:step", (requests,))
        reply = child.call(call)
        if isinstance(reply, Returned):
            return reply.value
        if isinstance(reply, Raised):
            raise error_of(call, reply)
        if len(requests) == 1:
            return [Failure(_reason(reply))]
        # One of them is to blame: each by itself, in the process that has replaced the dead one.
        with Child(LIMITS) as alone:
            return [self._alone(alone, request) for request in requests]

    def _alone(self, child: Child, request: Request) -> Reply:
        call = Call(f"{_MODULE}:step", ([request],))
        reply = child.call(call)
        if isinstance(reply, Returned):
            return reply.value[0]
        if isinstance(reply, Raised):
            raise error_of(call, reply)
        return Failure(_reason(reply))


def failed_check(detail: str) -> str:
    """Return the check within XLA that ended a process, from its last lines, or these where there is none."""
    check = re.search(r"Check failed: (.*?)(?: Fatal Python error| \*\*\*|$)", detail)
    return check.group(1) if check else detail


def _reason(reply: ChildReply) -> str:
    """Return in one line how a process died."""
    if isinstance(reply, Crashed):
        return f"XLA aborted: {failed_check(reply.detail)}"
    if isinstance(reply, OutOfMemory):
        return f"it ran out of memory: {reply.detail}"
    return "it took too long"
