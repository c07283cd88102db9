"""Where a pattern occurs in a graph."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from irgym.envs.graph.ir.graph import Attribute, Graph, Node, Opaque
from irgym.envs.graph.ir.weights import Literal
from irgym.envs.graph.rules.defaults import default_of
from irgym.envs.graph.rules.language import Any_, Each, Named, Number, Operator, Statement, Term

Bound: TypeAlias = str | tuple[str, ...]


@dataclass(frozen=True)
class Match:
    """An occurrence of a pattern.

    Attributes:
        values: What each name stands for: a value, empty where it is left out; or several.
        attributes: What the names of attributes' values stand for.
        nodes: The nodes, by the names that they are called by.
        found: The names of all nodes that the pattern describes.
    """

    values: Mapping[str, Bound] = field(default_factory=dict[str, Bound])
    attributes: Mapping[str, Attribute] = field(default_factory=dict[str, Attribute])
    nodes: Mapping[str, Node] = field(default_factory=dict[str, Node])
    found: frozenset[str] = frozenset()

    def bind(self, name: str, value: Bound) -> "Match | None":
        """Return this match with a name for a value; None where it stands for another."""
        known = self.values.get(name)
        if known is not None:
            return self if known == value else None
        return Match({**self.values, name: value}, self.attributes, self.nodes, self.found)

    def note(self, name: str, value: Attribute) -> "Match | None":
        """Return this match with a name for an attribute's value; None where it stands for another."""
        known = self.attributes.get(name)
        if known is not None:
            return self if known == value else None
        return Match(self.values, {**self.attributes, name: value}, self.nodes, self.found)

    def meet(self, one: Node, called: str) -> "Match | None":
        """Return this match with one more node; None where it is part of it already."""
        if one.name in self.found:
            return None
        nodes = {**self.nodes, called: one} if called else self.nodes
        return Match(self.values, self.attributes, nodes, self.found | {one.name})


EMPTY = Match()


def matches(graph: Graph, pattern: Sequence[Statement], anchor: Node) -> Iterator[Match]:
    """Return the occurrences of a pattern whose first statement describes a node.

    Args:
        graph: Where to look.
        pattern: Each statement but the first uses or makes a value that those before it name.
        anchor: The node.
    """
    for match in _statement(graph, pattern[0], anchor, EMPTY):
        yield from _others(graph, pattern[1:], match)


def _others(graph: Graph, pattern: Sequence[Statement], match: Match) -> Iterator[Match]:
    if not pattern:
        yield match
        return
    for one in _candidates(graph, pattern[0], match):
        for longer in _statement(graph, pattern[0], one, match):
            yield from _others(graph, pattern[1:], longer)


def _candidates(graph: Graph, statement: Statement, match: Match) -> Iterator[Node]:
    """Return the nodes that a statement may describe: they make or use a value that is known."""
    for output in statement.outputs:
        first = _first(match.values.get(output))
        if first is not None:
            maker = graph.producer(first)
            if maker is not None:
                yield maker
            return
    for operand in statement.node.operands:
        first = _first(match.values.get(operand.name)) if isinstance(operand, Any_) else None
        if first is not None:
            for name in graph.users.get(first, ()):
                yield graph.nodes[name]
            return
    raise ValueError(f"{statement.node.operator} shares no value with the statements before it")


def _first(bound: Bound | None) -> str | None:
    """Return the value that a name stands for, or the first of several; None where there is none."""
    return bound if isinstance(bound, str) else next(iter(bound or ()), None)


def _statement(graph: Graph, statement: Statement, one: Node, match: Match) -> Iterator[Match]:
    for bound in _outputs(statement, statement.outputs, one.outputs, match):
        yield from _node(graph, statement.node, one, bound)


def _outputs(
    statement: Statement, names: Sequence[str], values: Sequence[str], match: Match
) -> Iterator[Match]:
    if not names:
        if not values:
            yield match
        return
    several = names[0] in statement.rests
    for count in _counts(several, len(names) == 1, len(values)):
        bound = match.bind(names[0], tuple(values[:count]) if several else values[0])
        if bound is not None:
            yield from _outputs(statement, names[1:], values[count:], bound)


def _node(graph: Graph, pattern: Operator, one: Node, match: Match) -> Iterator[Match]:
    if one.operator != pattern.operator:
        return
    met = match.meet(one, pattern.name)
    if met is None:
        return
    for name, wanted in pattern.attributes:
        value = one.attribute(name, default_of(one.operator, name))
        if isinstance(wanted, Named):
            met = None if value is None else met.note(wanted.name, value)
        elif value != wanted:
            met = None
        if met is None:
            return
    yield from _operands(graph, pattern.operands, one.inputs, met)
    if pattern.commutative and one.inputs[0] != one.inputs[1]:
        yield from _operands(graph, pattern.operands, one.inputs[::-1], met)


def _counts(several: bool, last: bool, values: int) -> Sequence[int]:
    """Return how many of some values a name may stand for."""
    if not several:
        return range(1, min(values, 1) + 1)
    return range(values if last else 0, values + 1)


def _operands(graph: Graph, terms: Sequence[Term], values: Sequence[str], match: Match) -> Iterator[Match]:
    if not terms:
        if not values:
            yield match
        return
    term, rest = terms[0], terms[1:]
    if isinstance(term, Each):
        for bound in _each(graph, term.node, values, match):
            yield from _operands(graph, rest, (), bound)
        return
    if isinstance(term, Any_) and term.rest:
        for count in _counts(True, not rest, len(values)):
            bound = match.bind(term.name, tuple(values[:count]))
            if bound is not None:
                yield from _operands(graph, rest, values[count:], bound)
        return
    value = values[0] if values else ""
    if not value and not (isinstance(term, Any_) and term.optional):
        return
    for bound in _term(graph, term, value, match):
        yield from _operands(graph, rest, values[1:], bound)


def _each(graph: Graph, pattern: Operator, values: Sequence[str], match: Match) -> Iterator[Match]:
    """Match operands that are all made in one way; the first way in which each is made counts.

    Their makers are not among the nodes found: others may use them, and they go where nothing does.
    """
    parts: list[Match] = []
    for value in values:
        maker = graph.producer(value)
        found = (
            None
            if maker is None or maker.outputs[0] != value
            else next(_node(graph, pattern, maker, EMPTY), None)
        )
        if found is None:
            return
        parts.append(found)
    if not parts:
        return
    bound: Match | None = match
    for name in parts[0].values:
        bound = bound and bound.bind(name, tuple(str(part.values[name]) for part in parts))
    for name in parts[0].attributes:
        plain = [one for part in parts if not isinstance(one := part.attributes[name], tuple | Opaque)]
        bound = bound.note(name, tuple(plain)) if bound and len(plain) == len(parts) else None
    if bound is not None:
        yield bound


def _term(graph: Graph, term: Term, value: str, match: Match) -> Iterator[Match]:
    if isinstance(term, Any_):
        bound = match.bind(term.name, value)
        if bound is not None:
            yield bound
    elif isinstance(term, Number):
        weight = graph.weights.get(value)
        if isinstance(weight, Literal) and weight.type.size == 1 and float(weight.array.item()) == term.value:
            yield match
    elif isinstance(term, Operator):
        maker = graph.producer(value)
        if maker is not None and maker.outputs[0] == value:
            yield from _node(graph, term, maker, match)
