"""Loop nests as networkx graphs. Importing this module needs networkx."""

from typing import TYPE_CHECKING, Any

import networkx
import numpy as np

if TYPE_CHECKING:
    DiGraph = networkx.DiGraph[str]
else:
    DiGraph = networkx.DiGraph


class NestGraph(DiGraph):
    """A directed graph that equals one with the same nodes, edges and attributes.

    networkx compares by identity, and Gymnasium's checks compare observations by `==`.
    """

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NestGraph) and _content(self) == _content(other)

    __hash__ = object.__hash__


def _content(graph: NestGraph) -> tuple[dict[str, Any], list[Any]]:
    nodes: dict[str, Any] = {
        name: {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in data.items()}
        for name, data in graph.nodes(data=True)
    }
    return nodes, sorted(graph.edges(data=True), key=lambda edge: edge[:2])
