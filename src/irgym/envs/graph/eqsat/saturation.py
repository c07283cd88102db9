"""Saturation: rules are applied everywhere until nothing new appears, or until a limit.

As in Tensat (Yang et al., MLSys 2021, arXiv 2101.01332), multi-pattern rules are applied in the first
iterations only, since each pair of operators that they match creates more pairs.
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

    nodes: int = 50_000
    iterations: int = 15
    multi: int = 1
    seconds: float = 120.0


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
    return _Saturating(
        Tensors(graph, block), [rule for rule in rules if rule.name not in ITSELF], limits
    ).run()


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
            tried, stopped = self._iterate([rule for rule in self._rules if multi or not is_multi(rule)])
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
        """Apply rules to all current matches; return the number of tries, and the limit that was reached."""
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
