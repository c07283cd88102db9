"""The methods of a collection that have candidates, and the identity of a collection."""

import json
import subprocess
from functools import cache

from irgym.base.errors import BackendError, explained
from irgym.envs.cse.superpmi.answers import AnswerError, read
from irgym.envs.cse.superpmi.session import METRICS, REMEDY, Collection
from irgym.measure.store import Store, content_digest, digest

STORE = Store("cse/collections", ".json")
"""Numbers of methods with candidates."""

LEAST, MOST = 3, 64
"""Least and greatest number of candidates: 3 as in the JIT CSE gymnasium, 64 as in the JIT."""

TIMEOUT_S = 3 * 3600.0
"""Time limit for compiling all methods of a collection, in seconds."""


@cache
def toolchain(collection: Collection) -> str:
    """Return a text that identifies the JIT and the recorded methods.

    Collections may have gigabytes, so size and modification time stand for the content.

    Raises:
        StorageError: A file cannot be read.
    """
    jit, mch = collection.jit, collection.mch
    with explained(f"cannot read {jit} or {mch}", "check the paths and their permissions"):
        status = mch.stat()
        return f"jit {content_digest(jit.read_bytes())}; {mch.name} {status.st_size} {status.st_mtime_ns}"


def methods_of(collection: Collection) -> list[int]:
    """Return the numbers of the methods with candidates; the first call compiles all methods.

    Raises:
        ProgramError: The collection does not exist.
        BackendError: SuperPMI does not work.
        StorageError: The cache folder cannot be written.
    """
    command = collection.command(streaming=False)
    found = STORE.get(digest(toolchain(collection)), lambda: json.dumps(_methods(command)).encode())
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
                continue  # a method that cannot be parsed cannot be used
            if LEAST <= method.count <= MOST:
                found.append(method.index)
    if not found:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise BackendError(
            f"superpmi lists no method with candidates ({said[0] if said else 'no word'}): {REMEDY}"
        )
    return sorted(found)
