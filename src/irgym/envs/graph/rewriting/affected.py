"""Occurrences of patterns that a changed node may affect, found by walking back to the pattern's first node.

Matching starts at the first node of a pattern and follows operands and users. It reaches a node only through
nodes whose operators fit the pattern. Walking the same path backwards from a changed node therefore leads to
the first nodes of all occurrences that may appear or disappear with it, however many other nodes use the same
values.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias

from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Node
from irgym.envs.graph.rewriting.language import Any_, Operator, Statement

Way: TypeAlias = Literal["user", "maker", "sibling"]
"""Relation of the next node: it uses a result, makes an operand, or shares an operand."""

Operators: TypeAlias = frozenset[str] | None


@dataclass(frozen=True)
class Back:
    """A step back towards the first node of a pattern.

    Attributes:
        way: Relation of the previous node.
        operators: Operators that the previous node may have; None for any.
    """

    way: Way
    operators: Operators


@dataclass(eq=False)
class _Trie:
    """Prefix tree of ways back, with the rules whose patterns begin where a way ends."""

    rules: set[int] = field(default_factory=set[int])
    following: dict[Back, "_Trie"] = field(default_factory=dict[Back, "_Trie"])

    def add(self, way: Sequence[Back], rule: int) -> None:
        here = self
        for step in way:
            here = here.following.setdefault(step, _Trie())
        here.rules.add(rule)


class Affected:
    """Finds the nodes and rules that changed nodes affect.

    Args:
        patterns: Patterns by index of their rules.
        free: By index of the rule, values of the pattern that any node may use. Nodes that make only such
            values are left out.
    """

    def __init__(
        self,
        patterns: Mapping[int, Sequence[Statement]],
        free: Mapping[int, Collection[str]] = MappingProxyType({}),
    ) -> None:
        self._by_operator: dict[str, _Trie] = {}
        self._of_any = _Trie()
        for rule, pattern in patterns.items():
            for operators, way in ways_back(pattern, free.get(rule, ())):
                for operator in operators or ():
                    self._by_operator.setdefault(operator, _Trie()).add(way, rule)
                if operators is None:
                    self._of_any.add(way, rule)

    def by(self, graph: Graph, changed: Iterable[str], found: dict[str, set[int]]) -> None:
        """Find the rules whose matches may have changed, and their first nodes.

        Args:
            graph: The graph.
            changed: Names of changed nodes in the graph.
            found: Receives the indices of the rules, by name of the first node.
        """
        # Nodes with the same operator share their ways back, and are walked together.
        alike: dict[str, dict[str, Node]] = {}
        for name in changed:
            node = graph.nodes[name]
            alike.setdefault(node.operator, {})[name] = node
        for operator, nodes in alike.items():
            if operator in self._by_operator:
                _walk(graph, self._by_operator[operator], nodes, found)
        _walk(
            graph,
            self._of_any,
            {name: node for nodes in alike.values() for name, node in nodes.items()},
            found,
        )


def _walk(graph: Graph, trie: _Trie, nodes: Mapping[str, Node], found: dict[str, set[int]]) -> None:
    if trie.rules:
        for name in nodes:
            found.setdefault(name, set()).update(trie.rules)
    around: dict[Way, dict[str, Node]] = {}
    for step, following in trie.following.items():
        if step.way not in around:
            around[step.way] = _around(graph, nodes, step.way)
        reached = around[step.way]
        if step.operators is not None:
            wanted = step.operators
            reached = {name: node for name, node in reached.items() if node.operator in wanted}
        if reached:
            _walk(graph, following, reached, found)


def _around(graph: Graph, nodes: Mapping[str, Node], way: Way) -> dict[str, Node]:
    names: set[str] = set()
    for node in nodes.values():
        if way == "user":
            for value in node.outputs:
                names.update(graph.users.get(value, ()))
        elif way == "maker":
            names.update(graph.producers[value] for value in node.operands if value in graph.producers)
        else:
            for value in node.operands:
                names.update(graph.users.get(value, ()))
    return {name: graph.nodes[name] for name in names}


def ways_back(
    pattern: Sequence[Statement], free: Collection[str] = ()
) -> list[tuple[Operators, tuple[Back, ...]]]:
    """Return the possible operators of each node of a pattern with a way back to the first node.

    A node has several ways where missing operands decide how matching reaches it.

    Args:
        pattern: The pattern.
        free: Names of values; nodes that make no others are left out.
    """
    found: list[tuple[Operators, tuple[Back, ...]]] = []
    makers: dict[str, list[_Place]] = {}
    users: dict[str, list[_Place]] = {}

    def place(
        node: Operator, ways: list[tuple[Back, ...]], names: Mapping[str, str], outputs: Sequence[str] = ()
    ) -> "_Place":
        here = _Place(node.operators, ways)
        if not outputs or any(output not in free for output in outputs):  # no names: inside another term
            found.extend((here.operators, way) for way in ways)
        for term in node.operands:
            if isinstance(term, Operator):
                place(term, here.onwards("user"), names)
            elif isinstance(term, Any_):
                users.setdefault(names.get(term.name, term.name), []).append(here)
        return here

    for number, statement in enumerate(pattern):
        ways: list[tuple[Back, ...]] = [] if number else [()]
        if number:
            for before, way in _links(statement, makers, users):
                ways += before.onwards(way)
        here = place(statement.node, list(dict.fromkeys(ways)), dict(statement.each), statement.outputs)
        for output in statement.outputs:
            makers.setdefault(output, []).append(here)
    return found


@dataclass
class _Place:
    """A node of a pattern.

    Attributes:
        operators: Operators that the node may have; None for any.
        ways: Ways from the node back to the first node.
    """

    operators: Operators
    ways: list[tuple[Back, ...]]

    def onwards(self, way: Way) -> list[tuple[Back, ...]]:
        """Return the ways back of a node that is one step away from this node."""
        return [(Back(way, self.operators), *rest) for rest in self.ways]


def _links(
    statement: Statement, makers: Mapping[str, list[_Place]], users: Mapping[str, list[_Place]]
) -> Iterable[tuple[_Place, Way]]:
    """Return the earlier nodes that share a value with a statement, with their relation to its node."""
    for output in statement.outputs:
        for before in users.get(output, ()):
            yield before, "user"
    items = dict(statement.each)
    for term in statement.node.operands:
        if isinstance(term, Any_):
            value = items.get(term.name, term.name)
            for before in makers.get(value, ()):
                yield before, "maker"
            for before in users.get(value, ()):
                yield before, "sibling"
