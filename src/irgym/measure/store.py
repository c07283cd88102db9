"""Artefacts that are made once and kept in the user's cache folder: programs, libraries, whatever takes time.

An artefact's name is made of everything that it depends on, and ends in a hash of its content. So it is made
anew where anything changes, and a damaged file is told from a whole one.
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
"""Characters of a given name that the name of a file keeps."""

_LOCK = ".lock"


def digest(*parts: str | bytes) -> str:
    """Return what stands for texts or contents in a name."""
    whole = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        whole.update(f"{len(content)}\n".encode())
        whole.update(content)
    return whole.hexdigest()[:DIGITS]


def content_digest(content: bytes) -> str:
    """Return what stands for a file's content: the first digits of its SHA-256."""
    return hashlib.sha256(content).hexdigest()[:DIGITS]


@dataclass(frozen=True)
class Store:
    """Artefacts of one kind, in a folder of their own; any number of processes may use it at once.

    Attributes:
        place: The folder, below the cache folder: `hlo/programs`.
        suffix: What the names of its files end in.
    """

    place: str
    suffix: str

    @property
    def folder(self) -> Path:
        """The folder; it may not exist yet."""
        return cache_dir() / self.place

    def find(self, name: str) -> Path | None:
        """Return the artefact of a name, None where there is none; damaged ones are removed.

        Raises:
            StorageError: It cannot be read.
        """
        wanted = re.compile(rf"{re.escape(name)}-([0-9a-f]{{{DIGITS}}}){re.escape(self.suffix)}")
        with self._explained("read"):
            for own in self._names(name):
                match = wanted.fullmatch(own)
                file = self.folder / own
                if match and _whole(file, match[1]):
                    return file
        return None

    def get(self, name: str, make: Callable[[], bytes]) -> Path:
        """Return the artefact of a name, which is made first where there is none.

        Of several processes that want it, one makes it, and the others wait.

        Args:
            name: Made of everything that the artefact depends on; see `digest`.
            make: Returns its content; what it raises is let through, and nothing is kept.

        Raises:
            StorageError: The folder cannot be read or written.
        """
        found = self.find(name)
        if found is not None:
            return found
        make_folder(self.folder)
        with self._lock(name):
            found = self.find(name)  # maybe another process has made it meanwhile
            if found is None:
                with self._explained("read"):
                    sweep(self.folder)
                found = self.put(name, make())
        return found

    def put(self, name: str, content: bytes, beside: Mapping[str, Content] | None = None) -> Path:
        """Keep an artefact that is made already, and return its file.

        Args:
            name: What its name begins with.
            content: Its content.
            beside: Contents of more files of that name, by suffix.

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
        """Return the names of files that begin so, sorted: a training looks for thousands, among as many.

        Raises:
            OSError: The folder cannot be read.
        """
        if not self.folder.is_dir():
            return []
        with os.scandir(self.folder) as entries:
            return sorted(entry.name for entry in entries if entry.name.startswith(beginning))

    @contextmanager
    def _lock(self, name: str) -> Generator[None]:
        """Be the only process that makes an artefact; released when the process dies.

        One byte of one file stands for each name, so that no locks are left behind.
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
    """Return what the name of a file keeps of any text, such as a user's file name."""
    return re.sub(r"\W+", "", text)[:STEM] or "program"


def _whole(file: Path, identity: str) -> bool:
    """Say whether a file has its content; one that is there with another is removed.

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
