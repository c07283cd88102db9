"""The scheduler of a farm: where workers and runs meet."""

import asyncio
import socket
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any

from distributed import Scheduler, SchedulerPlugin

from irgym.base.errors import FarmError
from irgym.measure.farm.batch import SEND_S
from irgym.measure.farm.certificate import security_of
from irgym.measure.farm.endpoint import Endpoint


class Prompt(SchedulerPlugin):
    """Has a scheduler send to its workers at once."""

    name = "irgym-prompt"

    def add_worker(self, scheduler: Scheduler, worker: str) -> None:
        """Dask calls this when a worker has joined."""
        stream: Any = scheduler.stream_comms[worker]
        stream.interval = SEND_S


class NoPages:
    """Keeps a scheduler or worker of Dask from serving web pages, which tell everybody what it does."""

    def start_http_server(self, *arguments: Any, **options: Any) -> None:
        """Dask calls this to serve its pages."""


class FarmScheduler(NoPages, Scheduler):
    """A scheduler that listens in one place, for those who hold the certificate."""


def scheduler_options() -> dict[str, Any]:
    """Return what all schedulers of farms are made with, beside where they listen."""
    return {"dashboard": False, "plugins": (Prompt(),)}


async def serve(endpoint: Endpoint, stop: asyncio.Event, ready: Callable[[], None]) -> None:
    """Let workers and runs meet until told to stop; the workers wait for the next scheduler then.

    Args:
        endpoint: Where to listen. Without a certificate, whoever reaches it can run code on the workers.
        stop: Set it to end.
        ready: Called when it listens.

    Raises:
        FarmError: The port is taken, the host is none of this machine's, or the certificate is not in order.
    """
    security = security_of(endpoint.certificate)
    try:
        host = _one_interface(endpoint)
        scheduler = await FarmScheduler(
            host=host,
            port=endpoint.port,
            protocol=endpoint.url.partition(":")[0],
            security=security,
            **scheduler_options(),
        )
    except (OSError, UnicodeError) as error:  # no name of a host has such parts
        raise _deaf(endpoint, error) from error
    except RuntimeError as error:
        if not isinstance(error.__cause__, OSError):
            raise
        raise _deaf(endpoint, error.__cause__) from error
    ready()
    await stop.wait()
    await scheduler.close()


def _one_interface(endpoint: Endpoint) -> str:
    """Return the host to listen on.

    Raises:
        FarmError: It means all interfaces.
        OSError: There is no such host.
    """
    host = endpoint.host.strip("[]")
    found = socket.getaddrinfo(host, endpoint.port, type=socket.SOCK_STREAM)
    if any(ip_address(place[4][0]).is_unspecified for place in found):
        raise FarmError(
            f"{host} means every network of this machine: name the one that the workers are in, by an "
            "address or a name of this machine"
        )
    return host


def _deaf(endpoint: Endpoint, error: Exception) -> FarmError:
    reason = (isinstance(error, OSError) and error.strerror) or error
    return FarmError(f"{endpoint} cannot be listened on ({reason}): choose another port or host")
