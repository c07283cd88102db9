"""Locks of cores: files that all irgym processes of a machine share, across users."""

import fcntl
import logging
import os
import stat
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil

from irgym.base.errors import StorageError

FOLDERS = ("/run/lock", "/tmp")
"""Folders for the locks; the first one that everybody may write to is used. `$TMPDIR` is not among them: it
differs between processes that must exclude each other."""

PATIENCE_S = 600.0
"""Longest wait for a lock, in seconds; after that it is an error."""

SAY_S = 2.0
"""Seconds of waiting before a warning is logged."""

STOPPED_S = 10.0
"""Seconds that the holder of a lock may be stopped before waiting for it is an error."""

_POLL_S = 0.02
_COMMAND = 80
_WORKER = "irgym.measure.isolation.worker"
_LOG = logging.getLogger(__name__)


def lock_file(core: int) -> Path:
    """Return the lock file of a core; it need not exist yet."""
    return _folder(FOLDERS) / f"irgym-core-{core}.lock"


@cache
def _folder(folders: tuple[str, ...]) -> Path:
    shared = (folder for folder in map(Path, folders) if folder.is_dir() and folder.stat().st_mode & 0o002)
    return next(shared, Path(folders[-1]))


def try_lock(path: Path) -> int | None:
    """Return a descriptor that holds the lock until it is closed or the process dies; None if it is taken.

    Raises:
        StorageError: The file cannot be opened, or is no regular file.
    """
    descriptor = _opened(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor if _current(descriptor, path) else None


def lock(path: Path) -> int:
    """Wait for a lock without logging, and return a descriptor that holds it; see `Queue`.

    Raises:
        StorageError: The file cannot be opened, or is not a regular file.
    """
    while True:
        descriptor = _opened(path)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if _current(descriptor, path):
            return descriptor


def lock_aloud(path: Path) -> int:
    """Wait for a lock, and log its holder.

    Raises:
        StorageError: As for `lock`, or the lock will not be released.
    """
    queue = Queue(path)
    while (descriptor := try_lock(path)) is None:
        queue.look()
        time.sleep(_POLL_S)
    return descriptor


def _current(descriptor: int, path: Path) -> bool:
    """Say whether an open file is still at its path; otherwise its lock is void, and it is closed."""
    with suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(descriptor), path.stat()):
            return True
    os.close(descriptor)
    return False


def _opened(path: Path) -> int:
    """Open a lock file that another user may own; in a sticky folder O_CREAT would fail on such a file."""
    # A FIFO that is opened without O_NONBLOCK blocks.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    while True:
        try:
            descriptor = os.open(path, flags)
        except FileNotFoundError:
            _create(path)
            continue
        except OSError as error:
            raise _unusable(path, error.strerror) from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise _unusable(path, "it is no regular file")
        return descriptor


def _create(path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    except FileExistsError:
        return  # another process was first
    except OSError as error:
        raise _unusable(path, error.strerror) from error
    try:
        os.fchmod(descriptor, 0o644)  # whatever the user's mask
    finally:
        os.close(descriptor)


def _unusable(path: Path, reason: str | None) -> StorageError:
    return StorageError(f"cannot open the lock file {path} ({reason}): make it readable or remove it")


@dataclass(frozen=True)
class Holder:
    """The process that holds a lock.

    Attributes:
        pid: Its number.
        text: Description of the process.
        stopped: Whether it is stopped, for example by SIGSTOP.
    """

    pid: int
    text: str
    stopped: bool


def holder_of(path: Path) -> Holder | None:
    """Return the holder of a file's lock; None if there is none, or the system does not say."""
    pid = _pid_of(path)
    if pid is None:
        return None
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            stopped = process.status() in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
            return Holder(pid, _text(process), stopped)
    except psutil.Error:
        return Holder(pid, f"process {pid}", False)


def _pid_of(path: Path) -> int | None:
    """Return the process that holds a file's lock, by Linux's list of locks; None if unknown."""
    try:
        inode = path.stat().st_ino
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return None
    for words in map(str.split, lines):
        # 3: FLOCK  ADVISORY  WRITE 6814 fe:00:2163061 0 EOF; a waiting process has an arrow as second word.
        if len(words) > 5 and words[1] == "FLOCK" and words[5].rpartition(":")[2] == str(inode):
            return int(words[4]) if int(words[4]) > 0 else None
    return None


def _text(process: psutil.Process) -> str:
    command = process.cmdline()
    parent = process.parent() if _WORKER in command else None
    if parent is None:
        return f"process {process.pid} ({_shortened(command)})"
    return f"process {process.pid}, of process {parent.pid} ({_shortened(parent.cmdline())})"


def _shortened(command: list[str]) -> str:
    text = " ".join(" ".join(command).split())
    return text if len(text) <= _COMMAND else f"{text[:_COMMAND]}..."


class Queue:
    """Watches a lock that a process waits for: logs its holder, and detects that it will not be released.

    Args:
        path: The lock file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._since = time.monotonic()
        self._stopped: tuple[int, float] | None = None
        self._said = False

    def look(self) -> None:
        """Check the lock; call this periodically.

        Raises:
            StorageError: Its holder is stopped, or the wait exceeds `PATIENCE_S`.
        """
        now = time.monotonic()
        if now - self._since < SAY_S:
            return
        holder = holder_of(self._path)
        who = holder.text if holder else "another process"
        if not self._said:
            self._said = True
            _LOG.warning("waiting for %s, which %s holds", self._path, who)
        if holder is None or not holder.stopped:
            self._stopped = None
        elif self._stopped is None or self._stopped[0] != holder.pid:
            self._stopped = holder.pid, now
        elif now - self._stopped[1] > STOPPED_S:
            raise StorageError(
                f"{self._path} is held by {who}, which is stopped: continue it by kill -CONT {holder.pid}, "
                "or end it"
            )
        if now - self._since > PATIENCE_S:
            raise StorageError(
                f"{self._path} could not be locked for {PATIENCE_S:g} s, {who} holds it: "
                "wait for it, or end it"
            )
