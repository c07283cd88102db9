"""Files that appear whole or not at all, whatever happens while they are written; and locks on them."""

import errno
import fcntl
import os
import secrets
import socket
import stat
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from irgym.base.errors import StorageError, explained

Content = bytes | memoryview | Sequence[bytes | memoryview]
"""Content of a file, or its parts in order, so that large ones need not be joined."""

PART = ".irgym-"
"""How the names of incomplete files begin; the number of the process that writes follows."""


def write_file(path: Path, content: Content, previous: Path | None = None) -> None:
    """Write a file, or replace one and keep that as `previous`; see `write_files`, for errors too."""
    write_files({path: content}, {} if previous is None else {path: previous})


def write_files(files: Mapping[Path, Content], previous: Mapping[Path, Path] | None = None) -> None:
    """Write files beside their destinations, and move them there once all are complete and on the disk.

    Links are followed, and stay. A file that is replaced hands on its permissions, and its owner where the
    system allows that. What is no regular file, such as a FIFO or a device, is written to as it is, and so
    are the files that `/dev/stdout` and its like stand for.

    Args:
        files: Contents by file.
        previous: Where files that are replaced are kept, by the file.

    Raises:
        StorageError: One cannot be written.
        BrokenPipeError: Whoever reads from a pipe has gone.
    """
    complete: dict[Path, Path] = {}
    path = next(iter(files))
    try:
        with ExitStack() as cleanup:
            places = {path: _place(path) for path in files}
            for path, place in places.items():
                if place.replaced:
                    complete[path] = part = _part(place.path)
                    cleanup.callback(part.unlink, missing_ok=True)
                    _fill(part, files[path], place)
            for path, place in places.items():
                if not place.replaced:
                    _write_straight(place, files[path])
            for path, part in complete.items():
                place = places[path]
                if previous and path in previous and place.status is not None:
                    _keep(place.path, previous[path])
                part.replace(place.path)
            for folder in {places[path].path.parent for path in complete}:
                _sync(folder)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StorageError(
            f"cannot write {path} ({error.strerror}): free some space, or choose an existing folder that is "
            "writable"
        ) from error


SMALL = 1 << 16
"""Bytes of room that any result needs at least."""


def check_writable(path: Path, room: int = SMALL) -> None:
    """Make sure that `write_file` could write a file, before the work is done whose result it is to hold.

    Args:
        path: The file.
        room: Bytes that the file will hold, as far as known.

    Raises:
        StorageError: Its folder does not exist, is not writable or has too little room, or the path is a
            folder.
    """
    with explained(f"{path} cannot be written", "free some space or choose another place"):
        place = _place(path)
        if place.status is not None and stat.S_ISDIR(place.status.st_mode):
            raise StorageError(f"{path} cannot be written (it is a folder): name a file")
        if place.status is not None and stat.S_ISSOCK(place.status.st_mode):
            raise StorageError(f"{path} cannot be written (it is a socket): name a file")
        if not place.replaced:
            return
        if not place.path.parent.is_dir():
            raise StorageError(
                f"{path} cannot be written ({place.path.parent} is no folder): choose another place"
            )
        # Only an attempt tells: root may write where permissions forbid it, but not where nobody can.
        part = _part(place.path)
        try:
            _fill(part, b"", place)
            _reserve(part, room)
        finally:
            part.unlink(missing_ok=True)


def check_distinct(files: Mapping[str, Path]) -> None:
    """Make sure that no two results go to one file.

    Args:
        files: Files by the option that names them; devices and pipes may repeat.

    Raises:
        StorageError: Two options name one file.
    """
    options: dict[Path, str] = {}
    for option, path in files.items():
        with explained(f"{path} cannot be written", "choose another place"):
            place = _place(path)
        first = options.setdefault(place.path, option)
        if place.replaced and first != option:
            raise StorageError(f"{first} and {option} both name {path}: give each another file")


@contextmanager
def lock_for(path: Path) -> Generator[None]:
    """Be the only process that writes a file, or the files of a folder; released when the process dies.

    The lock is a hidden file with the number of the process in it, in the folder or beside the file. What is
    neither a folder nor a regular file needs none.

    Raises:
        StorageError: Another process has the lock, or it cannot be taken.
    """
    lock = _lock_file(path)
    if lock is None:
        yield
        return
    with explained(f"cannot lock {path}", "choose another place"):
        descriptor = _locked(lock)
        if descriptor is not None and path.is_dir():
            sweep(path)
    if descriptor is None:
        raise StorageError(
            f"{_owner(lock)} is writing to {path}: wait until it has ended, end it, or choose another place"
        )
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(descriptor)


def make_folder(folder: Path, remedy: str = "free some space or set IRGYM_CACHE_DIR") -> None:
    """Make a folder for what irgym keeps, and those above it, where they are missing.

    Args:
        folder: The folder.
        remedy: What to do if it cannot be made.

    Raises:
        StorageError: It cannot be made.
    """
    with explained(f"cannot make {folder}", remedy):
        folder.mkdir(parents=True, exist_ok=True)


@dataclass(frozen=True)
class _Place:
    """Where a file is written.

    Attributes:
        path: The file, links followed.
        status: What is there; None where nothing is.
        descriptor: The open file of this process that it stands for, as `/dev/stdout` does.
    """

    path: Path
    status: os.stat_result | None
    descriptor: int | None

    @property
    def replaced(self) -> bool:
        """Whether the file is replaced by a new one, rather than written to as it is."""
        return self.descriptor is None and (self.status is None or stat.S_ISREG(self.status.st_mode))


def _place(path: Path) -> _Place:
    """Return where a file is written.

    Raises:
        OSError: The path cannot be followed, such as one of too long a name, or of links in a circle.
    """
    descriptor = _descriptor(path)
    if descriptor is not None:
        return _Place(path, os.fstat(descriptor), descriptor)
    try:
        status = path.stat()
    except FileNotFoundError:
        status = None
    return _Place(Path(os.path.realpath(path)), status, None)


def _descriptor(path: Path) -> int | None:
    """Return the open file of this process that a path stands for, if it does so.

    Opening such a path again would overwrite the file from its beginning.
    """
    own = {os.path.realpath(folder) for folder in ("/dev/fd", "/proc/self/fd")}
    for _ in range(40):  # as many links as Linux follows
        if path.name.isdecimal() and os.path.realpath(path.parent) in own:
            return int(path.name)
        if not path.is_symlink():
            return None
        path = path.parent / path.readlink()
    return None


def _part(path: Path) -> Path:
    """Return the name of a file to be completed beside another; no longer than any name may be."""
    return path.with_name(f"{PART}{os.getpid()}-{secrets.token_hex(8)}")


def sweep(folder: Path) -> None:
    """Remove the incomplete files of processes that were killed.

    Raises:
        OSError: One cannot be removed.
    """
    for part in folder.glob(f"{PART}*"):
        number = part.name.removeprefix(PART).partition("-")[0]
        try:
            os.kill(int(number), 0)
        except ProcessLookupError:
            part.unlink(missing_ok=True)
        except (ValueError, OverflowError, PermissionError):
            continue  # not ours


def _fill(part: Path, content: Content, place: _Place) -> None:
    """Write a new file through to the disk, with owner and permissions of the one that it is to replace.

    Raises:
        PermissionError: That one must not be written.
    """
    mode = 0o666 if place.status is None else 0o600  # from the former the system takes what the umask says
    if place.status is not None and not (place.status.st_mode & 0o222 and os.access(place.path, os.W_OK)):
        raise PermissionError(errno.EACCES, "it is write-protected")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as file:
        try:
            if place.status is not None:
                _hand_on(place.status, descriptor)
            _write(file, content)
            file.flush()
            os.fsync(descriptor)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


def _reserve(part: Path, room: int) -> None:
    """Have the system set aside space for a file.

    Raises:
        OSError: There is too little.
    """
    descriptor = os.open(part, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.posix_fallocate(descriptor, 0, room)
    except OSError as error:
        # Some file systems cannot set space aside; there only writing the result tells.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS):
            raise
    finally:
        os.close(descriptor)


def _write(file: BinaryIO, content: Content) -> None:
    """Write to an open file."""
    for part in (content,) if isinstance(content, bytes | memoryview) else content:
        file.write(part)


def _hand_on(status: os.stat_result, descriptor: int) -> None:
    """Give an open file the owner and the permissions of another."""
    permissions = stat.S_IMODE(status.st_mode)
    if (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
        try:
            os.fchown(descriptor, status.st_uid, status.st_gid)
        except PermissionError:
            # Only root may give files away. Whoever may write in the folder may replace what is in it.
            permissions &= 0o777
    os.fchmod(descriptor, permissions)


def _write_straight(place: _Place, content: Content) -> None:
    """Write to what is no regular file, after what this process has printed so far."""
    if place.descriptor is None:
        descriptor = os.open(place.path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOCTTY)
    else:
        sys.stdout.flush()
        sys.stderr.flush()
        descriptor = os.dup(place.descriptor)
    with os.fdopen(descriptor, "wb") as file:
        _write(file, content)


def _keep(path: Path, previous: Path) -> None:
    """Make `previous` a second name of the file at `path`, which stays in place meanwhile."""
    link = _part(previous)
    try:
        os.link(path, link)
    except OSError as error:
        # Some file systems have no hard links, and none has them to another.
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EXDEV):
            raise
        _fill(link, path.read_bytes(), _Place(path, path.stat(), None))
    link.replace(previous)
    # Renaming does nothing if both already are the same file, as after a kill between the last two renames.
    link.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    """Bring the names in a folder to the disk."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:
        return  # one may be allowed to write a folder, and not to read it
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some file systems do so by themselves, and refuse to be asked.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def _lock_file(path: Path) -> Path | None:
    """Return the lock of a folder or of a file; None for what is neither.

    Raises:
        StorageError: The path cannot be followed.
    """
    with explained(f"cannot lock {path}", "choose another place"):
        place = _place(path)
    if place.status is not None and stat.S_ISDIR(place.status.st_mode):
        return place.path / ".lock"
    return place.path.with_name(f".{place.path.name}.lock") if place.replaced else None


def _locked(lock: Path) -> int | None:
    """Return the open lock file, with this process named in it; None where another process has it."""
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is(descriptor, lock):
                os.ftruncate(descriptor, 0)
                os.write(descriptor, f"{os.getpid()} {socket.gethostname()}\n".encode())
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # whoever had it removed it meanwhile


def _is(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _owner(lock: Path) -> str:
    """Return who holds a lock, in words."""
    try:
        number, host = lock.read_text().split()
    except (OSError, ValueError):
        return "another process"
    return f"process {number}" if host == socket.gethostname() else f"process {number} on {host}"
