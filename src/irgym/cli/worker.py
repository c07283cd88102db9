"""`irgym worker`."""

import asyncio
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tyro.conf import Positional

from irgym.base.errors import FarmError
from irgym.cli.service import until_told
from irgym.measure.farm.address import require_farm
from irgym.measure.farm.endpoint import parse_endpoint


@dataclass(frozen=True)
class Worker:
    """Measure for the farm of a scheduler, on one core; join again after the scheduler was gone."""

    farm: Positional[str]
    """Where the scheduler listens, as in dask://HOST:PORT."""
    name: str | None = None
    """Name of this worker; by default host and process number."""
    certificate: Path | None = None
    """File by which scheduler, workers and runs prove who they are; by default ~/.config/irgym/farm.pem."""
    insecure: bool = False
    """No TLS: whoever answers there can run programs here."""
    timeout_s: float | None = None
    """Leave when no scheduler has answered for so many seconds; by default wait forever."""

    def run(self) -> None:
        """Work until told to stop."""
        endpoint = parse_endpoint(self.farm, self.certificate, self.insecure)
        if self.timeout_s is not None and not self.timeout_s > 0:
            raise FarmError(f"a time-out of {self.timeout_s:g} s leaves no time to join: give more than 0")
        require_farm()
        from irgym.measure.farm.worker import join

        say = partial(print, flush=True)
        asyncio.run(until_told(lambda stop: join(endpoint, self.name, self.timeout_s, stop, say)))
