"""Child side: modules by program and path, made on demand. `Pool` calls the functions at the end.

A path holds the kinds of the passes that changed the module, starting from the original. Requests name the
path, so a child that replaces a crashed one can answer by replaying it.

A copy costs more than most passes. An episode follows one path, so a step takes over the module that it
starts from. A module from which many steps start (a search, episodes with a common prefix) is kept, and every
step copies it.
"""

from collections import OrderedDict
from collections.abc import Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from irgym.base.errors import BackendError, ProgramError, explained
from irgym.envs.hlo.actions import PASSES
from irgym.envs.hlo.compiling.engine import REASON, Engine, Module, PassFailure, load_engine
from irgym.envs.hlo.observing.opcodes import OPCODES

CAPACITY = 600_000
"""Greatest number of instructions in all modules of a child, about 1 GB."""

REMEMBERED = 100_000
"""Greatest number of paths whose replays a child counts."""

REPLAYS = 2
"""Replays of a path after which its module is kept: two replays cost more than a copy."""

Key = tuple[str, tuple[int, ...]]


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
        entry: Instructions of the entry computation.
        possible: A bit for each kind of pass; 0 if the pass has nothing to change.
        analysis: FLOPs, transcendental operations and bytes accessed; None unless requested.
    """

    counts: bytes
    entry: int
    possible: int
    analysis: tuple[float, float, float] | None


class Failure(NamedTuple):
    """Failure of a pass.

    Attributes:
        reason: One line.
    """

    reason: str


Reply = Summary | Failure | None
"""Result of a step; None if the pass changed nothing."""


class Store:
    """Modules by program and path.

    Args:
        engine: Runs the passes.
        capacity: Greatest number of instructions in all modules; the least recently used are evicted.
    """

    def __init__(self, engine: Engine, capacity: int = CAPACITY) -> None:
        self._engine = engine
        self._capacity = capacity
        self._passes = [tuple(engine.number(name) for name in action.passes) for action in PASSES]
        self._bits = [sum(1 << number for number in numbers) for numbers in self._passes]
        self._modules: OrderedDict[Key, Module] = OrderedDict()
        self._sizes: dict[Key, int] = {}
        self._held = 0
        self._replays: OrderedDict[Key, int] = OrderedDict()
        self._pinned: set[Key] = set()
        self._spare: tuple[Key, Module] | None = None

    def module(self, program: str, path: tuple[int, ...]) -> Module:
        """Return the module at a path, to inspect or to copy; it stays in the store.

        Raises:
            PassFailure: A pass on the way fails.
        """
        found = self._modules.get((program, path))
        if found is None:
            found = self._replayed(program, path)
            self._keep((program, path), found)
            self._count_replay((program, path))
        else:
            self._modules.move_to_end((program, path))
        return found

    def exported(self, program: str, path: tuple[int, ...]) -> Module:
        """Return a new module at a path, with source locations.

        Raises:
            PassFailure: A pass on the way fails.
        """
        module = self._engine.from_proto(read_program(program), origins=True)
        for kind in path:
            self.apply(module, kind)
        return module

    def step(self, requests: Sequence[Request]) -> list[Reply]:
        """Run passes; requests on the same module should be adjacent."""
        replies: list[Reply] = []
        for (program, path), group in groupby(requests, key=lambda request: request[:2]):
            replies += self._step_from(program, path, list(group))
        return replies

    def _step_from(self, program: str, path: tuple[int, ...], requests: list[Request]) -> list[Reply]:
        """Run several passes, each on the module at `path`."""
        key = (program, path)
        base = self.module(program, path)
        stays = not path or key in self._pinned
        replies: list[Reply] = []
        working: Module | None = None
        for place, request in enumerate(requests):
            takes_over = working is None and not stays and place == len(requests) - 1
            if takes_over:
                self._let_go(key)
                working = base
            elif working is None:
                working = self._copy(key, base)
            try:
                changed = self.apply(working, request.kind)
            except PassFailure as failure:
                replies.append(Failure(str(failure)))
                working = None
                continue
            if changed:
                replies.append(self.summary(working, request.analysed))
                self._keep((program, (*path, request.kind)), working)
                working = None
            else:
                replies.append(None)
                if takes_over:
                    self._keep(key, working)
                    working = None
        if working is not None:
            self._spare = (key, working)
        return replies

    def apply(self, module: Module, kind: int) -> bool:
        """Run an action's passes in place; return whether one of them changed the module.

        Raises:
            PassFailure: A pass returned an error.
        """
        changed = False
        for number in self._passes[kind]:
            changed |= module.run(number)
        return changed

    def summary(self, module: Module, analysed: bool) -> Summary:
        """Return the summary of a module for the parent."""
        counts, entry, passes = module.summary()
        possible = sum(1 << kind for kind, bits in enumerate(self._bits) if passes & bits)
        analysis = module.analysis() if analysed else None
        return Summary(counts.tobytes(), entry, possible, analysis)

    def _replayed(self, program: str, path: tuple[int, ...]) -> Module:
        """Return a new module, replayed from a copy of its nearest ancestor in the store."""
        for length in range(len(path) - 1, -1, -1):
            nearest = self._modules.get((program, path[:length]))
            if nearest is not None:
                module = nearest.clone()
                break
        else:
            module, length = self._engine.from_proto(read_program(program), origins=False), 0
            if path:
                self._keep((program, ()), module)
                module = module.clone()
        for kind in path[length:]:
            self.apply(module, kind)
        return module

    def _copy(self, key: Key, module: Module) -> Module:
        """Return a copy of a module: the spare one that passes left unchanged, or a new one."""
        if self._spare is not None and self._spare[0] == key:
            _, spare = self._spare
            self._spare = None
            return spare
        return module.clone()

    def _count_replay(self, key: Key) -> None:
        """Count a replay of a path, and pin its module after `REPLAYS` of them."""
        self._replays[key] = self._replays.get(key, 0) + 1
        if self._replays[key] >= REPLAYS:
            self._pinned.add(key)
        if len(self._replays) > REMEMBERED:
            self._replays.popitem(last=False)

    def _let_go(self, key: Key) -> None:
        """Remove the module of a path, unless it was evicted already."""
        if key in self._modules:
            self._held -= self._sizes.pop(key)
            del self._modules[key]

    def _keep(self, key: Key, module: Module) -> None:
        if key in self._modules:
            self._held -= self._sizes[key]
        self._modules[key] = module
        self._modules.move_to_end(key)
        self._sizes[key] = module.size
        self._held += module.size
        while self._held > self._capacity and len(self._modules) > 1:
            oldest, _ = self._modules.popitem(last=False)
            self._held -= self._sizes.pop(oldest)
            self._pinned.discard(oldest)


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
