"""Child side: modules of XLA by program and path. `Pool` calls the functions at the end."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from irgym.base.errors import BackendError, ProgramError, explained
from irgym.envs.hlo.actions import PASSES
from irgym.envs.hlo.compiling.engine import REASON, Engine, Module, load_engine
from irgym.envs.hlo.observing.opcodes import OPCODES
from irgym.measure.passes.store import Failure, PassFailure, PassStore

CAPACITY = 600_000
"""Greatest number of instructions in all modules of a child, about 1 GB."""


class Request(NamedTuple):
    """A pass to run on a module.

    Attributes:
        program: File of the program's HloModuleProto.
        path: Kinds of the passes that led to the module.
        kind: The pass.
        analysed: Whether to compute the cost analysis of the result.
    """

    program: str
    path: tuple[int, ...]
    kind: int
    analysed: bool


class Summary(NamedTuple):
    """Summary of a module for the parent.

    Attributes:
        counts: Instructions of each opcode in all computations, int32 as bytes.
        total: Instructions in all computations.
        entry: Instructions of the entry computation.
        possible: A bit for each kind of pass; 0 if the pass has nothing to change.
        analysis: FLOPs, transcendental operations and bytes accessed; None unless requested.
    """

    counts: bytes
    total: int
    entry: int
    possible: int
    analysis: tuple[float, float, float] | None


Reply = Summary | Failure | None
"""Result of a step; None if the pass changed nothing."""


class Store(PassStore[Module, Request, Summary]):
    """Modules of XLA by program and path.

    Args:
        engine: Runs the passes.
        capacity: Greatest number of instructions in all modules; the least recently used are evicted.
    """

    def __init__(self, engine: Engine, capacity: int = CAPACITY) -> None:
        super().__init__(capacity)
        self._engine = engine
        self._passes = [tuple(engine.number(name) for name in action.passes) for action in PASSES]
        self._bits = [sum(1 << number for number in numbers) for numbers in self._passes]
        self._possible: dict[int, int] = {}

    def read(self, program: str) -> Module:
        """Return the original module of a program, without source locations and computations not called."""
        return self._engine.from_proto(read_program(program), origins=False).clone()

    def exported(self, program: str, path: tuple[int, ...]) -> Module:
        """Return a new module at a path, with source locations.

        Raises:
            PassFailure: A pass on the way fails.
        """
        module = self._engine.from_proto(read_program(program), origins=True)
        for kind in path:
            self.apply(module, kind)
        return module

    def apply(self, module: Module, kind: int) -> bool:
        """Run an action's passes in place; return whether one of them changed the module.

        Raises:
            PassFailure: A pass returned an error.
        """
        changed = False
        for number in self._passes[kind]:
            changed |= module.run(number)
        return changed

    def answer(self, module: Module, request: Request) -> Summary:
        """Return the summary of a module that a request made."""
        return self.summary(module, request.analysed)

    def summary(self, module: Module, analysed: bool) -> Summary:
        """Return the summary of a module for the parent."""
        counts, total, entry, passes = module.content()
        possible = self._possible.get(passes)
        if possible is None:
            possible = sum(1 << kind for kind, bits in enumerate(self._bits) if passes & bits)
            self._possible[passes] = possible
        return Summary(counts, total, entry, possible, module.analysis() if analysed else None)


def read_program(path: str) -> bytes:
    """Return the content of a program's file.

    Raises:
        ProgramError: It cannot be read.
    """
    with explained(f"cannot read {path}", "check the path and its permissions", ProgramError):
        return Path(path).read_bytes()


@cache
def store() -> Store:
    """Return this process's store.

    Raises:
        BackendError: The engine cannot be loaded, or its opcodes are not those of the features.
    """
    engine = load_engine()
    if engine.opcodes != OPCODES:
        raise BackendError("the engine of hlo knows other opcodes than irgym: install tensorflow-cpu 2.21.0")
    return Store(engine)


def step(requests: Sequence[Request]) -> list[Reply]:
    """Run passes in this process's store."""
    return store().step(requests)


def look(program: str, path: tuple[int, ...], analysed: bool) -> Summary:
    """Return the summary of a module for the parent."""
    return store().summary(store().module(program, path), analysed)


def graph(program: str, path: tuple[int, ...]) -> tuple[bytes, bytes]:
    """Return nodes and edges of a module as bytes; see `Module.graph`."""
    nodes, edges = store().module(program, path).graph()
    return nodes.tobytes(), edges.tobytes()


def verify(program: str, path: tuple[int, ...]) -> str:
    """Run XLA's verifier; return its error in one line, or nothing."""
    try:
        store().module(program, path).verify()
    except PassFailure as failure:
        return str(failure)
    return ""


def digest(program: str, path: tuple[int, ...]) -> int:
    """Return a hash of the graph; see `Module.digest`."""
    return store().module(program, path).digest()


def fingerprint(program: str, path: tuple[int, ...]) -> int:
    """Return a hash of the module; see `Module.fingerprint`."""
    return store().module(program, path).fingerprint()


def text(program: str, path: tuple[int, ...]) -> str:
    """Return a module as HLO text.

    Raises:
        ProgramError: XLA does not read it back unchanged.
    """
    module = store().exported(program, path)
    written = module.text()
    _check_whole(module, load_engine().from_text(written), "HLO text", ".pb")
    return written


def proto(program: str, path: tuple[int, ...]) -> bytes:
    """Return a module as a serialized HloModuleProto.

    Raises:
        ProgramError: XLA does not read it back unchanged.
    """
    module = store().exported(program, path)
    written = module.proto()
    _check_whole(module, load_engine().from_proto(written), "an HloModuleProto", ".hlo")
    return written


def _check_whole(module: Module, read: Module, form: str, other: str) -> None:
    """Raise ProgramError unless a module keeps its text when it is exported and read back."""
    ours, theirs = (sorted(version.text().splitlines()) for version in (module, read))
    if ours != theirs:
        kept = set(theirs)
        lost = next((line.strip() for line in ours if line not in kept), "order")
        raise ProgramError(f"XLA does not read back the module from {form} ({lost[:REASON]}): export {other}")
