"""A pool of isolated processes that keep the state of requests, such as programs, loaded."""

import os
from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

from irgym.base.closing import Closing
from irgym.core.cost import Call
from irgym.measure.isolation.child import Child
from irgym.measure.isolation.protocol import Limits, Reply, Returned

Request = TypeVar("Request")
T = TypeVar("T")

REMEMBERED = 200_000
"""Number of keys whose holders a pool remembers."""


class WorkerPool(Closing):
    """Isolated processes that keep loaded state for further requests that need it.

    A key names the state that a request needs. A request goes to a worker that holds its key; requests with
    unknown keys balance the load. A worker that dies or hangs is replaced, and its requests run again one by
    one, so that only the guilty request fails. Every worker must therefore be able to load any state.

    The processes start on first use and end with this one. Use it from one thread at a time, and close it.

    Args:
        limits: Limits of a call, which may be a batch of requests or a single one.
        workers: Number of processes; by default one for each core.
        remembered: Number of keys whose holders are remembered.
    """

    def __init__(
        self,
        limits: Limits,
        workers: int | None = None,
        remembered: int = REMEMBERED,
    ) -> None:
        count = workers or len(os.sched_getaffinity(0))
        self._children = [Child(limits) for _ in range(count)]
        self._threads = [ThreadPoolExecutor(1, thread_name_prefix=f"pool{place}") for place in range(count)]
        self._begun: list[list[tuple[Future[Any], float]]] = [[] for _ in range(count)]
        self._remembered = remembered
        self._holders: dict[Hashable, int] = {}

    @property
    def workers(self) -> int:
        """Number of processes."""
        return len(self._children)

    def begin(
        self,
        function: str,
        requests: Sequence[Request],
        key: Callable[[Request], Hashable],
        left: Callable[[Request, Any], Hashable | None] | None = None,
        weights: Sequence[float] | None = None,
        at_once: bool = False,
    ) -> Callable[[], list[Reply]]:
        """Begin to run requests; return a function that waits for one reply for each, in order.

        A worker takes its shares in the order in which they were begun.

        Args:
            function: Name of a function from a list of requests to as many answers:
                `package.module:function`. In a list, requests with the same key are adjacent.
            requests: The requests.
            key: Returns the key of a request.
            left: Returns the key of the state that a worker holds after a request and its answer, None for no
                new one; by default the request's key.
            weights: How long each request takes compared with the others; by default all as long.
            at_once: Whether the replies are waited for next: then that of a single request is there when this
                returns, which saves a switch of threads.

        Raises:
            ChildError: A process does not start or stops working between calls; the function returned raises
                it too.
        """

        def note(worker: int, request: Request, reply: Reply) -> None:
            if isinstance(reply, Returned):
                self._remember(left(request, reply.value) if left else key(request), worker)

        if at_once and len(requests) == 1:
            worker = self._chosen(key(requests[0]))
            [reply] = self._now(worker, _answers, function, [*requests])
            note(worker, requests[0], reply)
            return lambda: [reply]
        weights = weights or [1.0] * len(requests)
        shares = self._shares([key(request) for request in requests], weights)
        runs: dict[int, Future[Sequence[Reply]]] = {}
        for worker, places in shares.items():
            load = sum(weights[place] for place in places)
            part = [requests[place] for place in places]
            runs[worker] = self._submitted(worker, load, _answers, function, part)

        def waited() -> list[Reply]:
            self._wait(runs.values())
            found: dict[int, Reply] = {}
            for worker, places in shares.items():
                for place, reply in zip(places, runs[worker].result(), strict=True):
                    found[place] = reply
                    note(worker, requests[place], reply)
            return [found[place] for place in range(len(requests))]

        return waited

    def call(self, call: Call, key: Hashable) -> Reply:
        """Run one call in a worker that holds a key, or in the least busy one.

        Raises:
            ChildError: The process does not start or stops working between calls.
        """
        return self._now(self._chosen(key), Child.call, call)

    def _now(self, worker: int, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function of a worker's process and wait for it; the arguments are as `_submitted`'s."""
        if self._under_way(worker):
            run = self._submitted(worker, 1.0, function, *arguments)
            self._wait([run])
            return run.result()
        return function(self._children[worker], *arguments)

    def _submitted(self, worker: int, load: float, function: Callable[..., T], *arguments: Any) -> Future[T]:
        """Call a function of a worker's process once the worker has done what was begun before.

        Args:
            worker: The worker.
            load: How long it takes compared with others.
            function: The function.
            arguments: Its further arguments.
        """
        run = self._threads[worker].submit(function, self._children[worker], *arguments)
        self._begun[worker].append((run, load))
        return run

    def _under_way(self, worker: int) -> list[tuple[Future[Any], float]]:
        """Return what a worker has to do, each with its load."""
        left = self._begun[worker] = [(run, load) for run, load in self._begun[worker] if not run.done()]
        return left

    def _load(self, worker: int) -> float:
        """Return how long a worker still has to work, in the unit of the weights."""
        return sum(load for _, load in self._under_way(worker))

    def close(self) -> None:
        """End the processes."""
        for thread in self._threads:
            thread.shutdown(cancel_futures=True)
        for child in self._children:
            child.close()

    def _chosen(self, key: Hashable) -> int:
        """Return the worker that holds a key, or else the least busy one."""
        worker = self._holders.get(key)
        if worker is None:
            worker = min(range(len(self._children)), key=self._load)
        return worker

    def _shares(self, keys: Sequence[Hashable], weights: Sequence[float]) -> dict[int, list[int]]:
        """Return the places of the requests for each worker, requests with the same key adjacent."""
        load = [self._load(worker) for worker in range(len(self._children))]
        chosen = [0] * len(keys)
        # Requests with known holders come first, so that the others can balance the load, the longest first.
        for place in sorted(
            range(len(keys)), key=lambda place: (keys[place] not in self._holders, -weights[place])
        ):
            worker = self._holders.get(keys[place])
            chosen[place] = worker = load.index(min(load)) if worker is None else worker
            load[worker] += weights[place]
        order = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        shares: dict[int, list[int]] = {}
        for place in sorted(range(len(keys)), key=lambda place: order[keys[place]]):
            shares.setdefault(chosen[place], []).append(place)
        return shares

    def _remember(self, key: Hashable | None, worker: int) -> None:
        if key is None or self._holders.get(key) == worker:
            return
        self._holders[key] = worker
        while len(self._holders) > self._remembered:
            del self._holders[next(iter(self._holders))]

    def _wait(self, runs: Iterable[Future[Any]]) -> None:
        """Wait for what workers do; an interrupt stops all of them."""
        try:
            wait(runs)
        except BaseException:
            for child in self._children:
                child.interrupt()
            wait(runs)
            raise


def _answers(child: Child, function: str, requests: list[Any]) -> Sequence[Reply]:
    """Run requests in one call; if that fails, run each alone to find the guilty ones."""
    reply = child.call(Call(function, (requests,)))
    if isinstance(reply, Returned):
        return [Returned(value) for value in reply.value]
    if len(requests) == 1:
        return [reply]
    alone = child.stream(Call(function, ([request],)) for request in requests)
    return [Returned(reply.value[0]) if isinstance(reply, Returned) else reply for reply in alone]
