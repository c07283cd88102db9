"""States of a rewriting."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TypeAlias

from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.rewriting.rule import Site
from irgym.envs.graph.rewriting.sites import Key, Sites
from irgym.envs.graph.running.session_options import OFF

Candidates: TypeAlias = Mapping[Key, tuple[Site, ...]]
"""Sites, by the index of a rule and the name of a candidate: that of its site, or `EVERYWHERE`."""

EVERYWHERE = "*"
"""Name of the candidate that covers all sites of a rule; it is no possible name of a value."""


@dataclass(frozen=True, eq=False)
class GraphState:
    """A graph, the sites of rules in it, and how its schedule ended.

    Equal states have equal futures: the same nodes by the same names, the same candidates in the same order,
    and the same ending.

    Attributes:
        graph: The graph.
        digest: Its digest.
        sites: The sites where rules apply.
        ending: The level of ONNX Runtime's optimiser that the schedule ended with, such as `off` after
            `stop`; empty while the schedule goes on.
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
        """The level of ONNX Runtime's optimiser that the model runs with."""
        return self.ending or OFF

    @cached_property
    def candidates(self) -> Candidates:
        """The sites, by the rule's place and the site's name, in the order of the mask.

        A rule with several sites has another candidate for all of them together, named `EVERYWHERE`.
        """
        if self.stopped:
            return {}
        every = [*chain.from_iterable(self.sites.values())]
        found: dict[Key, tuple[Site, ...]] = dict(every)
        if len(found) < len(every):  # of sites with one key, the first counts
            found |= dict(reversed(every))
        by_rule: defaultdict[int, list[Site]] = defaultdict(list)
        for (rule, _), sites in found.items():
            by_rule[rule] += sites
        found.update(
            [((rule, EVERYWHERE), tuple(sites)) for rule, sites in sorted(by_rule.items()) if len(sites) > 1]
        )
        return found

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, GraphState)
            and (self.digest, self.ending) == (other.digest, other.ending)
            and self.graph.nodes == other.graph.nodes
            and list(self.candidates) == list(other.candidates)
        )

    def __hash__(self) -> int:
        return hash((self.digest, self.ending))
