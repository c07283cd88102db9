"""Programs as files: each is lowered once, in a child process, and stored in the user's cache folder."""

import hashlib
import os
from functools import cache
from pathlib import Path

from irgym.base.errors import BackendError
from irgym.base.reading import check_size, content_of_program
from irgym.core.cost import Call
from irgym.core.uri import ProgramUri
from irgym.envs.hlo.compiling.toolchain import INSTALL, installed
from irgym.measure.isolation.child import Child
from irgym.measure.isolation.protocol import GIB, Limits
from irgym.measure.opening import Opener
from irgym.measure.replies import answered
from irgym.measure.store import Store, content_digest, digest, stem_of
from irgym.measure.variables import keyed

LIMITS = Limits(timeout_s=600.0, memory_bytes=8 * GIB)
"""Limits of lowering a model of a family."""

LARGEST = 1 << 30
"""Greatest size of a file in bytes."""

STORE = Store("hlo/programs", ".pb")
"""Stored HloModuleProtos."""


class Sources:
    """Turns programs into files of HloModuleProtos. Close it, or let it go with the process."""

    def __init__(self) -> None:
        self._child = Child(LIMITS)
        self._opener = Opener("XLA")

    def file(self, program: ProgramUri) -> Path:
        """Return the file of a program, lowering or converting it if it is not stored yet.

        Raises:
            BackendError: jax is not installed.
            ProgramError: The file is malformed, or the model cannot be built.
            StorageError: The cache folder cannot be written.
        """
        return STORE.get(_name(program), lambda: self._lowered(program))

    def _lowered(self, program: ProgramUri) -> bytes:
        if not installed("jax"):
            raise BackendError(f"hlo reads programs with jax, which is not installed: run {INSTALL}")
        call = Call("irgym.envs.hlo.programs.lowering:lower", (program.uri,))
        if program.path is not None:
            return self._opener.call(call, program.uri, check_size(program.path))
        return answered(self._child, call, program.uri, "XLA")

    def close(self) -> None:
        """End the child processes."""
        self._child.close()
        self._opener.close()


def content_of(file: Path) -> str:
    """Return the digest of the content of a program's file."""
    return content_digest(file.read_bytes())


def _name(program: ProgramUri) -> str:
    """Return a name that changes with everything on which the file depends."""
    versions = f"jax {installed('jax')} {installed('jaxlib')}"
    reader = (_models(), versions, keyed(os.environ))
    if program.path is None:
        return f"{program.family}-{digest(program.uri, *reader)}"
    content = content_of_program(program.path, LARGEST)
    return f"{stem_of(program.path.stem)}-{digest(program.path.suffix, content, *reader)}"


@cache
def _models() -> str:
    """Return a digest of the sources of all models."""
    folder = Path(__file__).parent
    tables = [folder / f"{name}.py" for name in ("families", "numeric_families", "lowering")]
    files = [*tables, *sorted((folder / "models").rglob("*.py"))]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()
