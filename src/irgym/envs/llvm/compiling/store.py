"""Child side: modules of LLVM by program and path. `Pool` calls the functions at the end.

Hashes of all that a module is tell whether a pass changed it, and two modules apart. Each program has a
context, so that copies of its module share types and names.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path as File
from typing import NamedTuple

from irgym.base.errors import ProgramError, explained
from irgym.envs.llvm.actions import PASSES, passes_of
from irgym.envs.llvm.compiling.library import Context, Library, Module, library
from irgym.envs.llvm.observing.counts import SIZE
from irgym.measure.passes.store import Failure, PassFailure, PassStore, Path

CAPACITY = 2_000_000
"""Greatest number of instructions in all modules of a child, about 1 GB."""

EMPTY = b"define void @f() {\n  ret void\n}\n"
"""A module on which the names of passes are tried."""


class Request(NamedTuple):
    """A pass to run on a module.

    Attributes:
        program: File of the program's bitcode.
        path: Kinds of the passes that led to the module.
        kind: The pass.
        backend: Name of the LLVM.
    """

    program: str
    path: Path
    kind: int
    backend: str


class Summary(NamedTuple):
    """Summary of a module for the parent.

    Attributes:
        digest: Hash of the module.
        counts: What observations count, by `observing.counts.LAYOUT`, int32 as bytes.
    """

    digest: bytes
    counts: bytes


class Store(PassStore["Stored", Request, Summary]):
    """Modules of LLVM by program and path.

    Args:
        llvm: Runs the passes.
        capacity: Greatest number of instructions in all modules; the least recently used are evicted.
    """

    def __init__(self, llvm: Library, capacity: int = CAPACITY) -> None:
        super().__init__(capacity)
        self._llvm = llvm
        self._passes = [passes_of(kind, llvm.release) for kind in range(len(PASSES))]

    def read(self, program: str) -> "Stored":
        """Return the original module of a program."""
        return Stored(Context(self._llvm).read(read_program(program), File(program).name))

    def apply(self, module: "Stored", kind: int) -> bool:
        """Run a pass in place; return whether it changed the module.

        Raises:
            PassFailure: LLVM returned an error.
        """
        return module.run(self._passes[kind])

    def answer(self, module: "Stored", request: Request) -> Summary:
        """Return the summary of a module that a request made."""
        del request
        return module.summary()

    def supported(self) -> int:
        """Return a bit for each action whose passes this LLVM knows."""
        found = 0
        for kind, passes in enumerate(self._passes):
            if not passes:
                continue
            try:
                Context(self._llvm).read(EMPTY, "a probe").run(passes)
            except PassFailure:
                continue
            found |= 1 << kind
        return found

    def at_once(self, program: str, path: Path) -> str:
        """Return the passes of a path as one list for `opt`; empty if they give another module that way."""
        joined = ",".join(self._passes[kind] for kind in path)
        if len(path) < 2:
            return joined
        module = self.read(program)
        module.run(joined)
        return joined if module.digest == self.module(program, path).digest else ""


class Stored:
    """A module, with the hash of what it is.

    Attributes:
        module: The module.
        digest: Its hash.
        size: Number of its instructions.
    """

    def __init__(self, module: Module) -> None:
        self.module, self.size, self.digest = module, module.order(), module.digest()

    def clone(self) -> "Stored":
        """Return a copy, to which passes do the same."""
        copy = object.__new__(Stored)
        copy.module, copy.size, copy.digest = self.module.clone(), self.size, self.digest
        return copy

    def run(self, passes: str) -> bool:
        """Run passes in place; return whether they changed the module.

        Raises:
            PassFailure: LLVM returned an error.
        """
        before = self.digest
        self.size = self.module.run(passes)
        self.digest = self.module.digest()
        return self.digest != before

    def summary(self) -> Summary:
        """Return what the parent knows of the module."""
        return Summary(self.digest, self.module.counts(SIZE))


def read_program(path: str) -> bytes:
    """Return the content of a program's file.

    Raises:
        ProgramError: It cannot be read.
    """
    with explained(f"cannot read {path}", "check the path and its permissions", ProgramError):
        return File(path).read_bytes()


@cache
def store(backend: str) -> Store:
    """Return this process's store.

    Raises:
        BackendError: LLVM cannot be loaded.
    """
    return Store(library(backend))


def step(requests: Sequence[Request]) -> list[Summary | Failure | None]:
    """Run passes in this process's store."""
    return store(requests[0].backend).step(requests)


def look(program: str, path: Path, backend: str) -> Summary:
    """Return the summary of a module for the parent."""
    return store(backend).module(program, path).summary()


def supported(program: str, path: Path, backend: str) -> int:
    """Return a bit for each action whose passes LLVM knows."""
    del program, path
    return store(backend).supported()


def graph(program: str, path: Path, backend: str) -> tuple[bytes, bytes]:
    """Return the nodes and edges of a module's graph as bytes; see `Module.graph`."""
    return store(backend).module(program, path).module.graph()


def text(program: str, path: Path, backend: str) -> str:
    """Return a module as text."""
    return store(backend).module(program, path).module.text()


def bitcode(program: str, path: Path, backend: str) -> bytes:
    """Return a module as bitcode."""
    return store(backend).module(program, path).module.bitcode()


def code(program: str, path: Path, backend: str) -> bytes:
    """Return the object file of a module.

    Raises:
        PassFailure: LLVM generates no code for it.
    """
    return store(backend).module(program, path).module.code()


def at_once(program: str, path: Path, backend: str) -> str:
    """Return the passes of a path as one list for `opt`; empty if they give another module that way."""
    return store(backend).at_once(program, path)
