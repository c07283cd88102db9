"""Which occurrences of patterns a changed node may concern: the way back from it to a pattern's first node.

A pattern is matched from its first node on, along operands and users. A node can be met in a place of the
pattern only if its operator fits there, and only by way of nodes whose operators fit theirs. So from a node
that changed, the same way back leads to all first nodes of occurrences that may come or go with it, however
many others use the same values.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Node
from irgym.envs.graph.rewriting.language import Any_, Operator, Statement

Way: TypeAlias = Literal["user", "maker", "sibling"]
"""Where the next node stands: it uses a result, makes an operand, or shares an operand."""

Operators: TypeAlias = frozenset[str] | None


@dataclass(frozen=True)
class Back:
    """A step back towards the first node of a pattern.

    Attributes:
        way: Where the node before stands.
        operators: What operators it may have; None for any.
    """

    way: Way
    operators: Operators


@dataclass(eq=False)
class _Trie:
    """Ways back that begin alike, and the rules whose patterns begin where a way ends."""

    rules: set[int] = field(default_factory=set[int])
    following: dict[Back, "_Trie"] = field(default_factory=dict[Back, "_Trie"])

    def add(self, way: Sequence[Back], rule: int) -> None:
        here = self
        for step in way:
            here = here.following.setdefault(step, _Trie())
        here.rules.add(rule)


class Concerned:
    """Finds what changed nodes concern.

    Args:
        patterns: By the places of their rules.
    """

    def __init__(self, patterns: Mapping[int, Sequence[Statement]]) -> None:
        self._by_operator: dict[str, _Trie] = {}
        self._of_any = _Trie()
        for rule, pattern in patterns.items():
            for operators, way in ways_back(pattern):
                for operator in operators or ():
                    self._by_operator.setdefault(operator, _Trie()).add(way, rule)
                if operators is None:
                    self._of_any.add(way, rule)

    def by(self, graph: Graph, changed: Iterable[str], found: dict[str, set[int]]) -> None:
        """Add to `found`, by the names of nodes, the places of the rules that may match anew from there on.

        Args:
            graph: The graph.
            changed: Names of nodes of it.
            found: What is added to.
        """
        # Those of one operator go the same ways, and where several lead is where each of them does.
        alike: dict[str, dict[str, Node]] = {}
        for name in changed:
            one = graph.nodes[name]
            alike.setdefault(one.operator, {})[name] = one
        for operator, nodes in alike.items():
            if operator in self._by_operator:
                _walk(graph, self._by_operator[operator], nodes, found)
        _walk(
            graph, self._of_any, {name: one for nodes in alike.values() for name, one in nodes.items()}, found
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
            reached = {name: one for name, one in reached.items() if one.operator in wanted}
        if reached:
            _walk(graph, following, reached, found)


def _around(graph: Graph, nodes: Mapping[str, Node], way: Way) -> dict[str, Node]:
    names: set[str] = set()
    for one in nodes.values():
        if way == "user":
            for value in one.outputs:
                names.update(graph.users.get(value, ()))
        elif way == "maker":
            names.update(graph.producers[value] for value in one.operands if value in graph.producers)
        else:
            for value in one.operands:
                names.update(graph.users.get(value, ()))
    return {name: graph.nodes[name] for name in names}


def ways_back(pattern: Sequence[Statement]) -> list[tuple[Operators, tuple[Back, ...]]]:
    """Return for each node of a pattern what operators it may have, and the ways back to the first node.

    A node has several where it depends on the operands that are left out which way leads to it.
    """
    found: list[tuple[Operators, tuple[Back, ...]]] = []
    makers: dict[str, list[_Place]] = {}
    users: dict[str, list[_Place]] = {}

    def place(node: Operator, ways: list[tuple[Back, ...]], names: Mapping[str, str]) -> "_Place":
        here = _Place(node.operators, ways)
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
        here = place(statement.node, list(dict.fromkeys(ways)), dict(statement.each))
        for output in statement.outputs:
            makers.setdefault(output, []).append(here)
    return found


@dataclass
class _Place:
    """A node of a pattern.

    Attributes:
        operators: What operators it may have.
        ways: The ways from it back to the first node.
    """

    operators: Operators
    ways: list[tuple[Back, ...]]

    def onwards(self, way: Way) -> list[tuple[Back, ...]]:
        """Return the ways back of a node from which this one is a step away."""
        return [(Back(way, self.operators), *rest) for rest in self.ways]


def _links(
    statement: Statement, makers: Mapping[str, list[_Place]], users: Mapping[str, list[_Place]]
) -> Iterable[tuple[_Place, Way]]:
    """Return the nodes before that share a value with a statement's node, and where they stand to it."""
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
