"""Shared libraries of object files, by the linker that is installed."""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from irgym.base.errors import BackendError

LINKERS = ("cc", "gcc", "clang", "ld")
"""Programs that can make a shared library, the preferred first."""


def shared_library(
    content: bytes, libraries: Sequence[str | Path] = (), instead: str = "export a .o file"
) -> bytes:
    """Return the shared library that a linker makes of an object file.

    Args:
        content: The object file.
        libraries: What it needs: names of libraries, such as `m`, and paths of such that stay where they are.
        instead: What to do where there is no linker, in words.

    Raises:
        BackendError: There is no linker, or it fails.
        OSError: There is no room for temporary files.
    """
    linker = next(filter(None, map(shutil.which, LINKERS)), None)
    if linker is None:
        raise BackendError(
            f"a shared library needs a linker ({', '.join(LINKERS)}), and none is installed: {instead}"
        )
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "kernel.o"), Path(folder, "kernel.so")
        source.write_bytes(content)
        needed = [word for library in libraries for word in _needed(library, linker)]
        command = [linker, "-shared", "-o", str(library), str(source), *needed]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            reason = " ".join(done.stderr.split()) or f"exit status {done.returncode}"
            raise BackendError(f"{linker} cannot link a shared library ({reason}): {instead}")
        return library.read_bytes()


def _needed(library: str | Path, linker: str) -> list[str]:
    """Return what tells a linker of a library."""
    if isinstance(library, str):
        return [f"-l{library}"]
    place = str(library.parent)
    return [str(library), *(["-rpath", place] if Path(linker).name == "ld" else [f"-Wl,-rpath,{place}"])]
