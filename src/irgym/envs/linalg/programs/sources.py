"""Programs as files of MLIR: written or imported once, and kept in the user's cache folder."""

import os
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from irgym.base.errors import BackendError, ProgramError
from irgym.base.reading import content_of_program
from irgym.core.baseline import INSTALL_TORCH
from irgym.core.cost import Call
from irgym.envs.linalg.compiling.toolchain import compiler_version
from irgym.envs.linalg.programs.operators import Operator
from irgym.envs.linalg.programs.uris import SUFFIX, File, Network, Source
from irgym.measure.code_digest import ROOT, files_of, hash_of
from irgym.measure.isolation.child import Child
from irgym.measure.isolation.protocol import GIB, Limits
from irgym.measure.opening import Opener
from irgym.measure.replies import answered
from irgym.measure.store import Store, digest, stem_of
from irgym.measure.variables import keyed

answer = partial(answered, by="the compiler", remedy="write it in another way")
"""Return the result of a call in a child process; see `answered`."""

LIMITS = Limits(timeout_s=600.0, memory_bytes=8 * GIB)
"""Limits of importing a network."""

STORE = Store("linalg/programs", SUFFIX)
"""Store of programs as MLIR, linalg on tensors."""


class Sources:
    """Turns the sources that URIs name into files of MLIR. Close it, or let it end with the process."""

    def __init__(self) -> None:
        self._child = Child(LIMITS)
        self._opener = Opener("the compiler", "write it in another way")

    def file(self, source: Source) -> Path:
        """Return the file of a program, written or imported on first use.

        Raises:
            BackendError: torch-mlir is missing, or torch where the program is a network.
            ProgramError: The file is not a program, or the network cannot be imported.
            StorageError: A file cannot be read or the cache folder cannot be written.
        """
        origin = source.origin
        if isinstance(origin, Operator):
            return STORE.put(origin.name, origin.text().encode())
        reader = (_recipe(), compiler_version(), keyed(os.environ))
        if isinstance(origin, Network):
            name = f"{origin.name}-{digest(source.uri, *reader, _torch())}"
            call = Call("irgym.envs.linalg.importing.torch_import:network_program", (source.uri,))
        else:
            content, sizes = _content(origin.path), dict(origin.sizes)
            opened = partial(self._opener.call, what=source.uri, size=len(content))
            name = f"{stem_of(origin.path.stem)}-{digest(content, origin.function, str(sizes), *reader)}"
            call = Call(
                "irgym.envs.linalg.importing.modules:program_of_file",
                (content, str(origin.path), origin.function, sizes),
            )
            return STORE.get(name, lambda: opened(call).encode())
        return STORE.get(name, lambda: answer(self._child, call, source.uri).encode())

    def functions(self, file: File) -> list[str]:
        """Return the names of the functions of a file that may be programs.

        Raises:
            BackendError: torch-mlir is missing.
            ProgramError: The file does not parse.
        """
        content, path = _content(file.path), str(file.path)
        call = Call("irgym.envs.linalg.importing.modules:functions_of_file", (content, path))
        return self._opener.call(call, what=path, size=len(content))

    def text(self, source: Source) -> str:
        """Return the MLIR of a program; raises the errors of `file`."""
        return _content(self.file(source))

    def close(self) -> None:
        """End the child processes."""
        self._child.close()
        self._opener.close()


def _content(path: Path) -> str:
    try:
        return content_of_program(path).decode()
    except UnicodeDecodeError as error:
        raise ProgramError(f"{path} is no text: write MLIR in its textual form") from error


RECIPE = (
    "envs/linalg/importing",
    "envs/linalg/programs/families.py",
    "envs/linalg/programs/networks.py",
    "envs/linalg/scheduling/operations.py",
    "measure/callables/torch_modules.py",
)
"""Sources that imported programs depend on."""


@cache
def _recipe() -> str:
    """Return a digest of `RECIPE`."""
    return hash_of(files_of(RECIPE), ROOT)


def _torch() -> str:
    try:
        return f"torch {version('torch')}"
    except PackageNotFoundError as error:
        raise BackendError(f"networks need torch, which is not installed: run {INSTALL_TORCH}") from error
