"""The cost cache: every measurement ever made, in SQLite, failures included.

A row is found by everything that its result may depend on: program, schedule, objective, toolchain (which
includes the timing protocol), target and machine. Write-ahead logging lets many processes read and write at
once and survives `kill -9`; it does not work over network file systems, where one process must do all
writing.
"""

import json
import math
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from irgym.base.closing import Closing
from irgym.base.errors import StorageError
from irgym.base.values import parse_json
from irgym.core.cost import Job, Measurement, Outcome, Record
from irgym.measure.machine import cache_dir, fingerprint

SCHEMA = 2
"""Version of the tables; a file of another version is refused."""

APPLICATION = 0x6972676D
"""Marks SQLite files as irgym's."""

ELSEWHERE = "move it away, or set IRGYM_CACHE_DIR to another folder"
"""What to do about a file of others where the cache should be."""

BUSY_S = 30.0
"""How long to wait for another process that writes."""

_TABLES = (
    """CREATE TABLE IF NOT EXISTS contexts (
        id INTEGER PRIMARY KEY, objective TEXT, toolchain TEXT, target TEXT, machine TEXT,
        UNIQUE (objective, toolchain, target, machine)) STRICT""",
    """CREATE TABLE IF NOT EXISTS costs (
        context INTEGER, program TEXT, schedule TEXT, outcome TEXT, samples TEXT, compile_s REAL,
        detail TEXT, measured_at REAL, PRIMARY KEY (context, program, schedule)) STRICT, WITHOUT ROWID""",
)


@dataclass(frozen=True)
class CacheStats:
    """What a cache holds.

    Attributes:
        path: The file.
        size_bytes: Its size, the write-ahead log included.
        rows: Number of measurements.
        programs: Number of different programs.
        families: Measurements by the part of the URI before the sizes.
        outcomes: Measurements by outcome.
        machines: Number of different machines.
    """

    path: str
    size_bytes: int
    rows: int
    programs: int
    families: dict[str, int]
    outcomes: dict[str, int]
    machines: int


def default_path() -> Path:
    """Return the user's cache file."""
    return cache_dir() / "costs.sqlite"


class CostCache(Closing):
    """Measurements on disk. Use it as a context manager, or close it. Threads may share it; forks may not.

    Args:
        path: The file; made if missing, with its folder.
        machine: Key of the machine, and of other conditions, whose rows are read and written; by default
            this machine's.

    Raises:
        StorageError: The file cannot be opened, is damaged, or is not a cost cache of this version.
    """

    def __init__(self, path: Path, machine: str | None = None) -> None:
        self.path = path
        self._machine = machine or fingerprint().key
        self._contexts: dict[tuple[str, str, str], int] = {}
        self._lock = threading.RLock()
        with self._explained():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(
                path, timeout=BUSY_S, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare()
            except BaseException:
                self._database.close()
                raise

    def _prepare(self) -> None:
        known = self._recognised()  # before anything is written to what may be another program's file
        _write_ahead(self._database)
        self._database.execute("PRAGMA synchronous = NORMAL")
        if known:
            return
        with self._transaction():
            if self._recognised():
                return  # another process was first
            for table in _TABLES:
                self._database.execute(table)
            self._database.execute(f"PRAGMA application_id = {APPLICATION}")
            self._database.execute(f"PRAGMA user_version = {SCHEMA}")

    def _recognised(self) -> bool:
        """Say whether the file is a cost cache of this version; it may be empty instead, but nothing else."""
        # One statement, so that the three belong together while another process makes the tables.
        [application, version, tables] = self._database.execute(
            "SELECT (SELECT application_id FROM pragma_application_id),"
            " (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_master)"
        ).fetchone()
        if not tables:
            return False
        if (application, version) != (APPLICATION, SCHEMA):
            raise StorageError(f"{self.path} is not a cost cache of this version: {_remedy(self.path)}")
        return True

    def get_many(self, jobs: Sequence[Job]) -> list[Measurement | None]:
        """Return what is recorded for each job, None where nothing readable is.

        Raises:
            StorageError: The file is damaged.
        """
        with self._explained():
            return [self._get(job) for job in jobs]

    def _get(self, job: Job) -> Measurement | None:
        context = self._context(job)
        if context is None:
            return None
        row = self._database.execute(
            "SELECT outcome, samples, compile_s, detail FROM costs"
            " WHERE context = ? AND program = ? AND schedule = ?",
            (context, job.program, job.schedule),
        ).fetchone()
        return None if row is None else _measurement(*row)

    def put_many(self, jobs: Sequence[Job], measurements: Sequence[Measurement]) -> None:
        """Record measurements, all or none of them; what is there is replaced.

        Raises:
            StorageError: The file cannot be written. What was recorded before stays.
            ValueError: One of them is a prediction.
        """
        if any(measurement.predicted for measurement in measurements):
            raise ValueError("predictions are no measurements")
        now = time.time()
        with self._explained(), self._transaction():
            self._database.executemany(
                "INSERT OR REPLACE INTO costs VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (
                        self._written_context(job),
                        job.program,
                        job.schedule,
                        measurement.outcome.value,
                        json.dumps(measurement.samples),
                        measurement.compile_s,
                        measurement.detail,
                        now,
                    )
                    for job, measurement in zip(jobs, measurements, strict=True)
                ],
            )

    def records(self, scheme: str, objective: str, target: str, limit: int | None) -> list[Record]:
        """Return the newest measurements of an environment's programs on this machine, the newest first.

        Args:
            scheme: What the programs' URIs begin with, before the colon.
            objective: What was measured.
            target: What their code was made for; empty where costs depend on none.
            limit: Greatest number of measurements; None for all.

        Raises:
            StorageError: The file is damaged.
        """
        with self._explained():
            rows = self._database.execute(
                "SELECT program, schedule, toolchain, outcome, samples, compile_s, detail FROM costs"
                " JOIN contexts ON context = id WHERE machine = ? AND objective = ? AND target = ?"
                " AND substr(program, 1, ?) = ? ORDER BY measured_at DESC, program, schedule LIMIT ?",
                (
                    *(self._machine, objective, target, len(scheme) + 1, f"{scheme}:"),
                    -1 if limit is None else limit,
                ),
            ).fetchall()
        return [
            Record(program, schedule, toolchain, measurement)
            for program, schedule, toolchain, *result in rows
            if (measurement := _measurement(*result)) is not None
        ]

    def _context(self, job: Job) -> int | None:
        """Return the number of a job's objective, toolchain and target here, None where there is none."""
        key = (job.objective, job.toolchain, job.target)
        if key in self._contexts:
            return self._contexts[key]
        row = self._database.execute(
            "SELECT id FROM contexts WHERE objective = ? AND toolchain = ? AND target = ? AND machine = ?",
            (*key, self._machine),
        ).fetchone()
        if row is None:
            return None
        if not self._database.in_transaction:  # otherwise it may yet be rolled back
            self._contexts[key] = row[0]
        return row[0]

    def _written_context(self, job: Job) -> int:
        """Return the same, making one where there is none; part of a transaction."""
        number = self._context(job)
        if number is not None:
            return number
        [number] = self._database.execute(
            "INSERT INTO contexts (objective, toolchain, target, machine) VALUES (?, ?, ?, ?) RETURNING id",
            (job.objective, job.toolchain, job.target, self._machine),
        ).fetchone()
        return number

    def stats(self) -> CacheStats:
        """Count what the cache holds.

        Raises:
            StorageError: The file is damaged.
        """
        with self._explained():
            run = self._database.execute
            programs = run("SELECT program, count(*) FROM costs GROUP BY program").fetchall()
            outcomes = run("SELECT outcome, count(*) FROM costs GROUP BY outcome").fetchall()
            machines = run("SELECT count(DISTINCT machine) FROM contexts").fetchone()[0]
        families: dict[str, int] = {}
        for program, count in programs:
            family = program.rpartition("/")[0] or program
            families[family] = families.get(family, 0) + count
        files = [self.path, self.path.with_name(self.path.name + "-wal")]
        size = sum(file.stat().st_size for file in files if file.exists())
        rows = sum(count for _, count in programs)
        return CacheStats(str(self.path), size, rows, len(programs), families, dict(outcomes), machines)

    @staticmethod
    def clear(path: Path) -> None:
        """Remove a cache, damaged or not; nothing happens where there is none.

        Raises:
            StorageError: The file is none of irgym's, or it cannot be removed.
        """
        path = Path(os.path.realpath(path))  # as SQLite follows links
        try:
            if not _ours(path):
                raise StorageError(f"{path} is not irgym's cost cache and stays: {ELSEWHERE}")
            # The log goes first: a new file must never find it.
            for suffix in ("-wal", "-shm", ""):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(f"{path} cannot be removed ({error.strerror}): remove it by hand") from error

    def close(self) -> None:
        """Close the file. Closing twice does nothing."""
        self._database.close()

    @contextmanager
    def _transaction(self) -> Generator[None, None, None]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._database.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # the first error is the one to report
                self._database.execute("ROLLBACK")
            raise

    @contextmanager
    def _explained(self) -> Generator[None, None, None]:
        """Let one thread in at a time, and turn errors of SQLite and the system into one sentence."""
        try:
            with self._lock:
                yield
        except (sqlite3.ProgrammingError, sqlite3.InterfaceError):
            raise  # a bug of ours
        except sqlite3.OperationalError as error:
            raise StorageError(
                f"the cost cache {self.path} cannot be used ({error}): free space, or make it writable, or "
                "set IRGYM_CACHE_DIR to another folder"
            ) from error
        except sqlite3.DatabaseError as error:
            raise StorageError(
                f"the cost cache {self.path} is damaged ({error}): {_remedy(self.path)}"
            ) from error
        except OSError as error:
            raise StorageError(
                f"the cost cache {self.path} cannot be opened ({error.strerror}): set IRGYM_CACHE_DIR to "
                "another folder"
            ) from error


def _ours(path: Path) -> bool:
    """Say whether what is at a path is a cost cache, damaged or not, or nothing worth keeping.

    A cache is known by its mark at the file's beginning; or in its log, while nothing was moved from there.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        return True
    if not stat.S_ISREG(status.st_mode):
        return False
    with path.open("rb") as file:
        head = file.read(100)
    if not head.startswith(b"SQLite format 3\0"):
        return not head
    mark = int.from_bytes(head[68:72])
    if mark:
        return mark == APPLICATION
    try:
        with closing(sqlite3.connect(path, timeout=BUSY_S)) as database:
            [mark, tables] = database.execute(
                "SELECT (SELECT application_id FROM pragma_application_id),"
                " (SELECT count(*) FROM sqlite_master)"
            ).fetchone()
    except sqlite3.DatabaseError:
        return False
    return mark == APPLICATION or not tables


def _remedy(path: Path) -> str:
    """Return what to do about a file that cannot be used as a cost cache."""
    return "move it away, or run irgym cache clear" if _ours(path) else ELSEWHERE


def _write_ahead(database: sqlite3.Connection) -> None:
    """Switch to the write-ahead log; unlike other statements, this one does not wait for other processes."""
    deadline = time.monotonic() + BUSY_S
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _measurement(outcome: str, samples: str, compile_s: float, detail: str) -> Measurement | None:
    """Read a row; None where it is damaged."""
    try:
        known = Outcome(outcome)
        values = tuple(float(sample) for sample in parse_json(samples))
    except (ValueError, TypeError, OverflowError):
        return None
    if (known is Outcome.OK) != bool(values) or not all(map(math.isfinite, values)):
        return None
    return Measurement(known, values, compile_s, detail, cached=True)
