"""What the operators of an e-graph cost: measured by themselves, each distinct one once, or counted.

An e-graph has many operators and few distinct ones: 47,000 of a BERT's have 300 signatures.
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
"""An operator, and a graph that has it."""

SECONDS = 120.0
"""Time limit of measuring."""


class Prices(Protocol):
    """From operators to what they cost."""

    def __call__(self, operators: Sequence[Operator], needed: int) -> list[float]:
        """Return what each of some operators costs; infinite for those that are not to be chosen.

        Args:
            operators: The operators.
            needed: How many of them, the first ones, have a finite cost in any case.
        """
        ...


def counted(operators: Sequence[Operator], needed: int) -> list[float]:
    """Return 1 for each operator: graphs with the fewest operators are the cheapest."""
    del needed
    return [1.0] * len(operators)


class Measured:
    """Times of operators by themselves, nanoseconds, as under the objective `model`.

    Each distinct one is measured once, in this process, those that occur most often first. When the time is
    up, those that were not measured yet cost infinitely much, as do those that ONNX Runtime does not run by
    themselves: nothing is guessed. Operators that are needed are measured even then, and cost nothing where
    they do not run by themselves.

    Args:
        graph: The model as written, which says where operators find weights.
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
        """Return what each of some operators takes: see `Prices`."""
        signatures = [self._signature(graph, one) for graph, one in operators]
        first = dict.fromkeys(signatures[:needed])
        for one in first:
            self._measure(one)
        for one, _ in Counter(signatures).most_common():
            if one is not None and one not in self._known:
                if self._spent < self._limit:
                    self._measure(one)
                else:
                    self._late.add(one)
        return [self._price(one, one in first) for one in signatures]

    @property
    def words(self) -> str:
        """What was measured, and what was not."""
        words = f"{_kinds(len(self._known))} measured in {self._spent:.0f} s"
        late = len(self._late - self._known.keys())
        if late:
            words += f", {late:,} more left out at the limit of {self._limit:g} s"
        refused = sum(not one.ok for one in self._known.values())
        return f"{words}, {refused:,} of which do not run by themselves" if refused else words

    def _measure(self, signature: Signature | None) -> None:
        if signature is not None and signature not in self._known:
            started = time.perf_counter()
            self._known[signature] = measure(signature, self._threads)
            self._spent += time.perf_counter() - started

    def _price(self, signature: Signature | None, needed: bool) -> float:
        # Operands of unknown types: no rule touches such operators, so all graphs have them.
        if signature is None:
            return 0.0
        cost = self._known[signature].cost if signature in self._known else math.inf
        return 0.0 if needed and math.isinf(cost) else cost

    def _signature(self, graph: Graph, one: Node) -> Signature | None:
        """Return what an operator's time depends on.

        In an e-graph, who uses a weight depends on what is chosen: one that several operators of the model
        as written use is taken for one that several use.
        """
        residences = self._residences
        if any(graph.weights[name].digest in self._shared for name in one.operands if name in graph.weights):
            residences = Residences(residences.shared, residences.shared)
        return signature_of(graph, one, residences)


def _kinds(count: int) -> str:
    return f"{count:,} distinct operator{'s' if count != 1 else ''}"
