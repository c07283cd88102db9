"""Equality saturation: rules are applied everywhere until nothing new comes, or a limit stops it.

After Tensat (Yang et al., MLSys 2021, arXiv 2101.01332): rules that look for several operators of one value
are tried in the first iterations only, since each pair that they match makes more pairs.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from irgym.envs.graph.eqsat.egraph import ENode
from irgym.envs.graph.eqsat.queries import Query, queries
from irgym.envs.graph.eqsat.tensors import Tensors
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.rewriting.rule import Rule

ITSELF = frozenset({"share"})
"""Rules that an e-graph needs none of: equal operators of equal values are one there anyway."""


@dataclass(frozen=True)
class Limits:
    """What stops a saturation. The first three are Tensat's.

    Attributes:
        nodes: Operators of the e-graph.
        iterations: Iterations.
        multi: Iterations in which multi-pattern rules are tried too; see `is_multi`.
        seconds: Wall-clock time.
    """

    nodes: int = 50_000
    iterations: int = 15
    multi: int = 1
    seconds: float = 120.0


@dataclass(frozen=True)
class Iteration:
    """What an iteration came to.

    Attributes:
        nodes: Operators of the e-graph after it.
        matches: Places at which rules were tried.
        seconds: Wall-clock time since the saturation began.
    """

    nodes: int
    matches: int
    seconds: float


@dataclass(frozen=True)
class Saturation:
    """An e-graph, and how it came about.

    Attributes:
        tensors: The e-graph.
        iterations: Its iterations, the one that a limit stopped included.
        stopped: What ended it, in words.
        saturated: Whether nothing was left to do, but for multi-pattern rules after their iterations.
    """

    tensors: Tensors
    iterations: tuple[Iteration, ...]
    stopped: str
    saturated: bool


def is_multi(rule: Rule) -> bool:
    """Say whether a rule looks for several operators that have nothing in common but an operand.

    These are Tensat's multi-pattern rules, such as two products of one input. Any two of so many match.
    """
    left = list(rule.pattern[1:])
    reached = {*rule.pattern[0].outputs, *rule.pattern[0].operands} - _leaves(rule)
    while joined := [one for one in left if not reached.isdisjoint({*one.outputs, *one.operands})]:
        left = [one for one in left if one not in joined]
        for one in joined:
            reached |= {*one.outputs, *one.operands} - _leaves(rule)
    return bool(left)


def _leaves(rule: Rule) -> set[str]:
    """Return the values that a pattern says nothing of but who uses them."""
    used = {name for one in rule.pattern for name in one.operands}
    return used - {name for one in rule.pattern for name in one.outputs}


def saturate(graph: Graph, rules: Sequence[Rule], block: int, limits: Limits) -> Saturation:
    """Return the e-graph of all that rules make of a graph, within limits.

    Args:
        graph: The graph.
        rules: The rules.
        block: Channels of a block in the layout of ONNX Runtime's nchwc operators.
        limits: What stops it.

    Raises:
        BackendError: egglog is not installed.
        BaselineError: The graph has operators with graphs of their own.
    """
    return _Saturating(Tensors(graph, block), [one for one in rules if one.name not in ITSELF], limits).run()


class _Saturating:
    def __init__(self, tensors: Tensors, rules: Sequence[Rule], limits: Limits) -> None:
        self._tensors = tensors
        self._rules = rules
        self._limits = limits
        self._start = time.perf_counter()
        self._done: set[tuple[str, tuple[ENode, ...]]] = set()

    def run(self) -> Saturation:
        limits = self._limits
        iterations: list[Iteration] = []
        saturated, stopped = False, ""
        while not stopped:
            multi = len(iterations) < limits.multi
            before = self._tensors.egraph.nodes
            tried, stopped = self._iterate([one for one in self._rules if multi or not is_multi(one)])
            self._tensors.rebuild()
            iterations.append(Iteration(len(self._tensors.egraph.nodes), tried, self._seconds()))
            if not stopped and self._tensors.egraph.nodes == before:
                saturated, stopped = True, f"saturated after {_count(len(iterations), 'iteration')}"
            elif stopped:
                stopped = f"stopped at the limit of {stopped} in iteration {len(iterations)}"
            elif len(iterations) == limits.iterations:
                stopped = f"stopped at the limit of {_count(limits.iterations, 'iteration')}"
        if saturated and len(iterations) > limits.multi:
            stopped += f", the first {limits.multi} with multi-pattern rules"
        return Saturation(self._tensors, tuple(iterations), stopped, saturated)

    def _iterate(self, rules: Sequence[Rule]) -> tuple[int, str]:
        """Apply rules wherever they apply now; return how often they were tried, and what limit was met."""
        egraph, tried = self._tensors.egraph, 0
        for rule in rules:
            for query, found in egraph.matches(queries(rule.pattern, egraph.arities)):
                if len(egraph) > self._limits.nodes:
                    return tried, f"{self._limits.nodes:,} operators"
                if self._seconds() > self._limits.seconds:
                    return tried, f"{self._limits.seconds:g} s"
                tried += self._try(rule, query, found)
        return tried, ""

    def _try(self, rule: Rule, query: Query, found: tuple[ENode, ...]) -> bool:
        key = rule.name, found
        if key in self._done:
            return False
        self._done.add(key)
        self._tensors.apply(rule, query, found)
        return True

    def _seconds(self) -> float:
        return time.perf_counter() - self._start


def _count(number: int, name: str) -> str:
    return f"{number} {name}{'s' if number != 1 else ''}"
