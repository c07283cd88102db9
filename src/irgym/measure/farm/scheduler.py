"""The scheduler of a farm, which connects workers and runs."""

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
    """Makes a scheduler send messages to its workers without delay."""

    name = "irgym-prompt"

    def add_worker(self, scheduler: Scheduler, worker: str) -> None:
        """Configure a worker's stream; Dask calls this when the worker has joined."""
        stream: Any = scheduler.stream_comms[worker]
        stream.interval = SEND_S


class NoPages:
    """Keeps a scheduler or worker of Dask from serving web pages, which would expose its work to anyone."""

    def start_http_server(self, *arguments: Any, **options: Any) -> None:
        """Serve no pages."""


class FarmScheduler(NoPages, Scheduler):
    """A scheduler that listens on one interface, for holders of the certificate."""


def scheduler_options() -> dict[str, Any]:
    """Return the options of all farm schedulers, except the address."""
    return {"dashboard": False, "plugins": (Prompt(),)}


async def serve(endpoint: Endpoint, stop: asyncio.Event, ready: Callable[[], None]) -> None:
    """Run a scheduler until told to stop; its workers then wait for the next scheduler.

    Args:
        endpoint: Endpoint to listen on. Without a certificate, anyone who reaches it can run code on the
            workers.
        stop: Event that stops the scheduler.
        ready: Called when the scheduler listens.

    Raises:
        FarmError: The port is taken, the host is not this machine's, or the certificate is not in order.
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
    except (OSError, UnicodeError) as error:  # UnicodeError: not a valid host name
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
        FarmError: The host means all interfaces.
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
