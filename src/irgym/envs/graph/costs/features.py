"""Features of a graph from which a learned cost model predicts its time.

As in "A Learned Performance Model for Tensor Processing Units" (Kaufman et al., MLSys 2021): operators, their
work and the data that they move. Here they are summed by class of operator, and compared with the original
model's, since the cost model predicts the ratio to the original's time. Nothing is measured.
"""

import math

import numpy as np
from numpy.typing import NDArray

from irgym.envs.graph.costs.calibration import CLASSES, OTHER, class_of
from irgym.envs.graph.costs.estimate import Rates, estimated
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Node
from irgym.envs.graph.reference.operators import OPERATORS
from irgym.envs.graph.running.session_options import LEVELS

KINDS = (OTHER, *sorted(OPERATORS))
"""Operators that are counted one by one; unknown ones count as `OTHER`."""

PER_CLASS = 4
"""Features of a class: operators, estimated time, its change as a share of the original's, bytes moved."""

COST_FEATURES = PER_CLASS * len(CLASSES) + len(KINDS) + len(LEVELS) + 4
"""Number of features."""

_CLASS = {name: place for place, name in enumerate(CLASSES)}
_KIND = {name: place for place, name in enumerate(KINDS)}


class CostFeatures:
    """Features of the graphs that come of one model.

    Args:
        original: The model.
        rates: Speeds of the machine.
    """

    def __init__(self, original: Graph, rates: Rates) -> None:
        self._rates = rates
        self._kinds, self._classes = _kinds(original), self._summed(original)
        self._total = self._classes[:, 1].sum() or 1.0  # a model without operators takes no time

    def of(self, graph: Graph, level: str) -> NDArray[np.float64]:
        """Return the features of a graph, shape [COST_FEATURES]; they do not depend on names.

        Args:
            graph: The graph.
            level: Level of ONNX Runtime's optimiser that it runs with.
        """
        classes = self._summed(graph)
        times = classes[:, 1]
        used = {value for node in graph.nodes.values() for value in node.operands if value in graph.weights}
        held = {graph.weights[value].digest: graph.weights[value].type.bytes for value in used}
        whole = (
            math.log(max(times.sum(), 1.0) / self._total),
            math.log1p(self._total),
            math.log1p(len(graph.nodes)),
            math.log1p(sum(held.values())),
        )
        return np.concatenate(
            [
                np.log1p(classes).ravel(),
                (times - self._classes[:, 1]) / self._total,
                _kinds(graph) - self._kinds,
                [level == name for name in LEVELS],
                whole,
            ]
        )

    def _summed(self, graph: Graph) -> NDArray[np.float64]:
        """Return operators, estimated nanoseconds and bytes moved by class, shape [classes, 3]."""
        classes = np.zeros((len(CLASSES), 3))
        for node in graph.nodes.values():
            # Whole nanoseconds: their sum is the same in any order of the operators.
            time = round(estimated(graph, node, self._rates))
            classes[_CLASS[class_of(node.operator)]] += 1.0, time, _moved(graph, node)
        return classes


def _moved(graph: Graph, node: Node) -> int:
    """Return the bytes of an operator's operands and results; those of unknown shape count as empty."""
    return sum(graph.types[value].bytes for value in (*node.operands, *node.results) if value in graph.types)


def _kinds(graph: Graph) -> NDArray[np.float64]:
    """Return how many operators of each kind there are, shape [kinds]."""
    counts = np.zeros(len(KINDS))
    for node in graph.nodes.values():
        counts[_KIND.get(node.operator, 0)] += 1.0
    return counts
