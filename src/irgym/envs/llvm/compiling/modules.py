"""Cache of the modules that passes make of a program, shared by all its tasks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from irgym.envs.llvm.actions import KIND, PASSES
from irgym.envs.llvm.compiling.pool import Pool
from irgym.envs.llvm.compiling.store import Request, Summary
from irgym.envs.llvm.observing.counts import Counts
from irgym.measure.passes.store import Failure
from irgym.measure.passes.store import Path as PassPath

KNOWN = 200_000
"""Greatest number of transitions of a program that are remembered; then all are forgotten."""


@dataclass(frozen=True, eq=False)
class Node:
    """A module.

    Attributes:
        digest: Hash of the module.
        counts: What observations count; see `observing.counts`.
        total: Number of instructions.
        path: Kinds of the passes by which it was first reached, and by which it is asked for.
        made: What observations made of it, by name.
    """

    digest: bytes
    counts: Counts
    total: int
    path: PassPath
    made: dict[str, NDArray[np.float32]] = field(default_factory=dict[str, NDArray[np.float32]], repr=False)


class ProgramModules:
    """The modules of one program. Passes are deterministic, so a known transition is never run again.

    Attributes:
        uri: Canonical URI of the program.
        path: File of its bitcode.
        file: The same as a text, as requests name it.
        content: Digest of the content of that file.
        pool: The processes that run passes.
    """

    def __init__(self, uri: str, file: Path, content: str, pool: Pool) -> None:
        self.uri = uri
        self.path = file
        self.file = str(file)
        self.content = content
        self.pool = pool
        self._nodes: dict[bytes, Node] = {}
        self._known: dict[tuple[bytes, int], Node | Failure | None] = {}

    @cached_property
    def root(self) -> Node:
        """The original.

        Raises:
            ProgramError: LLVM cannot read it.
        """
        return self._node(self.pool.call("look", self.file, (), self.pool.backend), ())

    @cached_property
    def supported(self) -> NDArray[np.bool_]:
        """Which actions this LLVM knows, shape [len(PASSES)]."""
        bits: int = self.pool.call("supported", self.file, (), self.pool.backend)
        return np.array([bits >> kind & 1 for kind in range(len(PASSES))], dtype=np.bool_)

    @cached_property
    def reference(self) -> Node:
        """The module after LLVM's own pipeline; the original where that fails."""
        [found] = run_passes([(self, self.root, self.pipeline("oz"))])
        return found if isinstance(found, Node) else self.root

    def pipeline(self, name: str) -> int:
        """Return the kind of one of LLVM's pipelines, such as `oz`."""
        kind = KIND[f"default-{name}"]
        # Releases without a pipeline for size have O2, which looks at the attributes of functions.
        return kind if self.supported[kind] else KIND["default-o2"]

    def known(self, node: Node, kind: int) -> bool:
        """Say whether it is known what a pass does to a module."""
        return (node.digest, kind) in self._known

    def result(self, node: Node, kind: int) -> Node | Failure | None:
        """Return what a pass, where that is known, makes of a module: None if it changes nothing."""
        return self._known[node.digest, kind]

    def record(self, node: Node, kind: int, reply: Summary | Failure | None) -> Node | Failure | None:
        """Remember what a pass does to a module, and return it."""
        if len(self._known) >= KNOWN:
            self._known.clear()
            self._nodes.clear()
        result = self._node(reply, (*node.path, kind)) if isinstance(reply, Summary) else reply
        self._known[node.digest, kind] = result
        return result

    def ask(self, function: str, path: PassPath) -> object:
        """Return what a function of `store` says of the module at a path."""
        return self.pool.call(function, self.file, path, self.pool.backend)

    def _node(self, summary: Summary, path: PassPath) -> Node:
        found = self._nodes.get(summary.digest)
        if found is None:
            counts = np.frombuffer(summary.counts, dtype=np.int32)
            found = self._nodes[summary.digest] = Node(summary.digest, counts, int(counts[0]), path)
        return found


Step = tuple[ProgramModules, Node, int]
"""A program, one of its modules, and the pass to run on it."""


Results = Callable[[], list[Node | Failure | None]]
"""Waits for the results of steps."""


def run_passes(steps: Sequence[Step]) -> list[Node | Failure | None]:
    """Return the results of steps of programs; unknown ones are run, spread over the pools."""
    return begin_passes(steps, at_once=True)()


def begin_passes(steps: Sequence[Step], at_once: bool = False) -> Results:
    """Begin what `run_passes` does, and return a function that waits for the results.

    Equal modules are asked for by one path, however each was reached.

    Args:
        steps: The steps.
        at_once: Whether the results are waited for next.
    """
    found: dict[tuple[int, bytes, int], Node | Failure | None] = {}
    unknown: dict[Pool, dict[tuple[int, bytes, int], Step]] = {}
    for step in steps:
        modules, node, kind = step
        if modules.known(node, kind):
            found[_key(step)] = modules.result(node, kind)
        else:
            unknown.setdefault(modules.pool, {})[_key(step)] = step
    begun = {
        pool: pool.begin(
            [Request(modules.file, node.path, kind, pool.backend) for modules, node, kind in asked.values()],
            [node.total for _, node, _ in asked.values()],
            at_once,
        )
        for pool, asked in unknown.items()
    }

    def results() -> list[Node | Failure | None]:
        for pool, asked in unknown.items():
            for (key, (modules, node, kind)), reply in zip(asked.items(), begun[pool](), strict=True):
                found[key] = modules.record(node, kind, reply)
        return [found[_key(step)] for step in steps]

    return results


def _key(step: Step) -> tuple[int, bytes, int]:
    modules, node, kind = step
    return id(modules), node.digest, kind
