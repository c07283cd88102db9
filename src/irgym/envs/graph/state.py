"""The states of a rewriting under way."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.rules.rule import Site
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

    @cached_property
    def named(self) -> Mapping[tuple[int, str], Site]:
        """Where rules apply, by the rule's place and the site's name, in the order of the mask."""
        found: dict[tuple[int, str], Site] = {}
        for sites in () if self.stopped else self.sites.values():
            for rule, site in sites:
                found.setdefault((rule, site.name), site)
        return found

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, GraphState)
            and (self.digest, self.stopped) == (other.digest, other.stopped)
            and self.graph.nodes.keys() == other.graph.nodes.keys()
        )

    def __hash__(self) -> int:
        return hash((self.digest, self.stopped))
