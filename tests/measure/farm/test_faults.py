"""Workers and schedulers that die, leave, come back, or are of the wrong kind."""

import signal
import subprocess
import threading
from pathlib import Path

import psutil
import pytest
from farm_site import FOREIGN_MACHINE, INTRUDER, Site, told, wait_until

from irgym.base.errors import FarmError
from irgym.measure.farm.dask import DaskFarm
from irgym.measure.isolation.protocol import Limits, Returned

LIMITS = Limits(timeout_s=5.0)


class Run(threading.Thread):
    """A run in the background."""

    def __init__(self, farm, calls):
        super().__init__()
        self._farm, self._calls = farm, calls
        self.replies = []
        self.error = None
        self.start()

    def run(self):
        try:
            self.replies = self._farm.run(self._calls)
        except FarmError as error:
            self.error = error


def noted(folder: Path, count: int, seconds: float, planted):
    """Return calls that record their run in a file."""
    return [planted("nap_and_note", str(folder / "ran"), n, seconds) for n in range(count)]


def ran(folder: Path) -> list[int]:
    file = folder / "ran"
    return [int(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_a_worker_killed_while_measuring(site: Site, planted):
    site.serve()
    first, second = site.workers("anna", "bert")
    with DaskFarm(site.endpoint, LIMITS) as farm:
        run = Run(farm, noted(site.folder, 30, 0.05, planted))
        wait_until(lambda: len(ran(site.folder)) > 6)
        children = psutil.Process(second.pid).children(recursive=True)
        second.send_signal(signal.SIGKILL)
        run.join()
        assert run.replies == [Returned(n) for n in range(30)]
        assert set(ran(site.folder)) == set(range(30))
        psutil.wait_procs(children, timeout=5)
        assert not any(child.is_running() for child in children)
        # During the next run, a worker joins and another is told to leave.
        run = Run(farm, noted(site.folder, 60, 0.05, planted))
        site.workers("carl")
        first.send_signal(signal.SIGTERM)
        assert first.wait(10) == 0
        run.join()
        assert run.replies == [Returned(n) for n in range(60)]


def test_the_scheduler_killed_between_runs_and_within_one(site: Site, planted):
    scheduler = site.serve()
    workers = site.workers("anna", "bert")
    with DaskFarm(site.endpoint, LIMITS) as farm:
        assert farm.run([planted("double", 1)]) == [Returned(2)]
        scheduler.send_signal(signal.SIGKILL)
        scheduler.wait()
        scheduler = site.serve()
        for worker in workers:
            told(worker, "works for")
        assert farm.run([planted("double", n) for n in range(20)]) == [Returned(2 * n) for n in range(20)]
        run = Run(farm, noted(site.folder, 24, 0.2, planted))
        wait_until(lambda: len(ran(site.folder)) > 8)
        scheduler.send_signal(signal.SIGKILL)
        scheduler.wait()
        before = len(ran(site.folder))
        site.serve()
        run.join()
        assert run.replies == [Returned(n) for n in range(24)]
        again = len(ran(site.folder)) - 24
        assert again < before, "what was answered does not run again"


def test_a_scheduler_that_stays_away(site: Site, planted):
    scheduler = site.serve()
    [worker] = site.workers("anna")
    with DaskFarm(site.endpoint, LIMITS, patience_s=1.0) as farm:
        run = Run(farm, noted(site.folder, 40, 0.05, planted))
        wait_until(lambda: len(ran(site.folder)) > 2)
        scheduler.send_signal(signal.SIGKILL)
        run.join()
        assert str(site.endpoint) in str(run.error) and "irgym farm serve" in str(run.error)
        with pytest.raises(FarmError, match=f"{site.endpoint}.*irgym farm serve"):
            DaskFarm(site.endpoint, LIMITS, patience_s=0.5)
        with pytest.raises(FarmError, match=f"{site.endpoint}.*irgym farm serve"):
            farm.run([planted("double", 1)])
        site.serve()
        told(worker, "works for")
        assert farm.run([planted("double", 1)]) == [Returned(2)]


def test_a_farm_without_workers_and_an_interrupted_worker(site: Site, planted):
    site.serve()
    with pytest.raises(FarmError, match=f"start one by irgym worker {site.endpoint}"):
        DaskFarm(site.endpoint, LIMITS, patience_s=0.5)
    [worker] = site.workers("anna")
    with DaskFarm(site.endpoint, Limits(timeout_s=60.0), patience_s=0.5) as farm:
        run = Run(farm, [planted("spawn_sleeper", str(site.folder / "pids"))])
        wait_until(lambda: len(pids(site)) == 2)
        worker.send_signal(signal.SIGINT)
        assert worker.wait(10) == 0
        run.join()
    assert f"irgym worker {site.endpoint}" in str(run.error)
    wait_until(lambda: not any(runs(pid) for pid in pids(site)))


def pids(site: Site) -> list[int]:
    """Return the processes of a candidate that hangs: the child, and one that it started."""
    file = site.folder / "pids"
    return [int(pid) for pid in file.read_text().split()] if file.exists() else []


def runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_other_machines_and_names(site: Site, planted):
    site.serve()
    site.workers("anna")
    with DaskFarm(site.endpoint, LIMITS) as farm:
        refused(site, site.start("worker", site.endpoint.address, "--name", "anna"), "another --name")
        foreign = site.start("worker", site.endpoint.address, program=FOREIGN_MACHINE)
        refused(site, foreign, "Abacus 3000", "must not be mixed")
        # A worker of another kind that joins nevertheless gets no calls.
        told(site.start("worker", site.endpoint.address, "--name", "eve", program=INTRUDER), "works for")
        assert farm.run([planted("double", n) for n in range(40)]) == [Returned(2 * n) for n in range(40)]
        assert farm.workers == 1
        wait_until(lambda: farm.members()[0].activity.done == 40)
        assert [member.name for member in farm.members()] == ["anna", "eve"]
        assert farm.members()[1].activity.done == 0
    with pytest.raises(FarmError, match=r"of 2 kinds.*Abacus 3000"):
        DaskFarm(site.endpoint, LIMITS)


def test_nothing_to_join_and_nothing_to_listen_on(site: Site, shared: Site):
    refused(
        site, site.start("worker", site.endpoint.address, "--timeout-s", "0.5"), str(site.endpoint), "0.5 s"
    )
    refused(site, site.start("farm", "serve", str(shared.endpoint.port), "--insecure"), "another port")


def refused(site: Site, process: subprocess.Popen[str], *words: str) -> None:
    """Check that the last process ends with one sentence that has the given words."""
    assert process.wait(120) == 2
    errors = sorted(site.folder.glob("*.err"))[-1].read_text()
    assert errors.startswith("irgym: ") and errors.count("\n") == 1, errors
    assert all(word in errors for word in words), errors
