"""Archives of source distributions: fetched once, verified by hash, unpacked in the cache folder."""

import hashlib
import tarfile
import urllib.request
from functools import partial
from http.client import HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory

from irgym.base.errors import StorageError, explained
from irgym.llvmir.programs.packages.pinned import Package
from irgym.measure.store import Store

TIMEOUT_S = 60.0
"""Time limit for the server's next bytes, in seconds."""

LARGEST = 1 << 28
"""Greatest number of bytes read of an archive; a longer one fails the hash check."""

STORE = Store("cse/packages", ".tar.gz")
"""Archives."""


def unpacked(package: Package) -> Path:
    """Return the folder of a source distribution, fetching it if needed.

    Raises:
        StorageError: It cannot be fetched or written, or its hash is not the pinned one.
    """
    name = f"{package.name}-{package.version}-{package.sha256[:16]}"
    folder = STORE.folder / name
    if not folder.is_dir():
        _unpack(STORE.get(name, partial(_fetched, package)), folder)
    return folder


def _fetched(package: Package) -> bytes:
    try:
        with urllib.request.urlopen(package.url, timeout=TIMEOUT_S) as reply:
            content: bytes = reply.read(LARGEST)
    except (OSError, HTTPException) as error:
        raise StorageError(f"cannot fetch {package.url} ({error}): connect to the network") from error
    found = hashlib.sha256(content).hexdigest()
    if found != package.sha256:
        raise StorageError(
            f"{package.url} has SHA-256 {found}, not the pinned {package.sha256}: "
            "the file was changed on the server or on the way"
        )
    return content


def _unpack(archive: Path, folder: Path) -> None:
    """Unpack an archive; if several processes do so at once, the first one's folder stays."""
    with (
        explained(f"cannot unpack {archive}", "check the permissions of its folder, or free some space"),
        TemporaryDirectory(dir=archive.parent, prefix=".") as temporary,
    ):
        try:
            with tarfile.open(archive) as opened:
                opened.extractall(temporary, filter="data")
        except tarfile.TarError as error:
            raise StorageError(
                f"{archive} is damaged, or would write outside its folder ({error}): remove it"
            ) from error
        [top] = Path(temporary).iterdir()
        try:
            top.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
