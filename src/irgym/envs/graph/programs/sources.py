"""ONNX files of programs: each is exported or read once, and cached in the user's cache folder."""

import os
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from irgym.base.errors import BackendError
from irgym.base.reading import check_size
from irgym.core.cost import Call
from irgym.core.uri import ProgramUri
from irgym.envs.graph.programs.families import PACKAGES
from irgym.envs.graph.programs.uris import SUFFIX
from irgym.measure.code_digest import ROOT, files_of, hash_of
from irgym.measure.isolation.child import Child
from irgym.measure.isolation.protocol import GIB, Limits
from irgym.measure.opening import Opener
from irgym.measure.replies import answered
from irgym.measure.samples import Given, size_at
from irgym.measure.store import Store, digest, stem_of
from irgym.measure.variables import keyed

answer = partial(answered, by="onnx or torch")
"""Runs a call in a child process; see `answered`."""

LIMITS = Limits(timeout_s=600.0, memory_bytes=12 * GIB, file_bytes=8 * GIB)
"""Limits for exporting a program of a family."""

STORE = Store("graph/programs", SUFFIX)
"""Programs: ONNX models with inputs of fixed shapes. Only large weights from files stay outside."""

INSTALL = "pip install 'irgym[graph]'"
"""The command that installs the packages for ONNX files."""

INSTALL_MODELS = "pip install 'irgym[graph,graph-models]'"
"""The command that installs the packages for exported models."""

INSTALL_PEERS = "pip install 'irgym[graph,graph-peers]'"
"""The command that installs onnxslim and onnxsim."""

SECONDS = 50.0
"""Limit in seconds for opening a small file, in which the model is read and run once."""

RECIPE = ("envs/graph/ir/outside.py", "envs/graph/programs")
"""Sources that cached programs depend on."""


class Sources:
    """Makes ONNX files of the programs that URIs name. Close it, or let it end with the process."""

    def __init__(self) -> None:
        self._child = Child(LIMITS)
        self._opener = Opener("onnx or ONNX Runtime", seconds=SECONDS)
        self._sizes: dict[Path, int] = {}

    def file(self, program: ProgramUri) -> Path:
        """Return the file of a program, making it unless it is cached.

        Large weights in files beside the user's stay there, and the program's file refers to them.

        Raises:
            BackendError: onnx is missing, or torch or the package of the model.
            ProgramError: The file is no model, a sample of its inputs does not fit, or the model cannot be
                exported.
            StorageError: A file cannot be read or the cache folder cannot be written.
        """
        common = (_recipe(), keyed(os.environ))
        if program.path is None:
            needed = ("torch", "onnx", "onnxscript", "onnx-ir", *_package(program.family))
            versions = (_version(package, program.uri, INSTALL_MODELS) for package in needed)
            name = f"{program.family}-{digest(program.uri, *versions, *common)}"
            call = Call("irgym.envs.graph.programs.exporting:export", (program.uri,))
        else:
            installed = _version("onnx", program.uri, INSTALL)
            files = Call("irgym.envs.graph.programs.digests:files", (program.path,))
            content, beside, size = self._opener.call(files, program.uri, check_size(program.path))
            inputs = self.inputs(program)
            size += 0 if inputs is None else size_at(inputs.path)
            given = f"{program.bindings} {program.profiles} {program.ranges}"
            parts = (content, str(beside), given, inputs.digest if inputs else "", installed, *common)
            name = f"{stem_of(program.path.stem)}-{digest(*parts)}"
            sized = (program.ranges, inputs, program.profiles)
            arguments = (str(program.path), program.bindings, beside, *sized)
            call = Call("irgym.envs.graph.programs.files:bound", arguments)
            file = STORE.get(name, lambda: self._opener.call(call, program.uri, size))
            self._sizes[file] = size
            return file
        return STORE.get(name, lambda: answer(self._child, call, program.uri))

    def inputs(self, program: ProgramUri) -> Given | None:
        """Return the samples of a program's inputs; None without any.

        Raises:
            ProgramError: They cannot be read, or are too many or too large.
        """
        if program.inputs is None:
            return None
        call = Call("irgym.measure.samples:digest_at", (program.inputs,))
        found = self._opener.call(call, str(program.inputs), size_at(program.inputs))
        return Given(program.inputs, found)

    def opened(self, call: Call, uri: str, file: Path) -> Any:
        """Return the result of a call that opens a file; see `Opener.call` for exceptions.

        Args:
            call: The function and its arguments.
            uri: The program's name in messages.
            file: The file, as `file` returned it.
        """
        return self._opener.call(call, uri, self._sizes.get(file) or check_size(file))

    def close(self) -> None:
        """End the child processes."""
        self._child.close()
        self._opener.close()


def _package(family: str) -> tuple[str, ...]:
    # transformers imports torchvision where that is installed, so no version of it matters.
    return (PACKAGES[family],) if family in PACKAGES else ()


def _version(package: str, what: str, install: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError as error:
        raise BackendError(f"{what} needs {package}, which is not installed: run {install}") from error


@cache
def _recipe() -> str:
    """Return the digest of the sources that cached programs depend on."""
    return hash_of(files_of(RECIPE), ROOT)
