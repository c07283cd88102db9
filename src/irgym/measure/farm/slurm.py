"""A farm of SLURM jobs: a scheduler in this process, and a worker in each job, by dask-jobqueue."""

import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import parse_qsl

from dask_jobqueue.slurm import SLURMCluster, SLURMJob

from irgym.core.cost import Call
from irgym.core.errors import BackendError, FarmError
from irgym.measure.farm.address import Endpoint
from irgym.measure.farm.dask import DaskFarm
from irgym.measure.farm.scheduler import scheduler_options
from irgym.measure.protocol import Limits, Reply

LEAVE_S = 60.0
"""After how many seconds without a scheduler a job ends."""


@dataclass(frozen=True)
class SlurmOptions:
    """What to ask SLURM for; the options of a `slurm?...` address.

    Attributes:
        workers: Number of jobs, each with one worker.
        cores: Cores of a job.
        memory: Main memory of a job, such as `4GB`.
        walltime: Longest run of a job, hours:minutes:seconds.
        queue: Partition; empty for the default one.
        account: Account to charge; empty for the default one.
        constraint: Features that a node must have, so that all nodes are of one kind.
        interface: Network interface between the jobs and this machine, such as `ib0`.
        patience_s: How long to wait for the first job to start, seconds.
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


def parse_slurm(address: str) -> SlurmOptions:
    """Parse `slurm` or `slurm?workers=8&walltime=02:00:00`.

    Raises:
        FarmError: An option is unknown, malformed, or given twice.
    """
    query = address.removeprefix("slurm").removeprefix("?")
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError as error:
        raise FarmError(
            f"{address!r} is malformed: write options as in slurm?workers=8&memory=4GB"
        ) from error
    known = {field.name: field for field in fields(SlurmOptions)}
    chosen: dict[str, Any] = {}
    for name, text in pairs:
        if name not in known or name in chosen:
            wrong = "is given twice" if name in chosen else "is no option of slurm"
            raise FarmError(f"{name} {wrong}: choose among {', '.join(known)}")
        chosen[name] = _value(name, text)
    return SlurmOptions(**chosen)


_PATTERNS = {
    "workers": r"[1-9]\d{0,4}",
    "cores": r"[1-9]\d{0,3}",
    "patience_s": r"\d+(\.\d+)?",
    "memory": r"\d+(\.\d+)?[KMGT]i?B",
    "walltime": r"(\d+-)?\d+(:\d\d){0,2}",
}
_TEXT = r"[\w.,:&|*+-]+"


def _value(name: str, text: str) -> int | float | str:
    # What goes into a job's script must not be able to be anything but an option.
    if not re.fullmatch(_PATTERNS.get(name, _TEXT), text):
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
        address = (scheduler or "").replace("tcp://", "dask://")
        self._command_template = (
            f"{sys.executable} -m irgym worker {address} --name {name} --timeout-s {LEAVE_S:g}"
        )


class WorkerCluster(SLURMCluster):
    """SLURM jobs that run `irgym worker`, and a scheduler for them in this process."""

    job_cls = WorkerJob


def cluster_of(options: SlurmOptions) -> Any:
    """Return a scheduler in this process without jobs yet; its `job_script()` is what they will be."""
    directives = [f"--constraint={options.constraint}"] if options.constraint else []
    return WorkerCluster(
        cores=options.cores,
        memory=options.memory,
        processes=1,
        walltime=options.walltime,
        queue=options.queue or None,
        account=options.account or None,
        interface=options.interface or None,
        job_extra_directives=directives,
        job_name="irgym-worker",
        scheduler_options=scheduler_options(),
    )


class SlurmFarm:
    """Workers in SLURM jobs, which end with the farm. Use it as a context manager, or close it.

    Args:
        options: What to ask SLURM for.
        limits: What a call may use.

    Raises:
        BackendError: This machine cannot submit jobs.
        FarmError: No job has started in time, or the nodes are of different kinds.
    """

    def __init__(self, options: SlurmOptions, limits: Limits):
        if shutil.which("sbatch") is None:
            raise BackendError("there is no sbatch here: run this on a machine that submits SLURM jobs")
        self._cluster = cluster_of(options)
        try:
            self._cluster.scale(jobs=options.workers)
            host, _, port = self._cluster.scheduler_address.removeprefix("tcp://").rpartition(":")
            self._farm = DaskFarm(Endpoint(host, int(port)), limits, options.patience_s)
        except BaseException:
            self._cluster.close()
            raise

    @property
    def workers(self) -> int:
        """How many calls run at once."""
        return self._farm.workers

    @property
    def conditions(self) -> str:
        """Key of the nodes and of the limits."""
        return self._farm.conditions

    @property
    def machine(self) -> str:
        """The nodes, and how many there are."""
        return self._farm.machine

    def run(self, calls: Sequence[Call]) -> list[Reply]:
        """Return one reply for each call, in order.

        Raises:
            FarmError: All jobs have ended.
        """
        return self._farm.run(calls)

    def call(self, call: Call, timeout_s: float | None = None) -> Reply:
        """Run one call in a job.

        Raises:
            FarmError: All jobs have ended.
        """
        return self._farm.call(call, timeout_s)

    def close(self) -> None:
        """Cancel the jobs."""
        self._farm.close()
        self._cluster.close()

    def __enter__(self) -> "SlurmFarm":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
