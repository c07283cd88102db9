"""Cache of the modules that passes make of a program, shared by all its tasks."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from irgym.envs.hlo.actions import STOP
from irgym.envs.hlo.compiling.pool import Pool
from irgym.envs.hlo.compiling.store import Request, Summary
from irgym.envs.hlo.observing.opcodes import COUNTED
from irgym.measure.passes.store import Failure

KNOWN = 50_000
"""Greatest number of transitions of a program in the cache; a full cache is cleared."""


@dataclass(frozen=True, eq=False)
class Node:
    """Analysis of a module.

    Attributes:
        counts: Shape [len(OPCODES)]; instructions of each opcode in all computations.
        total: Instructions in all computations.
        entry: Instructions of the entry computation.
        possible: Shape [len(SPACE.kinds)], read-only; false for passes with nothing to do, true for `stop`.
        analysis: FLOPs, transcendental operations, bytes accessed; None unless requested.
    """

    counts: NDArray[np.int32]
    total: int
    entry: int
    possible: NDArray[np.bool_]
    analysis: tuple[float, float, float] | None = None

    @cached_property
    def logs_and_counts(self) -> NDArray[np.float32]:
        """log(1 + count) / 5 of each opcode in `COUNTED`, then the counts; shape [2 * len(COUNTED)]."""
        both = np.empty(2 * len(COUNTED), dtype=np.float32)
        logs, counts = both[: len(COUNTED)], both[len(COUNTED) :]
        counts[:] = self.counts[COUNTED]
        np.log1p(counts, out=logs)
        logs /= 5.0
        return both


def node_of(summary: Summary) -> Node:
    """Return the node of a summary from a child process."""
    counts = np.frombuffer(summary.counts, dtype=np.int32)
    return Node(counts, summary.total, summary.entry, _flags(summary.possible), summary.analysis)


@lru_cache(4096)
def _flags(bits: int) -> NDArray[np.bool_]:
    """Return `Node.possible` from an integer with a bit for each pass."""
    flags = np.array([*(bits >> kind & 1 for kind in range(STOP)), True], dtype=np.bool_)
    flags.flags.writeable = False
    return flags


PassPath = tuple[int, ...]
"""Kinds of the passes that changed the module, starting from the original."""


class ProgramModules:
    """The modules of one program, by the path of passes to each.

    Passes are deterministic, so a known transition is never run again.

    Attributes:
        uri: Canonical URI of the program.
        file: File of its HloModuleProto.
        content: Digest of the content of that file.
        pool: The processes that run passes.
    """

    def __init__(self, uri: str, file: Path, content: str, pool: Pool) -> None:
        self.uri = uri
        self.file = str(file)
        self.content = content
        self.pool = pool
        self._known: dict[tuple[PassPath, int], Node | Failure | None] = {}
        self._digests: dict[PassPath, int] = {}
        self._analyses: dict[PassPath, tuple[float, float, float]] = {}

    @cached_property
    def root(self) -> Node:
        """The original, with its cost analysis.

        Raises:
            ProgramError: The program cannot be read.
        """
        return node_of(self.pool.call("look", self.file, (), True))

    def known(self, path: PassPath, kind: int, analysed: bool) -> bool:
        """Say whether a transition is in the cache, with a cost analysis if `analysed`."""
        if (path, kind) not in self._known:
            return False
        found = self._known[path, kind]
        return not (analysed and isinstance(found, Node) and found.analysis is None)

    def result(self, path: PassPath, kind: int) -> Node | Failure | None:
        """Return the result of a known transition: None if the pass changes nothing."""
        return self._known[path, kind]

    def record(self, path: PassPath, kind: int, reply: Summary | Failure | None) -> Node | Failure | None:
        """Add a transition to the cache and return its result."""
        if len(self._known) >= KNOWN:
            self._known.clear()
        result = node_of(reply) if isinstance(reply, Summary) else reply
        self._known[path, kind] = result
        return result

    def digest(self, path: PassPath) -> int:
        """Return a hash of the graph; see `Module.digest`."""
        if path not in self._digests:
            if len(self._digests) >= KNOWN:
                self._digests.clear()
            self._digests[path] = self.pool.call("digest", self.file, path)
        return self._digests[path]

    def graph(self, path: PassPath) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the nodes and edges of a module, shapes [N, 3] and [E, 3]; see `Module.graph`."""
        nodes, edges = self.pool.call("graph", self.file, path)
        return (
            np.frombuffer(nodes, dtype=np.int64).reshape(-1, 3),
            np.frombuffer(edges, dtype=np.int64).reshape(-1, 3),
        )

    def analysis(self, path: PassPath, node: Node) -> tuple[float, float, float]:
        """Return the cost analysis of a module, requesting it if it is not known."""
        if node.analysis is not None:
            return node.analysis
        if path not in self._analyses:
            if len(self._analyses) >= KNOWN:
                self._analyses.clear()
            summary: Summary = self.pool.call("look", self.file, path, True)
            assert summary.analysis is not None
            self._analyses[path] = summary.analysis
        return self._analyses[path]


def run_passes(
    steps: Sequence[tuple[ProgramModules, PassPath, int]], analysed: bool
) -> list[Node | Failure | None]:
    """Return the results of steps of programs; unknown ones are run, spread over the pool.

    Args:
        steps: Program, path and pass of each; all programs have the same pool.
        analysed: Whether to request the cost analysis of the results.
    """
    found = {step: step[0].result(step[1], step[2]) for step in steps if step[0].known(*step[1:], analysed)}
    unknown = list(dict.fromkeys(step for step in steps if step not in found))
    if unknown:
        requests = [Request(modules.file, path, kind, analysed) for modules, path, kind in unknown]
        replies = unknown[0][0].pool.step(requests)
        for step, reply in zip(unknown, replies, strict=True):
            found[step] = step[0].record(step[1], step[2], reply)
    return [found[step] for step in steps]
