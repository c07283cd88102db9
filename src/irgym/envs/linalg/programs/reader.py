"""What MLIR says of programs: it is asked once, in a child, and the answers are kept in the user's cache."""

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
"""What was read of programs."""

OPERATIONS = 5_000
"""Most operations of a program: compiling more takes longer than a candidate may."""

READING = ("envs/linalg/compiling", "envs/linalg/importing", "envs/linalg/scheduling")
"""What reads them."""


class Reader:
    """Reads programs. Close it, or let it go with the process.

    Args:
        limits: What reading one may take.
    """

    def __init__(self, limits: Limits) -> None:
        self._child = Child(limits)
        self._programs: dict[str, tuple[str, Program]] = {}

    def described(self, text: str, uri: str) -> tuple[str, Program]:
        """Return a program's text with its operations numbered, and what it is made of.

        Args:
            text: The program, as MLIR.
            uri: What errors call it.

        Raises:
            ProgramError: It is no valid MLIR, has nothing to schedule, or is too large.
            StorageError: The cache folder cannot be read or written.
        """
        if text not in self._programs:
            numbered, program = self._read("description:describe", text, uri)
            if len(program.operations) > OPERATIONS:
                raise ProgramError(
                    f"{uri} has {len(program.operations):,} operations, and at most {OPERATIONS:,} are "
                    "scheduled: split the program"
                )
            self._programs[text] = numbered, program
        return self._programs[text]

    def parts(self, text: str, turns: Sequence[int], uri: str) -> list[str]:
        """Return operations of a program, each as a program of its own; see `importing.parts`.

        Args:
            text: The program, its operations numbered.
            turns: Their numbers.
            uri: What errors call the program.

        Raises:
            ProgramError: The program is too much for MLIR.
            StorageError: The cache folder cannot be read or written.
        """
        return self._read("parts:parts_of", text, uri, tuple(turns))

    def close(self) -> None:
        """End the child process."""
        self._child.close()

    def _read(self, function: str, text: str, uri: str, *more: Any) -> Any:
        """Return what a function of `importing` says of a program's text."""
        call = Call(f"irgym.envs.linalg.importing.{function}", (text, *more))
        name = digest(function, text, repr(more), _readers(), compiler_version())
        file = STORE.get(name, lambda: pickle.dumps(answer(self._child, call, uri)))
        return pickle.loads(file.read_bytes())


@cache
def _readers() -> str:
    """Return what stands for the source of everything that reads programs."""
    return hash_of(files_of(READING), ROOT)
