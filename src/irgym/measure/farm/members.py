"""The workers of a farm: their kinds and their activity."""

import asyncio
import socket
import ssl
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from functools import cache
from importlib.metadata import version
from typing import Any

from distributed import rpc

from irgym.base.errors import FarmError
from irgym.measure.code_digest import digest_of
from irgym.measure.farm.certificate import security_of
from irgym.measure.farm.endpoint import Endpoint
from irgym.measure.machine import fingerprint
from irgym.measure.variables import machine_key

TAG = "irgym"
"""Key of irgym's entries in a Dask worker's reports to the scheduler."""

WORKING = ("base", "core", "measure", "envs", "policies", "networks", "agents")
"""Packages of irgym that run on workers: those that measure, and those that act."""

ANSWER_S = 5.0
"""Time limit in seconds for a scheduler's list of workers."""

NO_SCHEDULER = (OSError, MemoryError, ValueError)
"""Exceptions that Dask raises when no scheduler answers: it takes a web server's reply for the size of a
message, and a TLS handshake fails after unexpected bytes."""


@dataclass(frozen=True)
class Kind:
    """Properties that all workers of a run must share, since costs of different kinds must not be mixed.

    Attributes:
        irgym: Version of irgym, and a digest of the sources that run on workers; so workers started before
            and after an edit are of different kinds.
        machine: Key of the machine and of the variables that candidates inherit.
        text: Description of the machine.
    """

    irgym: str
    machine: str
    text: str

    @property
    def resource(self) -> str:
        """The Dask resource that workers of this kind provide and runs of this kind require."""
        return f"{TAG} {self.irgym} {self.machine}"

    def __str__(self) -> str:
        return f"irgym {self.irgym} on {self.text} ({self.machine})"


@cache
def own_kind() -> Kind:
    """Return the kind that this process would have as a worker."""
    machine = fingerprint()
    return Kind(f"{version('irgym')}+{digest_of(*WORKING)}", machine_key(machine), machine.text())


@dataclass(frozen=True)
class Activity:
    """Activity of a worker, by its last report.

    Attributes:
        done: Calls answered since it joined.
        failed: Calls among them that crashed, hung, ran out of memory or raised.
        running: Calls that it is working on.
        run: The run that they belong to; empty if there are none.
        waiting: Calls of that run that no worker had when this worker got its batch.
        rate: Calls answered per second, over the last minute.
    """

    done: int = 0
    failed: int = 0
    running: int = 0
    run: str = ""
    waiting: int = 0
    rate: float = 0.0


@dataclass(frozen=True)
class Member:
    """A worker of a farm.

    Attributes:
        name: Its name.
        host: The machine's address.
        kind: Its kind.
        activity: Its activity.
    """

    name: str
    host: str
    kind: Kind
    activity: Activity


def members_of(identity: Mapping[str, Any]) -> list[Member]:
    """Return irgym's workers from a Dask scheduler's identity, sorted by name."""
    workers: list[Mapping[str, Any]] = [worker for worker in identity["workers"].values() if TAG in worker]
    members = [
        Member(
            str(worker["name"]),
            str(worker["host"]),
            Kind(**worker[TAG]),
            _activity(worker["metrics"].get(TAG, {})),
        )
        for worker in workers
    ]
    return sorted(members, key=lambda member: member.name)


def _activity(told: Mapping[str, Any]) -> Activity:
    """Return the activity that a worker reports; it may have another version of irgym."""
    return Activity(**{field.name: told[field.name] for field in fields(Activity) if field.name in told})


class Stranger(FarmError):
    """The peer does not prove that it is the farm."""


async def members_at(endpoint: Endpoint) -> list[Member]:
    """Ask a scheduler for its workers.

    Raises:
        Stranger: The peer does not prove that it holds the certificate.
        FarmError: No scheduler answers there, or the certificate is not in order.
    """
    security: Any = security_of(endpoint.certificate)
    try:
        await asyncio.to_thread(meet, endpoint, security)
        return members_of(await _identity(endpoint, security))
    except NO_SCHEDULER as error:
        raise FarmError(
            f"no farm{endpoint.how} answers at {endpoint}: start one by {endpoint.serving}"
        ) from error


def greet(endpoint: Endpoint, security: Any) -> None:
    """Check that a scheduler listens and answers in time; Dask's client would wait forever.

    Args:
        endpoint: Endpoint of the scheduler.
        security: Dask's `Security` for a run of that farm.

    Raises:
        Stranger: The peer does not prove that it holds the certificate.
        OSError: No scheduler listens there, or it does not answer.
    """
    meet(endpoint, security)
    with ThreadPoolExecutor(1) as other:  # this thread may have an event loop, as in a notebook
        other.submit(asyncio.run, _identity(endpoint, security)).result()


async def _identity(endpoint: Endpoint, security: Any) -> Mapping[str, Any]:
    """Return a scheduler's identity, with its workers.

    Raises:
        OSError: The peer does not answer in time, or is no scheduler.
    """
    arguments = security.get_connection_args("client")
    scheduler: Any
    try:
        async with asyncio.timeout(ANSWER_S), rpc(endpoint.url, connection_args=arguments) as scheduler:
            return await scheduler.identity(n_workers=-1)
    except OSError:
        raise
    except Exception as error:  # Dask may raise anything on the answer of another program
        raise ConnectionError(f"what answers at {endpoint} is no scheduler ({error!r})") from error


def meet(endpoint: Endpoint, security: Any) -> None:
    """Check that a scheduler listens and proves its identity within `ANSWER_S`.

    Dask would retry until its time-out, without saying what is wrong.

    Args:
        endpoint: Endpoint of the scheduler.
        security: Dask's `Security` for a run or a worker of that farm.

    Raises:
        Stranger: The peer does not prove that it holds the certificate.
        OSError: Nothing listens there, or it does not answer.
    """
    tls: Any = security.get_connection_args("client")["ssl_context"]
    with socket.create_connection((endpoint.host.strip("[]"), endpoint.port), ANSWER_S) as connection:
        if tls is None:
            return
        try:
            tls.wrap_socket(connection).close()
        except ssl.SSLEOFError:  # it is just ending
            raise
        except ssl.SSLCertVerificationError as error:
            raise Stranger(
                f"what answers at {endpoint} does not hold the certificate {endpoint.certificate}: copy that "
                f"of the farm there, or name it by --certificate FILE or {endpoint}?certificate=FILE"
            ) from error
        except ssl.SSLError as error:
            raise Stranger(
                f"what answers at {endpoint} does not prove by TLS that it is your farm: serve it without "
                f"--insecure, or trust whoever answers there by --insecure or {endpoint}?insecure=1"
            ) from error


def queue_length(members: Sequence[Member]) -> int:
    """Return the number of calls of active runs that no worker has yet, by the workers' last reports."""
    waiting: dict[str, int] = {}
    for activity in (member.activity for member in members):
        if activity.run:
            waiting[activity.run] = min(activity.waiting, waiting.get(activity.run, activity.waiting))
    return sum(waiting.values())
