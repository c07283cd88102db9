"""A farm of Dask workers: any number of machines of one kind, which may come and go."""

import logging
import math
import time
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import Any

from distributed import Client, KilledWorker
from distributed.client import ClosedClientError

from irgym.base.closing import Closing
from irgym.base.errors import FarmError, IrgymError
from irgym.core.cost import Call
from irgym.measure.farm.batch import SEND_S, Answers, Batch, Left, batch_size
from irgym.measure.farm.certificate import security_of
from irgym.measure.farm.endpoint import Endpoint
from irgym.measure.farm.members import ANSWER_S, NO_SCHEDULER, TAG, Kind, Member, greet, members_of, own_kind
from irgym.measure.farm.protocol import conditions, limits_of
from irgym.measure.farm.worker import run_batch
from irgym.measure.isolation.child import Answer, ChildError, pack, unpack
from irgym.measure.isolation.protocol import Limits, Reply
from irgym.measure.machine import threads_text

PATIENCE_S = 60.0
"""Seconds to wait for a lost scheduler or worker."""

LOOK_S = 1.0
"""Seconds between updates of the list of workers."""

AHEAD = 2
"""Number of batches that a worker may have, so that it need not wait for the transfer of answers."""

GIVEN_UP = 3
"""Number of times that Dask may report a batch that killed several workers, which no candidate can do."""

_LOG = logging.getLogger(__name__)


class DaskFarm(Closing):
    """The workers of a Dask scheduler. Use it as a context manager, or close it.

    A worker that dies or leaves costs only time: its calls run elsewhere. If the scheduler is lost, the
    answers so far are kept, and the other calls are sent again once it is back. The first workers determine
    the kind of machine on which this farm measures; workers of other kinds get no calls.

    Args:
        endpoint: Endpoint of the scheduler.
        limits: Limits of a call; the workers choose the core.
        patience_s: Seconds to wait for workers, or for a lost scheduler.

    Raises:
        FarmError: Nothing answers, there are no workers, or they are of different kinds.
    """

    def __init__(self, endpoint: Endpoint, limits: Limits, patience_s: float = PATIENCE_S):
        self.endpoint = endpoint
        self._limits = replace(limits, core=None, shared_core=False)
        self._patience_s = patience_s
        # Dask logs a traceback for a lost scheduler, which this farm handles.
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
        self._name = uuid.uuid4().hex
        self._call_s = 1.0
        self._count = 0
        self._looked, self._met = -math.inf, time.monotonic()
        self._security = security_of(endpoint.certificate)
        self._client = self._connect(min(ANSWER_S, patience_s))
        try:
            self._kind = self._meet()
        except BaseException:
            self.close()
            raise

    @property
    def workers(self) -> int:
        """Number of calls that run at the same time; 1 while there are no workers."""
        if time.monotonic() - self._looked > LOOK_S:
            with suppress(*_GONE):
                self._look()
        return max(1, self._count)

    @property
    def conditions(self) -> str:
        """Key of the workers' machine and of the limits."""
        return conditions(self._kind.machine, self._limits)

    @property
    def machine(self) -> str:
        """The workers' machine, and their number."""
        threads = threads_text(self._limits.threads)
        return f"{self._kind.text}; {threads} on each of {self.workers} workers of {self.endpoint}"

    def run(self, calls: Sequence[Call]) -> list[Reply]:
        """Return one reply for each call, in order.

        Raises:
            FarmError: The scheduler or all workers are lost.
            ChildError: The child process of a worker does not start.
        """
        return self._run(calls, self._limits)

    def call(
        self, call: Call, timeout_s: float | None = None, told: Callable[[str], None] | None = None
    ) -> Reply:
        """Run one call on a worker; different limits need a new child process there.

        Raises:
            FarmError: The scheduler or all workers are lost.
            ChildError: The child process of a worker does not start.
        """
        del told  # texts do not cross the network
        return self._run([call], limits_of(call, self._limits, timeout_s) or self._limits)[0]

    def members(self) -> list[Member]:
        """Return the workers of all kinds, sorted by name.

        Raises:
            OSError: The scheduler is lost.
        """
        # Otherwise Dask would return the last known state.
        if self._client.status != "running":
            raise ConnectionError(f"the scheduler at {self.endpoint} is gone")
        return members_of(self._client.scheduler_info(n_workers=-1))

    def close(self) -> None:
        """Disconnect from the farm; the workers keep running."""
        with suppress(*_GONE, ValueError):  # tornado's, when the scheduler died during a handshake
            self._client.close()

    def _connect(self, patience_s: float) -> Any:
        deadline = time.monotonic() + patience_s
        while True:
            try:
                greet(self.endpoint, self._security)  # Dask itself has no deadline
                client: Any = Client(
                    self.endpoint.url, timeout=patience_s, security=self._security, set_as_default=False
                )
                break
            except NO_SCHEDULER as error:
                if time.monotonic() > deadline:
                    raise FarmError(
                        f"no farm{self.endpoint.how} has answered at {self.endpoint} for {patience_s:g} s: "
                        f"start one by {self.endpoint.serving}"
                    ) from error
            time.sleep(LOOK_S / 10)
        client.scheduler_comm.interval = SEND_S
        return client

    def _meet(self) -> Kind:
        """Wait for the first workers and return their kind."""
        members: list[Member] = []
        while not members:
            with suppress(*_GONE):  # Dask tries to reach the scheduler again
                members = self.members()
            if not members:
                if time.monotonic() - self._met > self._patience_s:
                    raise self._alone()
                time.sleep(LOOK_S / 10)
        kinds = list(dict.fromkeys(member.kind for member in members))
        if len(kinds) > 1:
            raise FarmError(
                f"the workers at {self.endpoint} are of {len(kinds)} kinds, whose costs must not be mixed: "
                f"stop those of all but one ({'; '.join(map(str, kinds))})"
            )
        if kinds[0].irgym != own_kind().irgym:
            raise FarmError(
                f"the workers at {self.endpoint} have irgym {kinds[0].irgym}, this run {own_kind().irgym}: "
                "install the same on all machines and restart the workers"
            )
        return kinds[0]

    def _look(self) -> None:
        """Update the number of workers that can work for this run."""
        before = self._count
        self._count = sum(member.kind == self._kind for member in self.members())
        self._looked = time.monotonic()
        if self._count:
            self._met = self._looked
        elif self._looked - self._met > self._patience_s:
            raise self._alone()
        elif before:
            _LOG.warning("the farm at %s has no workers now: waiting for one", self.endpoint)

    def _alone(self) -> FarmError:
        return FarmError(
            f"the farm at {self.endpoint} has had no worker for {self._patience_s:g} s: start one by "
            f"{self.endpoint.working}"
        )

    def _run(self, calls: Sequence[Call], limits: Limits) -> list[Reply]:
        requests = [pack(call) for call in calls]
        answers: dict[int, Answer] = {}
        while len(answers) < len(requests):
            try:
                self._ask(requests, limits, answers)
            except _GONE:
                _LOG.warning("the scheduler at %s is gone: waiting for it", self.endpoint)
                self.close()
                self._client = self._connect(self._patience_s)
                self._looked, self._met = -math.inf, time.monotonic()
        return [unpack(answers[place]) for place in range(len(requests))]

    def _ask(self, requests: Sequence[bytes], limits: Limits, answers: dict[int, Answer]) -> None:
        """Send the unanswered requests, and collect answers until all requests have one.

        A lost scheduler raises one of `_GONE`; the answers collected so far stay.
        """
        waiting = deque(place for place in range(len(requests)) if place not in answers)
        under_way: dict[str, tuple[Any, list[int]]] = {}
        finished: SimpleQueue[Any] = SimpleQueue()
        deaths = 0
        while waiting or under_way:
            while waiting and len(under_way) < AHEAD * self.workers:
                size = batch_size(len(waiting), self.workers, self._call_s)
                places = [waiting.popleft() for _ in range(size)]
                batch = Batch(tuple(requests[place] for place in places), limits, self._name, len(waiting))
                future = self._submit(batch)
                future.add_done_callback(finished.put)
                under_way[future.key] = future, places
            try:
                future = finished.get(timeout=LOOK_S)
            except Empty:
                self._look()
                continue
            places = under_way.pop(future.key)[1]
            done = self._answers_of(future)
            if isinstance(done, Answers):
                count = len(done.answers)
                answers.update(zip(places[:count], done.answers, strict=True))
                self._call_s = done.seconds / count
                places = places[count:]
            waiting.extendleft(reversed(places))
            deaths += isinstance(done, KilledWorker)
            if deaths == GIVEN_UP:
                raise FarmError(f"the workers at {self.endpoint} die again and again: read what they print")

    def _submit(self, batch: Batch) -> Any:
        return self._client.submit(
            run_batch, batch, key=f"{TAG}-{uuid.uuid4().hex}", pure=False, resources={self._kind.resource: 1}
        )

    def _answers_of(self, future: Any) -> Answers | Left | KilledWorker:
        """Return the answers to a batch, or the reason why it must run again.

        Raises:
            IrgymError: The worker found an error of the user.
            ChildError: The child process of the worker does not work.
            CancelledError: The scheduler is lost.
        """
        if future.status == "finished":
            return future.result(timeout=self._patience_s)
        if future.status != "error":
            raise CancelledError
        error = future.exception(timeout=self._patience_s)
        if isinstance(error, (Left, KilledWorker)):
            return error
        if isinstance(error, IrgymError):
            raise error
        raise ChildError(f"a worker of the farm at {self.endpoint} does not work: {error!r}") from error


_GONE = (OSError, CancelledError, ClosedClientError)
"""Exceptions that Dask raises when the scheduler is lost."""
