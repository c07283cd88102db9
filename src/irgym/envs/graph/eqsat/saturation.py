"""Saturation: rules are applied everywhere until nothing new appears, or until a limit.

As in Tensat (Yang et al., MLSys 2021, arXiv 2101.01332), multi-pattern rules are applied in the first
iterations only, since each pair of operators that they match creates more pairs.
"""

import time
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Annotated

from irgym.base.values import Range
from irgym.envs.graph.eqsat.egraph import ENode
from irgym.envs.graph.eqsat.queries import Query, queries
from irgym.envs.graph.eqsat.tensors import Tensors
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.rewriting.rule import Rule

ITSELF = frozenset({"share"})
"""Rules that an e-graph makes superfluous, since equal operators of equal values are merged anyway."""


@dataclass(frozen=True)
class Limits:
    """Limits of a saturation. The first three have Tensat's values.

    Attributes:
        nodes: Greatest number of operators in the e-graph.
        iterations: Greatest number of iterations.
        multi: Number of iterations with multi-pattern rules; see `is_multi`.
        seconds: Wall-clock time limit.
    """

    nodes: Annotated[int, Range(1, 100_000_000)] = 50_000
    iterations: Annotated[int, Range(1, 1_000_000)] = 15
    multi: Annotated[int, Range(0, 1_000_000)] = 1
    seconds: Annotated[float, Range(0.0, 1e6)] = 120.0


@dataclass(frozen=True)
class Iteration:
    """An iteration of a saturation.

    Attributes:
        nodes: Number of operators in the e-graph after it.
        matches: Number of matches at which rules were tried.
        seconds: Wall-clock time since the saturation began.
    """

    nodes: int
    matches: int
    seconds: float


@dataclass(frozen=True)
class Saturation:
    """An e-graph after saturation.

    Attributes:
        tensors: The e-graph.
        iterations: The iterations, including one that a limit stopped.
        stopped: Reason for the end, in words.
        saturated: Whether nothing new appeared, apart from multi-pattern rules after their iterations.
    """

    tensors: Tensors
    iterations: tuple[Iteration, ...]
    stopped: str
    saturated: bool


def is_multi(rule: Rule) -> bool:
    """Say whether a rule matches several operators that share at most operands.

    These are Tensat's multi-pattern rules, such as two products of one input, where any two products match.
    """
    left = list(rule.pattern[1:])
    reached = {*rule.pattern[0].outputs, *rule.pattern[0].operands} - _leaves(rule)
    while joined := [
        statement for statement in left if not reached.isdisjoint({*statement.outputs, *statement.operands})
    ]:
        left = [statement for statement in left if statement not in joined]
        for statement in joined:
            reached |= {*statement.outputs, *statement.operands} - _leaves(rule)
    return bool(left)


def _leaves(rule: Rule) -> set[str]:
    """Return the inputs of a pattern: values that its nodes use and none of them makes."""
    used = {name for statement in rule.pattern for name in statement.operands}
    return used - {name for statement in rule.pattern for name in statement.outputs}


def saturate(graph: Graph, rules: Sequence[Rule], block: int, limits: Limits) -> Saturation:
    """Return the e-graph of all graphs that rules make from a graph, within limits.

    Args:
        graph: The graph.
        rules: The rules.
        block: Channels of a block in the layout of ONNX Runtime's nchwc operators.
        limits: Limits of the saturation.

    Raises:
        BackendError: egglog is not installed.
        BaselineError: The graph has operators with subgraphs.
    """
    growing = Growing(graph, rules, block, limits)
    iterations: list[Iteration] = []
    saturated, stopped = False, ""
    while not stopped:
        before = growing.tensors.egraph.nodes
        tried, stopped = growing.apply(growing.permitted())
        iterations.append(growing.iteration(tried))
        if not stopped and growing.tensors.egraph.nodes == before:
            saturated, stopped = True, f"saturated after {counted(len(iterations), 'iteration')}"
        elif stopped:
            stopped = f"stopped at the limit of {stopped} in iteration {len(iterations)}"
        elif len(iterations) == limits.iterations:
            stopped = f"stopped at the limit of {counted(limits.iterations, 'iteration')}"
    if saturated and len(iterations) > limits.multi:
        stopped += f", the first {limits.multi} with multi-pattern rules"
    return Saturation(growing.tensors, tuple(iterations), stopped, saturated)


class Growing:
    """An e-graph that rules extend, within limits of operators, time and uses of multi-pattern rules.

    Args:
        graph: The original graph.
        rules: The rules.
        block: Channels of a block in the layout of ONNX Runtime's nchwc operators.
        limits: The limits. Time counts from now.

    Attributes:
        tensors: The e-graph.
        limits: The limits.

    Raises:
        BackendError: egglog is not installed.
        BaselineError: The graph has operators with subgraphs.
    """

    def __init__(self, graph: Graph, rules: Sequence[Rule], block: int, limits: Limits) -> None:
        self.tensors = Tensors(graph, block)
        self.limits = limits
        self._rules = [rule for rule in rules if rule.name not in ITSELF]
        self._multi = {rule.name for rule in self._rules if is_multi(rule)}
        self._uses: Counter[str] = Counter()
        self._done: set[tuple[str, tuple[ENode, ...]]] = set()
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Wall-clock time since the beginning."""
        return time.perf_counter() - self._start

    def permitted(self) -> list[Rule]:
        """Return the rules without the multi-pattern rules that were applied `Limits.multi` times."""
        return [
            rule
            for rule in self._rules
            if rule.name not in self._multi or self._uses[rule.name] < self.limits.multi
        ]

    def untried(self) -> list[Rule]:
        """Return the permitted rules that have matches at which they were not tried yet."""
        egraph = self.tensors.egraph
        asked = {rule.name: queries(rule.pattern, egraph.arities) for rule in self.permitted()}
        found: dict[Query, list[tuple[ENode, ...]]] = {}
        for query, nodes in egraph.matches(dict.fromkeys(chain.from_iterable(asked.values()))):
            found.setdefault(query, []).append(nodes)
        return [
            rule
            for rule in self.permitted()
            if any(
                (rule.name, nodes) not in self._done
                for query in asked[rule.name]
                for nodes in found.get(query, ())
            )
        ]

    def apply(self, rules: Sequence[Rule]) -> tuple[int, str]:
        """Apply rules, each to its matches at that time, and merge equal values at the end.

        Returns:
            The number of tries, and the limit that was reached, in words; empty if none was.
        """
        self._uses.update(rule.name for rule in rules)
        tried, stopped = self._tried(rules)
        self.tensors.rebuild()
        return tried, stopped

    def iteration(self, tried: int) -> Iteration:
        """Return the present size and time as an iteration with a number of tries."""
        return Iteration(len(self.tensors.egraph.nodes), tried, self.seconds)

    @contextmanager
    def trial(self) -> Generator[None]:
        """Undo all changes at the end of a block; the time that it took counts."""
        uses, done = self._uses.copy(), self._done.copy()
        with self.tensors.trial():
            try:
                yield
            finally:
                self._uses, self._done = uses, done

    def _tried(self, rules: Sequence[Rule]) -> tuple[int, str]:
        egraph, tried = self.tensors.egraph, 0
        for rule in rules:
            for query, found in egraph.matches(queries(rule.pattern, egraph.arities)):
                if len(egraph) > self.limits.nodes:
                    return tried, f"{self.limits.nodes:,} operators"
                if self.seconds > self.limits.seconds:
                    return tried, f"{self.limits.seconds:g} s"
                tried += self._try(rule, query, found)
        return tried, ""

    def _try(self, rule: Rule, query: Query, found: tuple[ENode, ...]) -> bool:
        key = rule.name, found
        if key in self._done:
            return False
        self._done.add(key)
        self.tensors.apply(rule, query, found)
        return True


def counted(number: int, name: str) -> str:
    """Return a number with a noun, in the plural unless it is 1."""
    return f"{number:,} {name}{'s' if number != 1 else ''}"
