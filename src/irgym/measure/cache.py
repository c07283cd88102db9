"""The cost cache: all measurements, failures included, in an SQLite file.

The key of a row is everything that its result may depend on: program, schedule, objective, toolchain (which
includes the timing protocol), target and machine. Write-ahead logging lets many processes read and write at
the same time and survives `kill -9`. It does not work on network file systems, where one process must do all
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
"""Version of the tables; files of other versions are refused."""

APPLICATION = 0x6972676D
"""SQLite application id of irgym's files."""

ELSEWHERE = "move it away, or set IRGYM_CACHE_DIR to another folder"
"""Remedy where a foreign file is in the place of the cache."""

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
    """Statistics of a cache.

    Attributes:
        path: The file.
        size_bytes: Size of the file, including the write-ahead log.
        rows: Number of measurements.
        programs: Number of distinct programs.
        families: Number of measurements by the part of the URI before the sizes.
        outcomes: Number of measurements by outcome.
        machines: Number of distinct machines.
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
        path: The file; it is created if missing, with its folder.
        machine: Key of the machine and other conditions whose rows are read and written; by default this
            machine's.

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
        known = self._recognised()  # before writing: it may be another program's file
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
        """Say whether the file is a cost cache of this version; otherwise it must be empty."""
        # One statement, so that the values are consistent while another process creates the tables.
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
        """Return the recorded measurement of each job; None where there is none, or an unreadable one.

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
        """Record measurements, all or none of them; existing ones are replaced.

        Raises:
            StorageError: The file cannot be written. Earlier records stay.
            ValueError: A measurement is a prediction.
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
            scheme: Scheme of the programs' URIs.
            objective: Objective of the measurements.
            target: Target of the code; empty where costs do not depend on it.
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
        """Return the id of a job's objective, toolchain, target and machine; None if it has none yet."""
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
        """Return the id of a job's context, inserted if missing, within a transaction."""
        number = self._context(job)
        if number is not None:
            return number
        [number] = self._database.execute(
            "INSERT INTO contexts (objective, toolchain, target, machine) VALUES (?, ?, ?, ?) RETURNING id",
            (job.objective, job.toolchain, job.target, self._machine),
        ).fetchone()
        return number

    def stats(self) -> CacheStats:
        """Return the statistics of the cache.

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
        """Remove a cache, damaged or not; do nothing if there is none.

        Raises:
            StorageError: The file is not irgym's, or cannot be removed.
        """
        path = Path(os.path.realpath(path))  # as SQLite follows links
        try:
            if not _ours(path):
                raise StorageError(f"{path} is not irgym's cost cache and stays: {ELSEWHERE}")
            # The log goes first: a new file must never find an old log.
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
        """Admit one thread at a time, and turn errors of SQLite and the system into one sentence."""
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
    """Say whether a path holds a cost cache, damaged or not, or nothing worth keeping.

    A cache is recognised by the application id in the file's header, or in the log before its first
    checkpoint.
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
    """Return the remedy for a file that cannot be used as a cost cache."""
    return "move it away, or run irgym cache clear" if _ours(path) else ELSEWHERE


def _write_ahead(database: sqlite3.Connection) -> None:
    """Switch to write-ahead logging; SQLite does not wait for other processes here, so this loop does."""
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
    """Return the measurement of a row; None if it is damaged."""
    try:
        known = Outcome(outcome)
        values = tuple(float(sample) for sample in parse_json(samples))
    except (ValueError, TypeError, OverflowError):
        return None
    if (known is Outcome.OK) != bool(values) or not all(map(math.isfinite, values)):
        return None
    return Measurement(known, values, compile_s, detail, cached=True)
