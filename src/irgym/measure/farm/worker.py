"""A worker of a farm: a Dask worker with one thread and one isolated child, which rejoins after failures."""

import asyncio
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any, cast

import dask.config
from distributed import Security, Worker, WorkerPlugin, get_worker
from distributed.utils import get_ip

from irgym.base.errors import FarmError
from irgym.measure.farm.batch import BATCH_S, SEND_S, Answers, Batch, Left
from irgym.measure.farm.certificate import security_of
from irgym.measure.farm.endpoint import Endpoint
from irgym.measure.farm.members import TAG, Activity, Kind, Stranger, members_at, own_kind
from irgym.measure.farm.scheduler import NoPages
from irgym.measure.isolation.child import Answer, Child, Packed
from irgym.measure.isolation.protocol import RETURNED, Limits
from irgym.measure.machine import timing_core

RETRY_S = 0.5
"""Pause between attempts to reach a scheduler."""

JOIN_S = 10.0
"""Seconds that a scheduler may take to accept a worker."""

RATE_S = 60.0
"""Seconds over which rates are averaged."""


class Isolation(WorkerPlugin):
    """The isolated child of a Dask worker, in which calls may crash, hang or exhaust memory."""

    name = TAG

    def __init__(self) -> None:
        self._child: Child | None = None
        self._limits: Limits | None = None
        self._busy = threading.Lock()
        self._left = False
        self._activity = Activity()
        self._joined = time.monotonic()
        self._answered: deque[float] = deque()

    def setup(self, worker: Worker) -> None:
        """Make the worker send answers without delay."""
        stream: Any = worker.batched_stream
        stream.interval = SEND_S

    def run(self, batch: Batch) -> Answers:
        """Run as much of a batch in the child as time allows; only the worker's thread calls this.

        Raises:
            Left: The worker is leaving, so that the batch must run elsewhere.
            ChildError: The child does not start.
        """
        with self._busy:
            begin = time.perf_counter()
            try:
                answers = self._answers(batch)
            finally:
                self._activity = replace(self._activity, running=0, run="", waiting=0)
            return Answers(answers, time.perf_counter() - begin)

    def _answers(self, batch: Batch) -> tuple[Answer, ...]:
        left = len(batch.requests)
        self._activity = replace(self._activity, running=left, run=batch.run, waiting=batch.waiting)
        answers: list[Answer] = []
        if self._left:
            raise Left
        for answer in self._child_with(batch.limits).exchange(_in_time(batch.requests)):
            if self._left:
                raise Left
            answers.append(answer)
            fine = isinstance(answer, Packed) and answer.kind == RETURNED
            done, failed = self._activity.done + 1, self._activity.failed + (not fine)
            self._activity = replace(self._activity, done=done, failed=failed, running=left - len(answers))
            self._answered.append(time.monotonic())
        return tuple(answers)

    def _child_with(self, limits: Limits) -> Child:
        """Return the child, or a new one if the limits differ from the last batch's."""
        if self._child is None or limits != self._limits:
            if self._child is not None:
                self._child.close()
            # Other workers of this machine time on the same core.
            self._child = Child(replace(limits, core=timing_core(), shared_core=True))
            self._limits = limits
        return self._child

    def activity(self) -> Activity:
        """Return the worker's activity."""
        now = time.monotonic()
        while self._answered and self._answered[0] < now - RATE_S:
            self._answered.popleft()
        rate = len(self._answered) / max(1.0, min(RATE_S, now - self._joined))
        return replace(self._activity, rate=rate)

    def teardown(self, worker: Worker) -> None:
        """End the child and its calls."""
        del worker
        self._left = True
        while not self._busy.acquire(timeout=0.1):
            if self._child is not None:
                self._child.interrupt()
        if self._child is not None:
            self._child.close()
        self._busy.release()


def _in_time(requests: Sequence[bytes]) -> Iterator[bytes]:
    """Yield requests until `BATCH_S` is over, at least one."""
    deadline = time.perf_counter() + BATCH_S
    for place, request in enumerate(requests):
        if place and time.perf_counter() > deadline:
            return
        yield request


def run_batch(batch: Batch) -> Answers:
    """Run a batch on the worker that Dask chose.

    Raises:
        Left: The worker is leaving, so that the batch must run elsewhere.
        ChildError: The child does not start.
    """
    return cast(Isolation, get_worker().plugins[TAG]).run(batch)


class FarmWorker(NoPages, Worker):
    """A worker that listens on one interface, for holders of the certificate."""


async def join(
    endpoint: Endpoint,
    name: str | None,
    patience_s: float | None,
    stop: asyncio.Event,
    say: Callable[[str], None],
) -> None:
    """Work for the farm of a scheduler, and rejoin whenever the scheduler was lost.

    Args:
        endpoint: Endpoint of the scheduler.
        name: Name of the worker; by default host and process number.
        patience_s: Seconds without a scheduler after which to leave; None waits forever.
        stop: Event that makes the worker leave.
        say: Called with lines of progress.

    Raises:
        FarmError: The farm has workers of another kind or one of that name, no scheduler answers, or the
            certificate is not in order or not the scheduler's.
    """
    name = name or f"{socket.gethostname()}-{os.getpid()}"
    security = security_of(endpoint.certificate)
    kind = own_kind()
    waiting_since: float | None = None
    joined = False
    while not stop.is_set():
        try:
            await _check(endpoint, kind, None if joined else name)
            worker = await _worker(endpoint, security, name, kind)
        except _Absent as error:
            if waiting_since is None:
                waiting_since = time.monotonic()
                say(f"no scheduler at {endpoint}: waiting for one")
            if patience_s is not None and time.monotonic() - waiting_since > patience_s:
                raise FarmError(
                    f"no scheduler answered at {endpoint} for {patience_s:g} s: start one by "
                    f"{endpoint.serving}"
                ) from error
            await _first(stop.wait(), asyncio.sleep(RETRY_S))
            continue
        say(f"{name} works for {endpoint}, on {kind.text}")
        joined, waiting_since = True, None
        await _first(stop.wait(), worker.finished())
        await worker.close(reason="irgym-worker-stopped")


class _Absent(Exception):
    """The scheduler does not answer, or cannot accept the worker yet."""


async def _check(endpoint: Endpoint, kind: Kind, name: str | None) -> None:
    """Check that the farm's workers are of the same kind, and that none has the same name.

    A worker that rejoins passes no name, and waits even if another peer answers at the endpoint.
    """
    try:
        members = await members_at(endpoint)
    except FarmError as error:
        if name is not None and isinstance(error, Stranger):
            raise
        raise _Absent from error
    if any(member.name == name for member in members):
        raise FarmError(f"the farm at {endpoint} has a worker {name} already: choose another --name")
    other = next((member.kind for member in members if member.kind.resource != kind.resource), None)
    if other is not None:
        raise FarmError(
            f"the workers at {endpoint} are {other}, this one would be {kind}: their costs must not be "
            "mixed, so start another farm for it, or install the same irgym and restart the workers"
        )


async def _worker(endpoint: Endpoint, security: Security, name: str, kind: Kind) -> Worker:
    """Start a Dask worker.

    Raises:
        _Absent: The scheduler does not answer, or does not accept the worker yet.
    """
    isolation = Isolation()
    # Dask would profile the thread a hundred times a second, and disturb the timing.
    with dask.config.set({"distributed.worker.profile.enabled": False}):
        worker = FarmWorker(
            endpoint.url,
            security=security,
            name=name,
            nthreads=1,
            # Reachable from the scheduler's network only.
            host=str(get_ip(endpoint.host.strip("[]"), endpoint.port)),
            memory_limit=0,  # the child has separate limits
            death_timeout=JOIN_S,
            resources={kind.resource: 1},
            plugins=(isolation,),
            startup_information={TAG: lambda worker: asdict(kind)},
            metrics={TAG: lambda worker: asdict(isolation.activity())},
        )
    try:
        return await worker
    except TimeoutError as error:
        raise _Absent from error
    except RuntimeError as error:
        # Dask refuses a name until it notices that its former owner is gone.
        if not isinstance(error.__cause__, (OSError, ValueError)):
            raise
        raise _Absent from error


async def _first(*awaitables: Any) -> None:
    """Wait for the first of several awaitables and cancel the others."""
    tasks = [asyncio.ensure_future(awaitable) for awaitable in awaitables]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
