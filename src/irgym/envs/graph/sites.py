"""Where rules apply in a graph, kept up to date from one rewrite to the next."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

from irgym.envs.graph.ir.graph import Graph, Rewrite
from irgym.envs.graph.rules.rule import Rule, Site

Sites: TypeAlias = Mapping[str, tuple[tuple[int, Site], ...]]
"""By the name of a node: pairs of a rule's place and a site whose pattern begins there."""


class Finder:
    """Finds the sites of some rules.

    Args:
        rules: The rules.
        block: Channels of a block in the layout of ONNX Runtime's nchwc operators.
    """

    def __init__(self, rules: Sequence[Rule], block: int) -> None:
        self.rules = tuple(rules)
        self.block = block
        self._by_operator: dict[str, list[tuple[int, Rule]]] = {}
        self._of_any: list[tuple[int, Rule]] = []
        for place, rule in enumerate(self.rules):
            if rule.anchors is None:
                self._of_any.append((place, rule))
            for operator in rule.anchors or ():
                self._by_operator.setdefault(operator, []).append((place, rule))

    @cached_property
    def _widest(self) -> int:
        return max((rule.size for rule in self.rules), default=0)

    @cached_property
    def _far(self) -> bool:
        return any(rule.far for rule in self.rules)

    def all(self, graph: Graph) -> Sites:
        """Return all sites of a graph."""
        found = {name: tuple(self._at(graph, name, 0)) for name in graph.nodes}
        return {name: sites for name, sites in found.items() if sites}

    def after(self, sites: Sites, before: Graph, rewrite: Rewrite, graph: Graph) -> Sites:
        """Return all sites of a rewritten graph; only those near the rewrite are looked for.

        Args:
            sites: Those of the graph before.
            before: The graph before.
            rewrite: What was done.
            graph: The graph now.
        """
        seeds = _seeds(before, rewrite, graph)
        if self._far:
            seeds.update(_resized(before, graph))
        near = _distances(graph, seeds, self._widest)
        found: dict[str, tuple[tuple[int, Site], ...]] = {}
        for name in graph.nodes:
            known = sites.get(name, ())
            distance = near.get(name)
            if distance is None:
                fresh = known
            else:
                kept = [pair for pair in known if self.rules[pair[0]].size < distance]
                fresh = (*kept, *self._at(graph, name, distance))
            # A rewrite far away may have made one root depend on another.
            fresh = tuple(pair for pair in fresh if self.rules[pair[0]].apart(graph, pair[1]))
            if fresh:
                found[name] = fresh
        return found

    def _at(self, graph: Graph, name: str, distance: int) -> Iterator[tuple[int, Site]]:
        """Return the sites at a node of the rules that look as far as a distance."""
        one = graph.nodes[name]
        for place, rule in (*self._by_operator.get(one.operator, ()), *self._of_any):
            if rule.size >= distance:
                for site in rule.sites(graph, one, self.block):
                    yield place, site


def _seeds(before: Graph, rewrite: Rewrite, graph: Graph) -> set[str]:
    """Return the names of the nodes that are new, or whose operands or users changed."""
    seeds = {one.name for one in rewrite.added}
    gone = before.nodes.keys() - graph.nodes.keys()
    touched: list[str] = [value for one in rewrite.added for value in (*one.operands, *one.results)]
    touched += [value for name in {*gone, *rewrite.removed} for value in _around(before, name)]
    touched += [*rewrite.replaced, *rewrite.replaced.values()]
    for value in touched:
        seeds.update(graph.users.get(value, ()))
        if value in graph.producers:
            seeds.add(graph.producers[value])
    return seeds


def _resized(before: Graph, graph: Graph) -> Iterator[str]:
    """Return the names of the nodes that use values of which another size is known than before."""
    for value, size in graph.sizes.items():
        if before.sizes.get(value) is not size:
            yield from graph.users.get(value, ())


def _around(graph: Graph, name: str) -> Iterable[str]:
    one = graph.nodes[name]
    return (*one.operands, *one.results)


def _distances(graph: Graph, seeds: Iterable[str], limit: int) -> dict[str, int]:
    """Return how many steps nodes are away from the nearest of some nodes, up to a limit."""
    found = {name: 0 for name in seeds if name in graph.nodes}
    frontier = list(found)
    for distance in range(1, limit + 1):
        following: list[str] = []
        for name in frontier:
            one = graph.nodes[name]
            for value in one.operands:
                maker = graph.producers.get(value)
                if maker is not None and maker not in found:
                    found[maker] = distance
                    following.append(maker)
                for user in graph.users[value]:
                    if user not in found:
                        found[user] = distance
                        following.append(user)
            for value in one.results:
                for user in graph.users.get(value, ()):
                    if user not in found:
                        found[user] = distance
                        following.append(user)
        frontier = following
    return found
