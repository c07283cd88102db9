"""Programs as files: each is lowered once, in a child process, and kept in the user's cache folder."""

import hashlib
import os
from functools import cache
from pathlib import Path

from irgym.core.cost import Call
from irgym.core.errors import BackendError, IrgymError, ProgramError
from irgym.core.files import make_folder
from irgym.core.uri import ProgramUri
from irgym.envs.hlo.pool import failed_check
from irgym.envs.hlo.toolchain import INSTALL, installed
from irgym.measure.evaluators import error_of
from irgym.measure.isolation.child import Child
from irgym.measure.isolation.protocol import GIB, Crashed, Limits, Raised, Returned
from irgym.measure.machine import cache_dir
from irgym.measure.variables import keyed

LIMITS = Limits(timeout_s=600.0, memory_bytes=8 * GIB)
"""What lowering a model may take."""

KEPT = 16
"""Hexadecimal digits of the hash that names a file."""


class Sources:
    """Turns programs into files of HloModuleProtos. Close it, or let it go with the process."""

    def __init__(self) -> None:
        self._child = Child(LIMITS)

    def file(self, program: ProgramUri) -> Path:
        """Return the file of a program, lowering or converting it where that was not done before.

        Raises:
            BackendError: jax is not installed.
            ProgramError: The file is malformed, or the model cannot be built.
            StorageError: The cache folder cannot be written.
        """
        target = program_folder() / f"{_name(program)}.pb"
        if target.exists():
            return target
        if not installed("jax"):
            raise BackendError(f"hlo reads programs with jax, which is not installed: run {INSTALL}")
        make_folder(program_folder())
        call = Call("irgym.envs.hlo.lowering:lower", (program.uri, str(target)))
        reply = self._child.call(call)
        if isinstance(reply, Raised):
            raise error_of(call, reply)
        if isinstance(reply, Crashed) and program.path is not None:
            raise ProgramError(f"{program.path}: XLA aborted while reading it: {failed_check(reply.detail)}")
        if not isinstance(reply, Returned):
            raise IrgymError(f"{program.uri} cannot be lowered here ({reply}): choose a smaller program")
        return target

    def close(self) -> None:
        """End the child process."""
        self._child.close()


def program_folder() -> Path:
    """Return the folder that programs are kept in."""
    return cache_dir() / "hlo" / "programs"


def content_of(file: Path) -> str:
    """Return what stands for the content of a program's file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()[:KEPT]


def _name(program: ProgramUri) -> str:
    """Return a name that changes with everything that the file depends on."""
    digest = hashlib.sha256()
    if program.path is not None:
        try:
            digest.update(program.path.suffix.encode() + program.path.read_bytes())
        except OSError as error:
            raise ProgramError(f"cannot read {program.path}: {error.strerror}") from error
    else:
        digest.update(program.uri.encode())
    versions = f"jax {installed('jax')} {installed('jaxlib')}"
    digest.update(f"{_models()} {versions} {keyed(os.environ)}".encode())
    return digest.hexdigest()[:KEPT]


@cache
def _models() -> str:
    """Return what stands for the source of all models."""
    folder = Path(__file__).parent
    files = [folder / "families.py", folder / "lowering.py", *sorted((folder / "models").glob("*.py"))]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()
