"""What a collection has: which of its methods have candidates, and what scores of it depend on."""

import json
import subprocess
from functools import cache

from irgym.base.errors import BackendError, explained
from irgym.envs.cse.superpmi.answers import AnswerError, read
from irgym.envs.cse.superpmi.session import METRICS, REMEDY, Collection
from irgym.measure.store import Store, content_digest, digest

STORE = Store("cse/collections", ".json")
"""Numbers of methods."""

LEAST, MOST = 3, 64
"""Methods with fewer or more candidates are left out: as in the JIT CSE gymnasium; the JIT keeps 64."""

TIMEOUT_S = 3 * 3600.0
"""Seconds that compiling all methods of a collection may take."""


@cache
def stands_for(collection: Collection) -> str:
    """Return what stands for a collection: what the JIT is, and which file its methods are.

    A collection may have gigabytes: its size and its time stand for its content.

    Raises:
        StorageError: A file cannot be read.
    """
    jit, mch = collection.jit, collection.mch
    with explained(f"cannot read {jit} or {mch}", "check the paths and their permissions"):
        status = mch.stat()
        return f"jit {content_digest(jit.read_bytes())}; {mch.name} {status.st_size} {status.st_mtime_ns}"


def methods_of(collection: Collection) -> list[int]:
    """Return the numbers of the methods that have candidates; all methods are compiled once for that.

    Raises:
        ProgramError: The collection is not there.
        BackendError: SuperPMI does not work.
        StorageError: The cache folder cannot be written.
    """
    command = collection.command(streaming=False)
    found = STORE.get(digest(stands_for(collection)), lambda: json.dumps(_methods(command)).encode())
    return json.loads(found.read_bytes())


def _methods(command: list[str]) -> list[int]:
    option, _, value = METRICS.partition("=")
    try:
        done = subprocess.run(
            [*command, "-jitoption", f"{option}={value}"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BackendError(f"superpmi does not list the methods ({error}): {REMEDY}") from error
    found: list[int] = []
    for line in done.stdout.splitlines():
        if line.startswith("; Total bytes of code "):
            try:
                method = read(line)
            except AnswerError:
                continue  # a method that cannot be read is one that cannot be used
            if LEAST <= method.count <= MOST:
                found.append(method.index)
    if not found:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise BackendError(
            f"superpmi lists no method with candidates ({said[0] if said else 'no word'}): {REMEDY}"
        )
    return sorted(found)
