"""The states of a rewriting under way."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.rewriting.rule import Site
from irgym.envs.graph.rewriting.sites import Sites
from irgym.envs.graph.running.session_options import OFF

Candidates: TypeAlias = Mapping[tuple[int, str], tuple[Site, ...]]
"""Sites by the place of a rule and the name of a candidate."""

EVERYWHERE = "*"
"""The name of all sites of a rule together; no value's name in a schedule has this character."""


@dataclass(frozen=True, eq=False)
class GraphState:
    """A graph, where rules apply to it, and how its schedule ended.

    States are equal where whatever follows is, too: they have the same nodes by the same names, the same
    candidates in the same order, and ended alike.

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

    @cached_property
    def candidates(self) -> Candidates:
        """Where rules apply, by the rule's place and the site's name, in the order of the mask.

        For a rule with several sites, all of them together are a candidate too, named `EVERYWHERE`.
        """
        found: dict[tuple[int, str], tuple[Site, ...]] = {}
        by_rule: dict[int, list[Site]] = {}
        for sites in () if self.stopped else self.sites.values():
            for rule, site in sites:
                if (rule, site.name) not in found:
                    found[rule, site.name] = (site,)
                    by_rule.setdefault(rule, []).append(site)
        several = {
            (rule, EVERYWHERE): tuple(by_rule[rule]) for rule in sorted(by_rule) if len(by_rule[rule]) > 1
        }
        return {**found, **several}

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, GraphState)
            and (self.digest, self.ending) == (other.digest, other.ending)
            and self.graph.nodes == other.graph.nodes
            and list(self.candidates) == list(other.candidates)
        )

    def __hash__(self) -> int:
        return hash((self.digest, self.ending))
