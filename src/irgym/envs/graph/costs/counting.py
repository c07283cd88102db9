"""The cost under `nodes`: the number of operators."""

from irgym.core.cost import Measurement, Outcome
from irgym.envs.graph.ir.graph import Graph


def count(graph: Graph) -> Measurement:
    """Return the number of operators of a graph as a cost."""
    return Measurement(Outcome.OK, (float(len(graph.nodes)),))
