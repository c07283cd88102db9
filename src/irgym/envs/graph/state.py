"""The states of a rewriting under way."""

from dataclasses import dataclass

from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.sites import Sites


@dataclass(frozen=True, eq=False)
class GraphState:
    """A graph, and where rules apply to it.

    States are equal where their graphs compute the same in the same way and have the same names of values.

    Attributes:
        graph: The graph.
        digest: Its digest.
        sites: Where rules apply.
        stopped: Whether `stop` was taken.
    """

    graph: Graph
    digest: str
    sites: Sites
    stopped: bool = False

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, GraphState)
            and (self.digest, self.stopped) == (other.digest, other.stopped)
            and self.graph.nodes.keys() == other.graph.nodes.keys()
        )

    def __hash__(self) -> int:
        return hash((self.digest, self.stopped))
