"""Descriptions of programs, read by MLIR once in a child process and kept in the user's cache folder."""

import pickle
from collections.abc import Sequence
from functools import cache
from typing import Any

from irgym.base.errors import ProgramError
from irgym.core.cost import Call
from irgym.envs.linalg.compiling.toolchain import compiler_version
from irgym.envs.linalg.programs.sources import answer
from irgym.envs.linalg.scheduling.operations import Program
from irgym.measure.code_digest import ROOT, files_of, hash_of
from irgym.measure.isolation.child import Child
from irgym.measure.isolation.protocol import Limits
from irgym.measure.store import Store, digest

STORE = Store("linalg/descriptions", ".pickle")
"""Store of the descriptions."""

OPERATIONS = 5_000
"""Most operations of a program: compiling more takes longer than a candidate may."""

DESCRIBE = "irgym.envs.linalg.importing.description:describe"
PARTS = "irgym.envs.linalg.importing.parts:parts_of"
"""Functions that read a program's text, in a child process."""

READING = ("envs/linalg/compiling", "envs/linalg/importing", "envs/linalg/scheduling")
"""Sources that the descriptions depend on."""


class Reader:
    """Reads programs. Close it, or let it go with the process.

    Args:
        limits: Limits of reading a program.
    """

    def __init__(self, limits: Limits) -> None:
        self._child = Child(limits)
        self._programs: dict[str, tuple[str, Program]] = {}

    def described(self, text: str, uri: str) -> tuple[str, Program]:
        """Return a program's text with its operations numbered, and its description.

        Args:
            text: The program, as MLIR.
            uri: Name of the program in errors.

        Raises:
            ProgramError: It is not valid MLIR, has nothing to schedule, or is too large.
            StorageError: The cache folder cannot be read or written.
        """
        if text not in self._programs:
            numbered, program = self._read(DESCRIBE, text, uri)
            if len(program.operations) > OPERATIONS:
                raise ProgramError(
                    f"{uri} has {len(program.operations):,} operations, and at most {OPERATIONS:,} are "
                    "scheduled: split the program"
                )
            self._programs[text] = numbered, program
        return self._programs[text]

    def parts(self, text: str, turns: Sequence[int], uri: str) -> list[str]:
        """Return some operations of a program as separate programs; see `importing.parts`.

        Args:
            text: The program, its operations numbered.
            turns: Numbers of the operations.
            uri: Name of the program in errors.

        Raises:
            ProgramError: The program is too much for MLIR.
            StorageError: The cache folder cannot be read or written.
        """
        return self._read(PARTS, text, uri, tuple(turns))

    def close(self) -> None:
        """End the child process."""
        self._child.close()

    def _read(self, function: str, text: str, uri: str, *more: Any) -> Any:
        """Return the result of a function on a program's text, from the store where it is known."""
        call = Call(function, (text, *more))
        name = digest(function, text, repr(more), _readers(), compiler_version())
        file = STORE.get(name, lambda: pickle.dumps(answer(self._child, call, uri)))
        return pickle.loads(file.read_bytes())


@cache
def _readers() -> str:
    """Return a digest of `READING`."""
    return hash_of(files_of(READING), ROOT)
