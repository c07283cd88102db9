"""Sites of rules in a graph, updated incrementally from one rewrite to the next."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import TypeAlias

from irgym.envs.graph.ir.graph import Graph, Rewrite, differing
from irgym.envs.graph.ir.node import Node
from irgym.envs.graph.rewriting.affected import Affected
from irgym.envs.graph.rewriting.failures import Failures
from irgym.envs.graph.rewriting.matching import fits, has_twin, may_be, wants_twin
from irgym.envs.graph.rewriting.rule import Rule, Site

Sites: TypeAlias = Mapping[str, tuple[tuple[int, Site], ...]]
"""By name of a node: pairs of a rule's index and a site whose pattern begins at the node, in order."""


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
        self._fitting: dict[tuple[str, ...], frozenset[int]] = {}
        patterns = {place: rule.pattern for place, rule in enumerate(self.rules)}
        self._affected = Affected(patterns)
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
        found = {
            name: tuple(self._at(graph, name, self._beginning.get(node.operator, self._any)))
            for name, node in graph.nodes.items()
        }
        return {name: sites for name, sites in found.items() if sites}

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
        changed = self._changed(before, graph)
        # A replacement of several nodes may make each result depend on all operands.
        entangled = not near and (
            len(rewrites) > 1 or any(len(before.remade(rewrite)) > 1 for rewrite in rewrites)
        )
        found: dict[str, tuple[tuple[int, Site], ...]] = {}
        for name in graph.nodes:
            places, fresh = changed.get(name), sites.get(name, ())
            if not places and not (entangled and fresh):
                if fresh:
                    found[name] = fresh
                continue
            if places:
                fresh = tuple([pair for pair in fresh if pair[0] not in places])
            if entangled:
                # A distant rewrite may have made one root depend on another.
                fresh = tuple([pair for pair in fresh if self.rules[pair[0]].apart(graph, pair[1])])
            if places:
                new = self._at(graph, name, sorted(places))
                fresh = tuple(sorted([*fresh, *new], key=itemgetter(0)))
            if fresh:
                found[name] = fresh
        return found

    def _at(self, graph: Graph, name: str, places: Iterable[int]) -> Iterator[tuple[int, Site]]:
        """Return the sites of some rules at a node."""
        node = graph.nodes[name]
        fitting = self._of_operators(graph, node)
        if not has_twin(graph, node):
            fitting = fitting - self._twins
        for place in places:
            if place in fitting and may_be(graph, self._firsts[place], node):
                for site in self.rules[place].sites(graph, node, self.block, failures=self.failures):
                    yield place, site

    def _of_operators(self, graph: Graph, node: Node) -> frozenset[int]:
        """Return the rules that the operators of a node and of its operands' producers permit, remembered."""
        makers = [graph.producer(value) for value in node.inputs]
        operators = (node.operator, *["" if maker is None else maker.operator for maker in makers])
        found = self._fitting.get(operators)
        if found is None:
            places = self._beginning.get(node.operator, self._any)
            found = frozenset(place for place in places if fits(self._firsts[place], operators[1:]))
            self._fitting[operators] = found
        return found

    def _changed(self, before: Graph, graph: Graph) -> dict[str, set[int]]:
        """Return the indices of the rules whose sites may have changed, by name of the first node."""
        gone, come = _without(before, graph), _without(graph, before)
        made = {value for name in come for value in graph.nodes[name].results}
        used = {value for name in come for value in graph.nodes[name].operands}
        used.update(value for name in gone for value in before.nodes[name].operands)
        used.update(set(before.outputs).symmetric_difference(graph.outputs))
        near = {graph.producers[value] for value in (*used, *made) if value in graph.producers}
        near.update(user for value in made for user in graph.users.get(value, ()))
        found: dict[str, set[int]] = {}
        self._affected.by(graph, come | near, found)
        self._affected.by(before, gone | {name for name in near if name in before.nodes}, found)
        if self._resized is not None:
            self._resized.by(graph, set(_resized(before, graph)), found)
        return found


def _without(graph: Graph, other: Graph) -> set[str]:
    """Return the names of the nodes of a graph that are not in another."""
    return set(differing(graph.nodes, other.nodes))


def _resized(before: Graph, graph: Graph) -> Iterator[str]:
    """Return the names of the nodes that make or use values whose known size changed."""
    for value in differing(graph.sizes, before.sizes):
        yield from graph.users.get(value, ())
        if value in graph.producers:
            yield graph.producers[value]
