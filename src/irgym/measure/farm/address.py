"""Addresses of farms: what `--farm` takes, and the farm that each opens."""

import importlib.util
import re

from irgym.base.errors import BackendError, FarmError
from irgym.measure.farm.endpoint import parse_endpoint
from irgym.measure.farm.local import LocalFarm
from irgym.measure.farm.protocol import Farm
from irgym.measure.isolation.protocol import Limits

INSTALL = "pip install 'irgym[farm]'"
"""The command that installs the libraries for farms of several machines."""

_FORMS = "write local, local:4, dask://HOST:PORT or slurm?workers=8"


def require_farm() -> None:
    """Check that the libraries for farms of several machines are installed.

    Raises:
        BackendError: A library is missing.
    """
    needed = ("distributed", "dask_jobqueue", "cryptography")
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise BackendError(f"a farm needs {' and '.join(missing)}: run {INSTALL}")


def open_farm(address: str | None, limits: Limits) -> Farm:
    """Return the farm of an address, connected to its workers.

    Args:
        address: `local`, `local:N`, `dask://HOST:PORT`, also with `?certificate=FILE` or `?insecure=1`, or
            `slurm` with options as in `slurm?workers=8`; None is `local`, one process on this machine.
        limits: Limits of a call. Other machines choose the timing core themselves.

    Raises:
        FarmError: The address is malformed, or no such farm answers there.
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
