"""Commands that run until they are told to stop."""

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable


async def until_told(serve: Callable[[asyncio.Event], Awaitable[None]]) -> None:
    """Run a service, which is told by an event when the process is interrupted or terminated."""
    logging.getLogger("distributed").setLevel(logging.ERROR)  # the commands say what a user needs to know
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    await serve(stop)
