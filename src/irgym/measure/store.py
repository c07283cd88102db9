"""Artefacts that are made once and kept in the user's cache folder, such as programs and libraries.

An artefact's name includes everything that it depends on, and ends in a hash of its content. It is made again
when anything changes, and a damaged file is recognised.
"""

import fcntl
import hashlib
import os
import re
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from irgym.base.errors import explained
from irgym.base.files import Content, make_folder, sweep, write_files
from irgym.measure.machine import cache_dir

DIGITS = 16
"""Hexadecimal digits of a hash in a name."""

STEM = 40
"""Greatest number of characters of a user's name in the name of a file."""

_LOCK = ".lock"


def digest(*parts: str | bytes) -> str:
    """Return a hash of texts or contents, for a name."""
    whole = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        whole.update(f"{len(content)}\n".encode())
        whole.update(content)
    return whole.hexdigest()[:DIGITS]


def content_digest(content: bytes) -> str:
    """Return a hash of a file's content: the first digits of its SHA-256."""
    return hashlib.sha256(content).hexdigest()[:DIGITS]


@dataclass(frozen=True)
class Store:
    """Artefacts of one kind, in one folder; any number of processes may use it concurrently.

    Attributes:
        place: Folder within the cache folder: `hlo/programs`.
        suffix: Suffix of its files.
    """

    place: str
    suffix: str

    @property
    def folder(self) -> Path:
        """The folder; it may not exist yet."""
        return cache_dir() / self.place

    def find(self, name: str) -> Path | None:
        """Return the artefact of a name; None if there is none. Damaged files are removed.

        Raises:
            StorageError: It cannot be read.
        """
        wanted = re.compile(rf"{re.escape(name)}-([0-9a-f]{{{DIGITS}}}){re.escape(self.suffix)}")
        with self._explained("read"):
            for found in self._names(name):
                match = wanted.fullmatch(found)
                file = self.folder / found
                if match and _whole(file, match[1]):
                    return file
        return None

    def get(self, name: str, make: Callable[[], bytes]) -> Path:
        """Return the artefact of a name, which is made on first use.

        If several processes want it, one makes it, and the others wait.

        Args:
            name: Name that includes everything that the artefact depends on; see `digest`.
            make: Returns its content; if it raises an exception, nothing is kept.

        Raises:
            StorageError: The folder cannot be read or written.
        """
        found = self.find(name)
        if found is not None:
            return found
        make_folder(self.folder)
        with self._lock(name):
            found = self.find(name)  # another process may have made it in the meantime
            if found is None:
                with self._explained("read"):
                    sweep(self.folder)
                found = self.put(name, make())
        return found

    def put(self, name: str, content: bytes, beside: Mapping[str, Content] | None = None) -> Path:
        """Store an artefact and return its file.

        Args:
            name: Beginning of its name.
            content: Its content.
            beside: Contents of further files of that name, by suffix.

        Raises:
            StorageError: It cannot be written.
        """
        identity = content_digest(content)
        file = self.folder / f"{name}-{identity}{self.suffix}"
        more = {file.with_suffix(suffix): other for suffix, other in (beside or {}).items()}
        make_folder(self.folder)
        with self._explained("read"):
            found = not more and _whole(file, identity)
        if not found:
            write_files({**more, file: content})
        return file

    def _names(self, beginning: str) -> list[str]:
        """Return the sorted names of files that begin so, quickly: a training calls this thousands of times.

        Raises:
            OSError: The folder cannot be read.
        """
        if not self.folder.is_dir():
            return []
        with os.scandir(self.folder) as entries:
            return sorted(entry.name for entry in entries if entry.name.startswith(beginning))

    @contextmanager
    def _lock(self, name: str) -> Generator[None]:
        """Hold the lock for making an artefact; it is released when the process dies.

        Each name locks one byte of a single file, so that no lock files are left behind.
        """
        place = int(content_digest(name.encode())[:15], 16)
        with ExitStack() as opened:
            with self._explained("lock"):
                file = opened.enter_context((self.folder / _LOCK).open("wb"))
                fcntl.lockf(file, fcntl.LOCK_EX, 1, place, os.SEEK_SET)
            yield

    def _explained(self, what: str) -> AbstractContextManager[None]:
        remedy = "check its permissions, free some space, or set IRGYM_CACHE_DIR"
        return explained(f"cannot {what} {self.folder}", remedy)


def stem_of(text: str) -> str:
    """Return a part of any text, such as a user's file name, that can be part of a file name."""
    return re.sub(r"\W+", "", text)[:STEM] or "program"


def _whole(file: Path, identity: str) -> bool:
    """Say whether a file has the content of a hash; a file with other content is removed.

    Raises:
        OSError: It cannot be read or removed.
    """
    try:
        if content_digest(file.read_bytes()) == identity:
            return True
    except FileNotFoundError:
        return False
    file.unlink(missing_ok=True)
    return False
