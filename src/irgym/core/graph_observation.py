"""Graphs as policies see them, with or without candidates among their nodes."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from gymnasium import spaces

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int64]


def _none() -> Any:
    return np.zeros((0, 0), dtype=np.float32)


def _nobody() -> Any:
    return np.zeros((0, 2), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class GraphObservation:
    """A graph, what it is as a whole, and the candidates that a state has in it.

    Attributes:
        nodes: Shape [N, F]; N is at least 1.
        edges: Shape [E, G].
        links: Shape [E, 2]; the nodes that each edge leads from and to.
        state: Shape [S]; the state as a whole.
        candidates: Shape [C, K]; a row for each pair of the mask's `candidates`, in that order.
        members: Shape [M, 2]; pairs of a candidate and a node that it is about.
        present: Number of nodes at the beginning that are the state's own graph; the others are the graphs
            after its candidates. None where there are no others.
    """

    encoder: ClassVar[str] = "graph"

    nodes: FloatArray
    edges: FloatArray
    links: IntArray
    state: FloatArray = field(default_factory=lambda: np.zeros(0, dtype=np.float32))
    candidates: FloatArray = field(default_factory=_none)
    members: IntArray = field(default_factory=_nobody)
    present: int | None = None

    @property
    def own(self) -> int:
        """Number of nodes of the state's own graph."""
        return len(self.nodes) if self.present is None else self.present

    def joined(self, values: FloatArray) -> "GraphObservation":
        """Return the graph with these values, shape [S], after those of its state."""
        return replace(self, state=np.concatenate([self.state, values], dtype=np.float32))

    @property
    def instance(self) -> "spaces.GraphInstance":
        """The graph as Gymnasium shows it."""
        from gymnasium import spaces

        return spaces.GraphInstance(self.nodes, self.edges, self.links)


def as_graph(observation: Any) -> GraphObservation | None:
    """Return an observation as a graph; None for what is none."""
    if isinstance(observation, GraphObservation):
        return observation
    from gymnasium import spaces

    if isinstance(observation, spaces.GraphInstance):
        nodes, edges, links = observation
        return None if edges is None or links is None else GraphObservation(nodes, edges, links)
    return None
