"""Chaos: runs are killed, stopped and starved at random moments, and no acknowledged result may be lost.

python benchmarks/chaos.py --rounds 200

Each round starts a `tune`, `train` or `compare`, in one process, on a local farm or on a Dask farm on
loopback, and harms it. Afterwards no process is left; each cost recorded before is present and unchanged; no
failure is recorded, since all these schedules run; the harmed command ended with one sentence, never with a
traceback; and the same command resumes and succeeds. At the end, recorded schedules are measured again: each
must run.

As root, the files are on a separate small file system, which is filled up and made read-only; other users
skip these two harms.
"""

import os
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import tyro

from irgym.core.cost import Job
from irgym.envs.loops.environment import LOOPS
from irgym.measure.evaluators import Measured
from irgym.measure.farm import LocalFarm

PROGRAMS = ("loops://mm/64x64x64", "loops://mm/48x32x80", "loops://bmm/3x16x24x32")
DISK = "64m"
MARK = "IRGYM_CHAOS"
HARMLESS = ("stop", "stop a child", "kill a child", "kill a worker")
"""Harms that a run must survive: it succeeds as if nothing had happened."""


@dataclass(frozen=True)
class Options:
    """Options of the command line."""

    rounds: int = 200
    """Commands to start and harm."""
    seed: int = 0
    """Seed of commands, harms and moments."""
    evaluations: int = 40
    """Candidates of a search, which determine how long a command takes."""
    sample: int = 100
    """Recorded schedules to measure again at the end."""
    backend: str | None = None
    """Back end of loops; by default the preferred one."""


@dataclass
class World:
    """The files, the farm, and the faults found.

    Attributes:
        folder: Folder of all files that commands write.
        mounted: Whether the folder is a separate file system.
        endpoint: Address of the farm's scheduler.
        workers: The farm's workers.
        unharmed: Seconds that unharmed commands take, by kind and farm.
        faults: Descriptions of the faults.
    """

    folder: Path
    mounted: bool
    endpoint: str = ""
    workers: list["subprocess.Popen[bytes]"] = field(default_factory=list["subprocess.Popen[bytes]"])
    unharmed: dict[tuple[str, str], float] = field(default_factory=dict[tuple[str, str], float])
    faults: list[str] = field(default_factory=list[str])

    @property
    def cache(self) -> Path:
        """The database of costs."""
        return self.folder / "cache" / "costs.sqlite"

    def start(self, *arguments: str, mark: str, output: Path) -> "subprocess.Popen[bytes]":
        """Start an irgym command whose processes carry a mark."""
        folders = {"IRGYM_CACHE_DIR": str(self.cache.parent), "XDG_CONFIG_HOME": str(self.folder / "config")}
        environment = {**os.environ, **folders, MARK: mark}
        with output.open("wb") as file:
            return subprocess.Popen(
                [sys.executable, "-m", "irgym", *arguments], env=environment, stdout=file, stderr=file
            )

    def add_worker(self) -> None:
        """Start one more worker of the farm."""
        name = f"worker{len(self.workers)}-{uuid.uuid4().hex[:4]}"
        output = Path(tempfile.gettempdir()) / f"irgym-chaos-{name}.txt"
        worker = self.start("worker", self.endpoint, "--name", name, mark="farm", output=output)
        _until(lambda: "works for" in output.read_text(), 60, f"{name} does not join")
        output.unlink()
        self.workers.append(worker)

    def seconds(self, kind: str, farm: str, options: Options) -> float:
        """Return the duration of an unharmed command; the first one of its kind is measured."""
        if (kind, farm) not in self.unharmed:
            number = 1_000_000 + len(self.unharmed)
            output = Path(tempfile.gettempdir()) / "irgym-chaos.txt"
            begin = time.monotonic()
            process = self.start(*_command(self, kind, farm, number, options), mark="calm", output=output)
            if process.wait(300) != 0:
                self.faults.append(f"{kind} {farm} fails without any harm: {output.read_text()[-300:]}")
            self.unharmed[kind, farm] = time.monotonic() - begin
        return self.unharmed[kind, farm]

    def mount(self, options: str) -> None:
        """Mount the file system again with other options."""
        subprocess.run(["mount", "-o", f"remount,{options}", str(self.folder)], check=True)


def main(options: Options) -> None:
    """Run the rounds, print the outcomes, and exit with status 1 if there was a fault."""
    rng = random.Random(options.seed)
    seen: Counter[str] = Counter()
    with _world() as world:
        for number in range(options.rounds):
            before = len(world.faults)
            what = _round(world, rng, number, options)
            seen[what.rpartition("; ")[0]] += 1
            for fault in world.faults[before:]:
                print(f"  WRONG: {fault}", flush=True)
            print(f"{number}: {what}", flush=True)
        rows, measured = _measured_again(world, options, rng)
        for what, count in sorted(seen.items()):
            print(f"{count:4d} x {what}")
        print(f"{rows} costs recorded, {measured} measured again; {len(world.faults)} faults")
        for fault in world.faults:
            print(f"  {fault}")
    sys.exit(1 if world.faults else 0)


def _round(world: World, rng: random.Random, number: int, options: Options) -> str:
    kind = rng.choice(("tune", "train", "compare"))
    farm = rng.choice(("", "local:2", world.endpoint))
    harms = ["kill", "terminate", "interrupt", *HARMLESS[: 4 if farm == world.endpoint else 3]]
    harm = rng.choice([*harms, "full", "unwritable"] if world.mounted else harms)
    moment = rng.uniform(0.1, 1.0) * world.seconds(kind, farm, options)
    place = f"{number}: {harm} of {kind} {farm or 'in one process'} after {moment:.1f} s"
    before = _rows(world)
    output = Path(tempfile.gettempdir()) / "irgym-chaos.txt"
    command = _command(world, kind, farm, number, options)
    mark = uuid.uuid4().hex
    if harm == "unwritable":
        world.mount("ro")
    process = world.start(*command, mark=mark, output=output)
    with suppress(subprocess.TimeoutExpired):
        process.wait(moment)
    in_time = process.poll() is None
    _harm(world, harm, process, rng)
    status = _ended(world, process, place)
    _look(world, place, mark, before, status, output.read_text(errors="replace"), harm)
    if status != 0:
        again = _ended(
            world, world.start(*command, *_resume(kind), mark=mark, output=output), f"{place}, again"
        )
        if again == 2 and "there is no run in" in output.read_text():  # it had not begun
            again = _ended(world, world.start(*command, mark=mark, output=output), f"{place}, restarted")
        if again != 0:
            world.faults.append(f"{place}: the command fails again: {output.read_text()[-300:]}")
        _look(world, f"{place}, again", mark, before, 0, "", "")
    for worker in list(world.workers):
        if worker.poll() is not None:
            world.workers.remove(worker)
            world.add_worker()
    for leftover in world.folder.glob("run-*"):
        shutil.rmtree(leftover)
    where = farm.partition(":")[0] or "one process"
    return f"{kind}, {where}, {harm}; status {status}{'' if in_time else ', too late'}"


def _command(world: World, kind: str, farm: str, number: int, options: Options) -> list[str]:
    common = ["--seed", str(number)]
    common += ["--farm", farm] if farm else []
    common += ["--backend", options.backend] if options.backend else []
    searching = ["--evaluations", str(options.evaluations)]
    if kind == "tune":
        return ["tune", PROGRAMS[number % len(PROGRAMS)], "--search", "random", *searching, *common]
    if kind == "compare":
        target = world.folder / f"run-{number}"
        target.mkdir()
        methods = ["--methods", "base,random,evolutionary", "--programs", *PROGRAMS]
        return ["compare", "loops", *methods, "--json", str(target / "c.json"), *searching, *common]
    folder = world.folder / f"run-{number}"
    size = ["--iterations", "3", "--set", "episodes=8", "minibatch=8"]
    data = ["--dataset", "mm_random:count=20,low=16,high=64,seed=1"]
    return ["train", "loops", "--run", str(folder), *data, *size, *common]


def _resume(kind: str) -> list[str]:
    return [] if kind == "tune" else ["--resume"]


def _harm(world: World, harm: str, process: "subprocess.Popen[bytes]", rng: random.Random) -> None:
    signals = {"kill": signal.SIGKILL, "terminate": signal.SIGTERM, "interrupt": signal.SIGINT}
    if harm in signals:
        process.send_signal(signals[harm])
    elif harm == "stop":
        _stopped(process.pid)
    elif harm in ("stop a child", "kill a child"):
        children: list[psutil.Process] = []
        with suppress(psutil.NoSuchProcess):
            children = psutil.Process(process.pid).children(recursive=True)
        if children:
            victim = rng.choice(children).pid
            with suppress(ProcessLookupError):
                _stopped(victim) if harm == "stop a child" else os.kill(victim, signal.SIGKILL)
    elif harm == "kill a worker":
        rng.choice(world.workers).kill()
    elif harm == "full":
        ballast = world.folder / "ballast"
        with suppress(OSError), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 16))
        time.sleep(2.0)
        ballast.unlink()
    elif harm == "unwritable":
        world.mount("rw")


def _stopped(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
        time.sleep(1.5)
        os.kill(pid, signal.SIGCONT)


def _ended(world: World, process: "subprocess.Popen[bytes]", place: str) -> int:
    try:
        return process.wait(300)
    except subprocess.TimeoutExpired:
        world.faults.append(f"{place}: it does not end")
        process.kill()
        return process.wait()


def _look(
    world: World, place: str, mark: str, before: dict[tuple[str, ...], str], status: int, said: str, harm: str
) -> None:
    """Record the faults after a command."""

    def wrong(text: str) -> None:
        world.faults.append(f"{place}: {text}")

    try:
        _until(lambda: not _marked(mark), 10, "")
    except TimeoutError:
        wrong(f"left behind: {_marked(mark)}")
    if "Traceback" in said:
        wrong(f"a traceback: {said[-600:]}")
    if harm in HARMLESS and status != 0:
        wrong(f"status {status}: {said[-300:]}")
    if harm in ("full", "unwritable") and status not in (0, 2):
        wrong(f"status {status}: {said[-300:]}")
    after = _rows(world)
    lost = [row for row in before if after.get(row) != before[row]]
    if lost:
        wrong(f"{len(lost)} costs lost or changed, such as {lost[0]}")
    failed = [(row, cost) for row, cost in after.items() if row not in before and not cost.startswith("ok")]
    if failed:
        wrong(f"{len(failed)} failures recorded, such as {failed[0]}")


def _rows(world: World) -> dict[tuple[str, ...], str]:
    if not world.cache.exists():
        return {}
    with closing(sqlite3.connect(world.cache, timeout=30)) as database:
        if not database.execute("SELECT count(*) FROM sqlite_master WHERE name = 'costs'").fetchone()[0]:
            return {}
        [damage] = database.execute("PRAGMA integrity_check").fetchone()
        if damage != "ok":
            world.faults.append(f"the cache is damaged: {damage}")
        rows = database.execute(
            "SELECT program, schedule, toolchain, target, machine, outcome, samples, detail FROM costs"
            " JOIN contexts ON context = id"
        ).fetchall()
    return {tuple(row[:5]): f"{row[5]} {row[6]} {row[7]}" for row in rows}


def _marked(mark: str) -> list[str]:
    found: list[str] = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(f"{process.pid} {' '.join(process.cmdline())[:100]}")
    return found


def _measured_again(world: World, options: Options, rng: random.Random) -> tuple[int, int]:
    """Measure a sample of the recorded schedules, and record failures as faults."""
    rows = sorted(_rows(world))
    jobs: list[Job] = []
    for program, schedule, toolchain, target, _ in rng.sample(rows, min(options.sample, len(rows))):
        task = LOOPS.task(program, options.backend)
        state = task.recorded(schedule)
        job = None if state is None else task.job(state)
        if job is None or (job.schedule, job.toolchain, job.target) != (schedule, toolchain, target):
            world.faults.append(f"no schedule of {program}: {schedule}")
        else:
            jobs.append(job)
    with LocalFarm() as farm:
        for job, measurement in zip(jobs, Measured(farm).evaluate(jobs), strict=True):
            if not measurement.ok:
                world.faults.append(f"recorded as ok, but {measurement}: {job.program} {job.schedule}")
    return len(rows), len(jobs)


def _until(condition: Callable[[], object], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0.05)


@contextmanager
def _world() -> Iterator[World]:
    """Make the folder, on a separate file system where possible, and start the farm."""
    with tempfile.TemporaryDirectory() as folder:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "irgym-chaos", folder]
        mounted = os.geteuid() == 0 and subprocess.run(mount, check=False).returncode == 0
        world = World(Path(folder), mounted)
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        world.endpoint = f"dask://127.0.0.1:{port}"
        output = Path(tempfile.gettempdir()) / "irgym-chaos-scheduler.txt"
        scheduler = world.start("farm", "serve", str(port), mark="farm", output=output)
        try:
            _until(lambda: "waits for workers" in output.read_text(), 60, "the scheduler does not start")
            for _ in range(2):
                world.add_worker()
            yield world
        finally:
            for process in (*world.workers, scheduler):
                process.terminate()
                process.wait(30)
            if mounted:
                subprocess.run(["umount", folder], check=True)


if __name__ == "__main__":
    main(tyro.cli(Options))
