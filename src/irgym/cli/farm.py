"""`irgym farm`."""

import asyncio
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rich.table import Table
from tyro.conf import Positional

from irgym.cli.output import console, write_json_to
from irgym.cli.service import until_told
from irgym.measure.farm.address import require_farm
from irgym.measure.farm.certificate import make_certificate
from irgym.measure.farm.endpoint import Endpoint, parse_endpoint, parse_listening

if TYPE_CHECKING:
    from irgym.measure.farm.members import Member


@dataclass(frozen=True)
class Farm:
    """Start the scheduler of a farm, where workers and runs meet; or show the workers of one."""

    action: Positional[Literal["serve", "status"]]
    """serve starts a scheduler; status shows the workers of a farm."""
    address: Positional[str]
    """For serve: a port, or HOST:PORT to be reached from other machines. For status: dask://HOST:PORT."""
    certificate: Path | None = None
    """File by which scheduler, workers and runs prove who they are; by default ~/.config/irgym/farm.pem.
    `serve` makes it if there is none."""
    insecure: bool = False
    """No TLS: whoever reaches the port can run programs on the workers."""
    json: Path | None = None
    """Write the status as JSON to this file."""

    def run(self) -> None:
        """Serve or show."""
        if self.action == "serve":
            self._serve(parse_listening(self.address, self.certificate, self.insecure))
        else:
            self._show(parse_endpoint(self.address, self.certificate, self.insecure))

    def _serve(self, endpoint: Endpoint) -> None:
        require_farm()
        from irgym.measure.farm.scheduler import serve

        file = endpoint.certificate
        if file is not None and make_certificate(file):
            print(f"made {file}: whoever has this file can run programs on the farm", flush=True)
        whose = "of anybody, without TLS" if file is None else f"that have {file}"

        async def announced(stop: asyncio.Event) -> None:
            ready = f"{endpoint} waits for workers and runs {whose}"
            await serve(endpoint, stop, lambda: print(ready, flush=True))

        asyncio.run(until_told(announced))

    def _show(self, endpoint: Endpoint) -> None:
        require_farm()
        from irgym.measure.farm.members import members_at, queue_length

        members = asyncio.run(members_at(endpoint))
        queue = queue_length(members)
        out = console()
        out.print(_table(members))
        out.print(f"{len(members)} workers; {queue} calls wait for one")
        workers = [asdict(member) for member in members]
        write_json_to(self.json, {"farm": str(endpoint), "queue": queue, "workers": workers})


def _table(members: "list[Member]") -> Table:
    table = Table("worker", "host", "machine", "irgym", "running", "done", "failed", "evaluations/s")
    for member in members:
        activity = member.activity
        table.add_row(
            member.name,
            member.host,
            member.kind.text,
            member.kind.irgym,
            str(activity.running),
            str(activity.done),
            str(activity.failed),
            f"{activity.rate:.1f}",
        )
    return table
