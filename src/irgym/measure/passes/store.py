"""Child side: modules by program and path, made on demand.

A path holds the kinds of the passes that changed the module, starting from the original. Requests name the
path, so a child that replaces a crashed one can answer by replaying it.

A copy costs more than most passes. An episode follows one path, so a step takes over the module that it
starts from. A module from which many steps start (a search, episodes with a common prefix) is kept, and every
step copies it.
"""

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Sequence
from itertools import groupby
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

from irgym.base.errors import IrgymError

REMEMBERED = 100_000
"""Greatest number of paths whose replays a child counts."""

REPLAYS = 2
"""Replays of a path after which its module is kept: two replays cost more than a copy."""

Path = tuple[int, ...]
"""Kinds of the passes that led to a module."""

Key = tuple[str, Path]
"""A program's file, and a path."""


class PassFailure(IrgymError):
    """A pass rejected a module, which may be invalid since; the message is the compiler's."""


class Failure(NamedTuple):
    """Failure of a pass.

    Attributes:
        reason: One line.
    """

    reason: str


class Derived(Protocol):
    """A module of a compiler."""

    @property
    def size(self) -> int:
        """Number of instructions."""
        ...

    def clone(self) -> Self:
        """Return a copy, to which passes do the same."""
        ...


class PassRequest(Protocol):
    """A pass to run on a module."""

    @property
    def program(self) -> str:
        """File of the program."""
        ...

    @property
    def path(self) -> Path:
        """Kinds of the passes that led to the module."""
        ...

    @property
    def kind(self) -> int:
        """The pass."""
        ...


M = TypeVar("M", bound=Derived)
R = TypeVar("R", bound=PassRequest)
A = TypeVar("A")


class PassStore(ABC, Generic[M, R, A]):
    """Modules by program and path: `M`. It answers requests, `R`, with summaries, `A`.

    Args:
        capacity: Greatest number of instructions in all modules; the least recently used are evicted.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._modules: OrderedDict[Key, M] = OrderedDict()
        self._sizes: dict[Key, int] = {}
        self._held = 0
        self._replays: OrderedDict[Key, int] = OrderedDict()
        self._pinned: set[Key] = set()
        self._spare: tuple[Key, M] | None = None

    @abstractmethod
    def read(self, program: str) -> M:
        """Return the original module of a program."""

    @abstractmethod
    def apply(self, module: M, kind: int) -> bool:
        """Run a pass in place; return whether it changed the module.

        Raises:
            PassFailure: The pass returned an error.
        """

    @abstractmethod
    def answer(self, module: M, request: R) -> A:
        """Return the summary of the module that a request made."""

    def module(self, program: str, path: Path) -> M:
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

    def step(self, requests: Sequence[R]) -> list[A | Failure | None]:
        """Run passes; requests on the same module should be adjacent. None: the pass changed nothing."""
        replies: list[A | Failure | None] = []
        for (program, path), group in groupby(requests, key=lambda request: (request.program, request.path)):
            replies += self._step_from(program, path, list(group))
        return replies

    def _step_from(self, program: str, path: Path, requests: list[R]) -> list[A | Failure | None]:
        """Run several passes, each on the module at `path`."""
        key = (program, path)
        base = self.module(program, path)
        stays = not path or key in self._pinned
        replies: list[A | Failure | None] = []
        working: M | None = None
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
                replies.append(self.answer(working, request))
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

    def _replayed(self, program: str, path: Path) -> M:
        """Return a new module, replayed from a copy of its nearest ancestor in the store."""
        for length in range(len(path) - 1, -1, -1):
            nearest = self._modules.get((program, path[:length]))
            if nearest is not None:
                module = nearest.clone()
                break
        else:
            module, length = self.read(program), 0
            if path:
                self._keep((program, ()), module)
                module = module.clone()
        for kind in path[length:]:
            self.apply(module, kind)
        return module

    def _copy(self, key: Key, module: M) -> M:
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

    def _keep(self, key: Key, module: M) -> None:
        if key in self._modules:
            self._held -= self._sizes[key]
        self._modules[key] = module
        self._modules.move_to_end(key)
        self._sizes[key] = size = module.size
        self._held += size
        while self._held > self._capacity and len(self._modules) > 1:
            oldest, _ = self._modules.popitem(last=False)
            self._held -= self._sizes.pop(oldest)
            self._pinned.discard(oldest)
