"""A farm of SLURM jobs: a scheduler in this process, and a worker in each job, by dask-jobqueue."""

import re
import shlex
import shutil
import signal
import socket
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
from distributed.utils import get_ip

from irgym.base.closing import Closing
from irgym.base.errors import BackendError, FarmError, explained
from irgym.core.cost import Call
from irgym.measure.farm.certificate import default_certificate, make_certificate, security_of
from irgym.measure.farm.dask import DaskFarm
from irgym.measure.farm.endpoint import Endpoint, parse_options
from irgym.measure.farm.jobs import PATTERNS, TEXT
from irgym.measure.farm.scheduler import FarmScheduler, scheduler_options
from irgym.measure.isolation.protocol import Limits, Reply

_INTERRUPT = signal.getsignal(signal.SIGINT)

from dask_jobqueue.slurm import SLURMCluster, SLURMJob  # noqa: E402

# dask_jobqueue makes an interrupt end the process, as soon as it is imported.
signal.signal(signal.SIGINT, _INTERRUPT)

LEAVE_S = 60.0
"""Seconds without a scheduler after which a job ends."""


@dataclass(frozen=True)
class SlurmOptions:
    """Options of a `slurm?...` address: the jobs to request from SLURM.

    Attributes:
        workers: Number of jobs, each with one worker.
        cores: Cores of a job.
        memory: Main memory of a job, such as `4GB`.
        walltime: Longest run of a job, hours:minutes:seconds.
        queue: Partition; empty for the default one.
        account: Account to charge; empty for the default one.
        constraint: Features that a node must have, so that all nodes are of one kind.
        interface: Network interface between the jobs and this machine, such as `ib0`.
        patience_s: Seconds to wait for the first job to start.
        certificate: File with the farm's certificate, which the jobs can read too; it is made if missing.
            Empty for a temporary certificate, in the folder of the user's.
    """

    workers: int = 1
    cores: int = 1
    memory: str = "6GB"
    walltime: str = "01:00:00"
    queue: str = ""
    account: str = ""
    constraint: str = ""
    interface: str = ""
    patience_s: float = 3600.0
    certificate: str = ""


def parse_slurm(address: str) -> SlurmOptions:
    """Parse `slurm` or `slurm?workers=8&walltime=02:00:00`.

    Raises:
        FarmError: An option is unknown, malformed, or given twice.
    """
    known = [field.name for field in fields(SlurmOptions)]
    query = address.removeprefix("slurm").removeprefix("?")
    texts = parse_options(address, query, known, "slurm?workers=8&memory=4GB")
    options: dict[str, Any] = {name: _value(name, text) for name, text in texts.items()}
    return SlurmOptions(**options)


_PATTERNS = {
    "workers": r"[1-9]\d{0,4}",
    "cores": r"[1-9]\d{0,3}",
    "patience_s": r"\d+(\.\d+)?",
    "memory": PATTERNS["memory"],
    "walltime": PATTERNS["time"],
    "certificate": r"[^\x00-\x1f]+",
}


def _value(name: str, text: str) -> int | float | str:
    # Values go into a job's script, and must not be able to inject commands.
    if not re.fullmatch(_PATTERNS.get(name, TEXT), text):
        example = getattr(SlurmOptions, name) or "text without blanks"
        raise FarmError(
            f"{name}={text!r} is malformed: write {name}={example}, for example, and %2B for +, %26 for &"
        )
    if name in ("workers", "cores"):
        return int(text)
    return float(text) if name == "patience_s" else text


class WorkerJob(SLURMJob):
    """A job that runs `irgym worker`."""

    def __init__(self, scheduler: str | None = None, name: str | None = None, **options: Any) -> None:
        super().__init__(scheduler, name, **options)  # pyright: ignore[reportUnknownMemberType]
        address = f"dask://{(scheduler or '').partition('://')[2]}"
        command = (sys.executable, "-m", "irgym", "worker", address, "--name", str(name))
        certificate = ("--certificate", str(options["security"].tls_ca_file))
        self._command_template = shlex.join((*command, "--timeout-s", f"{LEAVE_S:g}", *certificate))


class WorkerCluster(SLURMCluster):
    """SLURM jobs that run `irgym worker`, and a scheduler for them in this process."""

    job_cls = WorkerJob


def cluster_of(options: SlurmOptions, certificate: Path) -> Any:
    """Return a scheduler in this process, without jobs yet; its `job_script()` is the script of a job.

    Raises:
        FarmError: This machine has no such interface.
    """
    directives = [f"--constraint={options.constraint}"] if options.constraint else []
    return WorkerCluster(
        cores=options.cores,
        memory=options.memory,
        processes=1,
        walltime=options.walltime,
        queue=options.queue or None,
        account=options.account or None,
        security=security_of(certificate),
        job_extra_directives=directives,
        job_name="irgym-worker",
        scheduler_cls=FarmScheduler,
        scheduler_options={"host": _host(options.interface), **scheduler_options()},
    )


def _host(interface: str) -> str:
    """Return this machine's address on an interface, by default the interface of the default route."""
    if not interface:
        return str(get_ip())
    places = psutil.net_if_addrs()
    found = [place.address for place in places.get(interface, ()) if place.family == socket.AF_INET]
    if not found:
        raise FarmError(
            f"there is no interface {interface} with an IPv4 address here: choose among {', '.join(places)}"
        )
    return found[0]


@contextmanager
def _certificate(options: SlurmOptions) -> Generator[Path]:
    """Provide the certificate that the options name, or else a temporary one for the run."""
    if options.certificate:
        path = Path(options.certificate).expanduser().absolute()
        make_certificate(path)
        yield path
        return
    with ExitStack() as stack:
        home = default_certificate().parent
        remedy = "name a file that the jobs can read too, as in slurm?certificate=FILE"
        with explained(f"{home} cannot be written", remedy, FarmError):
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder = stack.enter_context(TemporaryDirectory(prefix="slurm-", dir=home))
        path = Path(folder, "farm.pem")
        make_certificate(path)
        yield path


class SlurmFarm(Closing):
    """Workers in SLURM jobs, which end with the farm. Use it as a context manager, or close it.

    Args:
        options: Jobs to request from SLURM.
        limits: Limits of a call.

    Raises:
        BackendError: This machine cannot submit jobs.
        FarmError: No job started in time, the nodes are of different kinds, or the certificate cannot be
            written.
    """

    def __init__(self, options: SlurmOptions, limits: Limits):
        if shutil.which("sbatch") is None:
            raise BackendError("there is no sbatch here: run this on a machine that submits SLURM jobs")
        with ExitStack() as stack:
            certificate = stack.enter_context(_certificate(options))
            cluster = cluster_of(options, certificate)
            stack.callback(cluster.close)
            cluster.scale(jobs=options.workers)
            host, _, port = cluster.scheduler_address.removeprefix("tls://").rpartition(":")
            endpoint = Endpoint(host, int(port), certificate)
            self._farm = stack.enter_context(DaskFarm(endpoint, limits, options.patience_s))
            self._stack = stack.pop_all()

    @property
    def workers(self) -> int:
        """Number of calls that run at the same time."""
        return self._farm.workers

    @property
    def conditions(self) -> str:
        """Key of the nodes and the limits."""
        return self._farm.conditions

    @property
    def machine(self) -> str:
        """Description of the nodes, and their number."""
        return self._farm.machine

    def run(self, calls: Sequence[Call]) -> list[Reply]:
        """Return one reply for each call, in order.

        Raises:
            FarmError: All jobs have ended.
        """
        return self._farm.run(calls)

    def call(
        self, call: Call, timeout_s: float | None = None, told: Callable[[str], None] | None = None
    ) -> Reply:
        """Run one call in a job.

        Raises:
            FarmError: All jobs have ended.
        """
        return self._farm.call(call, timeout_s, told)

    def close(self) -> None:
        """Cancel the jobs."""
        self._stack.close()
