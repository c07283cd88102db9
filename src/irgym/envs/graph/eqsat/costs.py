"""Costs of the operators of an e-graph: measured one by one, once for each signature, or counted.

An e-graph has many operators with few signatures: 47,000 operators of a BERT have 300 signatures.
"""

import math
import time
from collections import Counter
from collections.abc import Sequence
from typing import Protocol, TypeAlias

from irgym.core.cost import Measurement
from irgym.envs.graph.costs.costs import residences_of
from irgym.envs.graph.costs.measuring import measure
from irgym.envs.graph.costs.signature import Residences, Signature, signature_of
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Node
from irgym.measure.target import host_target

Operator: TypeAlias = tuple[Graph, Node]
"""A graph and one of its nodes."""

SECONDS = 120.0
"""Time limit of measurements."""


class Prices(Protocol):
    """A function from operators to their costs."""

    def __call__(self, operators: Sequence[Operator], needed: int) -> list[float]:
        """Return the costs of operators; infinite for those that must not be chosen.

        Args:
            operators: The operators.
            needed: Number of operators at the beginning that always have a finite cost.
        """
        ...


def counted(operators: Sequence[Operator], needed: int) -> list[float]:
    """Return 1 for each operator, so that the cheapest graph has the fewest operators."""
    del needed
    return [1.0] * len(operators)


class Measured:
    """Times of single operators in nanoseconds, as under the objective `model`.

    Each signature is measured once, in this process, the most frequent first. Signatures that are not
    measured when the time is up have infinite cost, and so have those that ONNX Runtime does not run alone:
    nothing is guessed. Needed operators are measured in any case, and cost nothing if they do not run alone.

    Args:
        graph: The original model, which determines where operators find weights.
        threads: Threads of an operator.
        seconds: Time limit.
    """

    def __init__(self, graph: Graph, threads: int, seconds: float = SECONDS) -> None:
        self._threads = threads
        self._limit = seconds
        self._spent = 0.0
        self._known: dict[Signature, Measurement] = {}
        self._late: set[Signature] = set()
        self._residences = residences_of(graph, host_target())
        self._shared = frozenset(
            weight.digest for name, weight in graph.weights.items() if len(graph.users.get(name, ())) > 1
        )

    def __call__(self, operators: Sequence[Operator], needed: int) -> list[float]:
        """Return the times of operators; see `Prices`."""
        signatures = [self._signature(graph, node) for graph, node in operators]
        first = dict.fromkeys(signatures[:needed])
        for signature in first:
            self._measure(signature)
        for signature, _ in Counter(signatures).most_common():
            if signature is not None and signature not in self._known:
                if self._spent < self._limit:
                    self._measure(signature)
                else:
                    self._late.add(signature)
        return [self._price(signature, signature in first) for signature in signatures]

    @property
    def words(self) -> str:
        """Numbers of measured, skipped and refused signatures, in words."""
        words = f"{_kinds(len(self._known))} measured in {self._spent:.0f} s"
        late = len(self._late - self._known.keys())
        if late:
            words += f", {late:,} more left out at the limit of {self._limit:g} s"
        refused = sum(not measurement.ok for measurement in self._known.values())
        return f"{words}, {refused:,} of which do not run alone" if refused else words

    def _measure(self, signature: Signature | None) -> None:
        if signature is not None and signature not in self._known:
            started = time.perf_counter()
            self._known[signature] = measure(signature, self._threads)
            self._spent += time.perf_counter() - started

    def _price(self, signature: Signature | None, needed: bool) -> float:
        # Operands have unknown types: no rule changes such operators, so all graphs have them.
        if signature is None:
            return 0.0
        cost = self._known[signature].cost if signature in self._known else math.inf
        return 0.0 if needed and math.isinf(cost) else cost

    def _signature(self, graph: Graph, node: Node) -> Signature | None:
        """Return the signature of an operator; None if a type is unknown.

        In an e-graph, the users of a weight depend on the extracted graph: a weight counts as shared if
        several operators of the original model use it.
        """
        residences = self._residences
        if any(graph.weights[name].digest in self._shared for name in node.operands if name in graph.weights):
            residences = Residences(residences.shared, residences.shared)
        return signature_of(graph, node, residences)


def _kinds(count: int) -> str:
    return f"{count:,} distinct operator{'s' if count != 1 else ''}"
