"""The addresses of farms: what `--farm` takes, and how a farm is opened from it."""

import importlib.util
import re
from dataclasses import dataclass

from irgym.core.errors import BackendError, FarmError
from irgym.measure.farm.local import LocalFarm
from irgym.measure.farm.protocol import Farm
from irgym.measure.protocol import Limits

INSTALL = "pip install 'irgym[farm]'"
"""What installs the libraries that farms of several machines need."""

_FORMS = "write local, local:4, dask://HOST:PORT or slurm?workers=8"
_HOST = r"[\w.-]+|\[[0-9A-Fa-f:.]+\]"


@dataclass(frozen=True)
class Endpoint:
    """Where the scheduler of a farm listens.

    Attributes:
        host: Name or number of the host; an IPv6 number in brackets.
        port: TCP port, 1 to 65535.
    """

    host: str
    port: int

    @property
    def tcp(self) -> str:
        """The address as Dask writes it."""
        return f"tcp://{self.host}:{self.port}"

    def __str__(self) -> str:
        return f"dask://{self.host}:{self.port}"


def parse_endpoint(address: str) -> Endpoint:
    """Parse `dask://HOST:PORT`.

    Raises:
        FarmError: The address is malformed.
    """
    match = re.fullmatch(rf"dask://({_HOST}):(\d{{1,5}})", address)
    if match is None or not 1 <= int(match[2]) <= 65535:
        raise FarmError(f"{address!r} is no address of a farm: write dask://HOST:PORT")
    return Endpoint(match[1], int(match[2]))


def parse_listening(address: str) -> Endpoint:
    """Parse `PORT`, which means this machine only, or `HOST:PORT`.

    Raises:
        FarmError: The address is malformed.
    """
    host, colon, port = address.rpartition(":")
    try:
        return parse_endpoint(f"dask://{host if colon else '127.0.0.1'}:{port}")
    except FarmError:
        raise FarmError(
            f"{address!r} is no place to listen: write PORT, or HOST:PORT to be reached from other machines"
        ) from None


def require_farm() -> None:
    """Make sure that Dask can be imported.

    Raises:
        BackendError: It cannot.
    """
    missing = [name for name in ("distributed", "dask_jobqueue") if importlib.util.find_spec(name) is None]
    if missing:
        raise BackendError(f"a farm needs {' and '.join(missing)}: run {INSTALL}")


def open_farm(address: str | None, limits: Limits) -> Farm:
    """Return the farm of an address, with its workers found.

    Args:
        address: `local`, `local:N`, `dask://HOST:PORT`, or `slurm` with options as in `slurm?workers=8`;
            None is `local`, one process on this machine.
        limits: What a call may use. Other machines time on the core that they choose themselves.

    Raises:
        FarmError: The address is malformed, or nothing answers there.
        BackendError: Dask is not installed.
    """
    address = "local" if address is None else address
    local = re.fullmatch(r"local(?::(\d{1,4}))?", address)
    if local and int(local[1] or 1) > 0:
        return LocalFarm(int(local[1] or 1), limits)
    if address.startswith("dask:"):
        endpoint = parse_endpoint(address)
        require_farm()
        from irgym.measure.farm.dask import DaskFarm

        return DaskFarm(endpoint, limits)
    if re.match(r"slurm(\?|$)", address):
        require_farm()
        from irgym.measure.farm.slurm import SlurmFarm, parse_slurm

        return SlurmFarm(parse_slurm(address), limits)
    raise FarmError(f"{address!r} is no farm: {_FORMS}")
