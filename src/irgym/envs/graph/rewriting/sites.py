"""Sites of rules in a graph, updated incrementally from one rewrite to the next."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import compress
from operator import is_not
from typing import TypeAlias

from irgym.envs.graph.ir.graph import Graph, Rewrite
from irgym.envs.graph.ir.node import Node
from irgym.envs.graph.rewriting.affected import Affected
from irgym.envs.graph.rewriting.failures import Failures
from irgym.envs.graph.rewriting.matching import fits, has_twin, may_be, wants_twin
from irgym.envs.graph.rewriting.rule import Rule, Site

Key: TypeAlias = tuple[int, str]
"""Index of a rule and name of a site."""

Found: TypeAlias = tuple[Key, tuple[Site]]
"""A site with its key; alone in a tuple, so that `dict` makes a mapping of candidates of these."""

Sites: TypeAlias = Mapping[str, tuple[Found, ...]]
"""By name of each node: the sites whose patterns begin there, in the order of the rules."""

REMEMBERED = 5_000
"""Limit of the neighbourhoods whose rules are remembered; each takes a kilobyte or two."""


class Finder:
    """Finds the sites of rules.

    Args:
        rules: The rules.
        block: Channels of a block in the layout of ONNX Runtime's nchwc operators.
        failures: Records failures of rules; None for a new record.
    """

    def __init__(self, rules: Sequence[Rule], block: int, failures: Failures | None = None) -> None:
        self.rules = tuple(rules)
        self.block = block
        self.failures = failures or Failures()
        self._firsts = [rule.pattern[0].node for rule in self.rules]
        anchors = [rule.anchors for rule in self.rules]
        self._any = [place for place, operators in enumerate(anchors) if operators is None]
        self._beginning = {
            operator: [
                place for place, operators in enumerate(anchors) if operators is None or operator in operators
            ]
            for operator in {operator for operators in anchors for operator in operators or ()}
        }
        self._twins = frozenset(place for place, rule in enumerate(self.rules) if wants_twin(rule.pattern))
        self._fitting: dict[tuple[str, tuple[str, ...], frozenset[str]], frozenset[int]] = {}
        patterns = {place: rule.pattern for place, rule in enumerate(self.rules)}
        self._affected = Affected(patterns)
        self._confined = Affected(patterns, {place: rule.free for place, rule in enumerate(self.rules)})
        self._entangled = Affected(
            {place: patterns[place] for place in patterns if self.rules[place].entangled}
        )
        self._alone: dict[int, Finder] = {}
        far = {place: patterns[place] for place in patterns if self.rules[place].far}
        self._resized = Affected(far) if far else None

    def alone(self, place: int) -> "Finder":
        """Return a finder for a single rule."""
        if place not in self._alone:
            self._alone[place] = Finder([self.rules[place]], self.block, self.failures)
        return self._alone[place]

    def all(self, graph: Graph) -> Sites:
        """Return all sites of a graph."""
        return {
            name: tuple(self._at(graph, name, self._beginning.get(node.operator, self._any)))
            for name, node in graph.nodes.items()
        }

    def after(
        self, sites: Sites, before: Graph, rewrites: Sequence[Rewrite], graph: Graph, *, near: bool = False
    ) -> Sites:
        """Return all sites of a rewritten graph, matching again only where the rewrites may matter.

        Args:
            sites: Sites of the graph before.
            before: The graph before.
            rewrites: The rewrites between the graphs.
            graph: The graph after.
            near: Whether to keep sites that only distant rewrites rule out (`Rule.apart`).
        """
        gone, come = _without(before, graph), _without(graph, before)
        changed = self._changed(before, graph, gone, come)
        # A replacement of several nodes may make each result depend on all operands.
        entangled = not near and (
            len(rewrites) > 1 or any(len(before.remade(rewrite)) > 1 for rewrite in rewrites)
        )
        found: dict[str, tuple[Found, ...]] = dict.fromkeys(graph.nodes, ())
        found.update(sites)
        for name in gone:
            if name not in graph.nodes:
                del found[name]
        for name in graph.nodes if entangled else filter(changed.__contains__, graph.nodes):
            places, left = changed.get(name, ()), found[name]
            if places:
                left = [item for item in left if _rule(item) not in places]
            if entangled:
                # A distant rewrite may have made one root depend on another.
                left = [item for item in left if self.rules[_rule(item)].apart(graph, item[1][0])]
            if places:
                left = sorted([*left, *self._at(graph, name, places)], key=_rule)
            found[name] = tuple(left)
        return found

    def _at(self, graph: Graph, name: str, places: Iterable[int]) -> Iterator[Found]:
        """Return the sites of some rules at a node."""
        node = graph.nodes[name]
        wanted = self._of_operators(graph, node).intersection(places)
        if not wanted.isdisjoint(self._twins) and not has_twin(graph, node):
            wanted = wanted - self._twins
        for place in sorted(wanted):
            if may_be(graph, self._firsts[place], node):
                for site in self.rules[place].sites(graph, node, self.block, failures=self.failures):
                    yield (place, site.name), (site,)

    def _of_operators(self, graph: Graph, node: Node) -> frozenset[int]:
        """Return the rules that the operators of a node and of those around it permit, remembered."""
        nodes, users, producers = graph.nodes, graph.users, graph.producers
        makers = [producers.get(value) for value in node.inputs]
        operators = (
            node.operator,
            tuple(["" if maker is None else nodes[maker].operator for maker in makers]),
            frozenset([nodes[user].operator for value in node.results for user in users.get(value, ())]),
        )
        found = self._fitting.get(operators)
        if found is None:
            if len(self._fitting) >= REMEMBERED:
                self._fitting.clear()
            places = self._beginning.get(node.operator, self._any)
            found = frozenset(place for place in places if fits(self.rules[place].pattern, *operators[1:]))
            self._fitting[operators] = found
        return found

    def _changed(
        self, before: Graph, graph: Graph, gone: Collection[str], come: Collection[str]
    ) -> dict[str, set[int]]:
        """Return the indices of the rules whose sites may have changed, by name of the first node.

        Args:
            before: The graph before.
            graph: The graph after.
            gone: Names of the nodes that the graph no longer has, or that are others now.
            come: Names of the nodes that are new, or others than before.
        """
        used = {value for name in come for value in graph.nodes[name].operands}
        used.update(value for name in gone for value in before.nodes[name].operands)
        used.update(set(before.outputs).symmetric_difference(graph.outputs))
        makers = {graph.producers[value] for value in used if value in graph.producers}
        found: dict[str, set[int]] = {}
        self._affected.by(graph, come, found)
        self._affected.by(before, gone, found)
        # Other nodes gained or lost users: that matters where a rule allows none but those it matches.
        self._confined.by(graph, makers.difference(come), found)
        # Rules that replace several values depend on how users lead from one of these to another.
        made = {value for name in come for value in graph.nodes[name].results}
        near = makers.union(graph.producers[value] for value in made)
        near.update(user for value in made for user in graph.users.get(value, ()))
        self._entangled.by(graph, near, found)
        self._entangled.by(before, [name for name in near if name in before.nodes], found)
        if self._resized is not None:
            self._resized.by(graph, set(_resized(before, graph)), found)
        return found


def _rule(found: Found) -> int:
    """Return the index of the rule of a site."""
    return found[0][0]


def _without(graph: Graph, other: Graph) -> set[str]:
    """Return the names of the nodes of a graph that are not in another."""
    return set(_differing(graph.nodes, other.nodes))


def _differing(ours: Mapping[str, object], theirs: Mapping[str, object]) -> Iterator[str]:
    """Return the names for which the second mapping does not have the object of the first, in order."""
    return compress(ours, map(is_not, ours.values(), map(theirs.get, ours)))


def _resized(before: Graph, graph: Graph) -> Iterator[str]:
    """Return the names of the nodes that make or use values whose known size changed."""
    for value in _differing(graph.sizes, before.sizes):
        yield from graph.users.get(value, ())
        if value in graph.producers:
            yield graph.producers[value]
