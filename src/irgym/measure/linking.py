"""Shared libraries made of object files, by an installed linker."""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from irgym.base.errors import BackendError

LINKERS = ("cc", "gcc", "clang", "ld")
"""Programs that can link a shared library, in order of preference."""


def shared_library(
    content: bytes, libraries: Sequence[str | Path] = (), instead: str = "export a .o file"
) -> bytes:
    """Return the shared library that a linker makes of an object file.

    Args:
        content: The object file.
        libraries: Libraries that it needs: names, such as `m`, or paths.
        instead: Advice where there is no linker.

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
    """Return the linker's options for a library."""
    if isinstance(library, str):
        return [f"-l{library}"]
    place = str(library.parent)
    return [str(library), *(["-rpath", place] if Path(linker).name == "ld" else [f"-Wl,-rpath,{place}"])]
