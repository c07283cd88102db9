"""The states of a rewriting under way."""

from dataclasses import dataclass

from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.session_options import OFF
from irgym.envs.graph.sites import Sites


@dataclass(frozen=True, eq=False)
class GraphState:
    """A graph, where rules apply to it, and how its schedule ended.

    States are equal where their graphs compute the same in the same way and have the same names of values,
    and they ended alike.

    Attributes:
        graph: The graph.
        digest: Its digest.
        sites: Where rules apply.
        ending: The level of ONNX Runtime's own optimiser that the schedule ended with, such as `off` after
            `stop`; empty while it goes on.
    """

    graph: Graph
    digest: str
    sites: Sites
    ending: str = ""

    @property
    def stopped(self) -> bool:
        """Whether the schedule ended."""
        return bool(self.ending)

    @property
    def level(self) -> str:
        """The level of ONNX Runtime's own optimiser that the model runs with."""
        return self.ending or OFF

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, GraphState)
            and (self.digest, self.ending) == (other.digest, other.ending)
            and self.graph.nodes.keys() == other.graph.nodes.keys()
        )

    def __hash__(self) -> int:
        return hash((self.digest, self.ending))
