"""The scheduler of a farm: where workers and runs meet."""

import asyncio
from collections.abc import Callable
from typing import Any

from distributed import Scheduler, SchedulerPlugin

from irgym.core.errors import FarmError
from irgym.measure.farm.address import Endpoint
from irgym.measure.farm.batch import SEND_S


class Prompt(SchedulerPlugin):
    """Has a scheduler send to its workers at once."""

    name = "irgym-prompt"

    def add_worker(self, scheduler: Scheduler, worker: str) -> None:
        """Dask calls this when a worker has joined."""
        stream: Any = scheduler.stream_comms[worker]
        stream.interval = SEND_S


def scheduler_options() -> dict[str, Any]:
    """Return what all schedulers of farms are made with, beside where they listen."""
    return {"dashboard": False, "dashboard_address": ":0", "plugins": (Prompt(),)}


async def serve(endpoint: Endpoint, stop: asyncio.Event, ready: Callable[[], None]) -> None:
    """Let workers and runs meet until told to stop; the workers wait for the next scheduler then.

    Args:
        endpoint: Where to listen. Whoever reaches it can run code on the workers.
        stop: Set it to end.
        ready: Called when it listens.

    Raises:
        FarmError: The port is taken, or the host is none of this machine's.
    """
    try:
        scheduler = await Scheduler(host=endpoint.host.strip("[]"), port=endpoint.port, **scheduler_options())
    except RuntimeError as error:
        if not isinstance(error.__cause__, OSError):
            raise
        reason = error.__cause__.strerror or error.__cause__
        raise FarmError(
            f"{endpoint} cannot be listened on ({reason}): choose another port or host"
        ) from error
    ready()
    await stop.wait()
    await scheduler.close()
