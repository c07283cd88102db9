"""Where a pattern occurs in a graph."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Attribute, Node
from irgym.envs.graph.ir.weights import Literal
from irgym.envs.graph.rewriting.defaults import default_of
from irgym.envs.graph.rewriting.language import (
    ABSENT,
    Any_,
    Named,
    Number,
    Operator,
    Statement,
    Term,
)

Bound: TypeAlias = str | tuple[str, ...]


@dataclass(slots=True)  # nothing changes one, but frozen ones take twice as long to make
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

    def without(self, names: Iterable[str]) -> "Match":
        """Return this match without what some names stand for."""
        left = {name: value for name, value in self.values.items() if name not in names}
        return Match(left, self.attributes, self.nodes, self.found)

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


def may_be(graph: Graph, pattern: Operator, one: Node) -> bool:
    """Say quickly whether operators allow that a node and those that make its operands are a pattern's."""
    if pattern.operators is not None and one.operator not in pattern.operators:
        return False
    if not pattern.parts:
        return True
    orders = (one.inputs, one.inputs[::-1]) if pattern.commutative else (one.inputs,)
    return any(
        all(
            place < len(inputs)
            and (maker := graph.producer(inputs[place])) is not None
            and may_be(graph, part, maker)
            for place, part in pattern.parts
        )
        for inputs in orders
    )


def _others(graph: Graph, pattern: Sequence[Statement], match: Match) -> Iterator[Match]:
    if not pattern:
        yield match
        return
    if pattern[0].each:
        found = _each(graph, pattern[0], match)
        if found is not None:
            yield from _others(graph, pattern[1:], found)
        return
    for one in _candidates(graph, pattern[0], match):
        for longer in _statement(graph, pattern[0], one, match):
            yield from _others(graph, pattern[1:], longer)


def _candidates(graph: Graph, statement: Statement, match: Match) -> Iterator[Node]:
    """Return the nodes that a statement may describe: they make or use a value that is known."""
    for output in statement.outputs:
        for value in _known(match, output)[:1]:
            maker = graph.producer(value)
            if maker is not None:
                yield maker
            return
    for operand in statement.node.operands:
        for value in _known(match, operand.name)[:1] if isinstance(operand, Any_) else ():
            for name in graph.users.get(value, ()):
                yield graph.nodes[name]
            return
    if not any(name in match.values for name in (*statement.outputs, *statement.operands)):
        raise ValueError(f"{statement.node.operator} shares no value with the statements before it")


def _known(match: Match, name: str) -> tuple[str, ...]:
    value = match.values.get(name, ())
    return (value,) if isinstance(value, str) else value


def _each(graph: Graph, statement: Statement, match: Match) -> Match | None:
    """Return the match with the nodes of a statement that has one for each of several values."""
    [output] = statement.outputs
    items = dict(statement.each)
    by_output = output in match.values
    given = match.values.get(output) if by_output else match.values.get(statement.each[0][1])
    if not isinstance(given, tuple) or not given:
        return None
    columns: dict[str, list[str]] = {name: [] for name in (*items, output)}
    for value in given:
        if by_output:
            maker = graph.producer(value)
            nodes = [] if maker is None else [maker]
            start = match
        else:
            nodes = [graph.nodes[name] for name in graph.users.get(value, ())]
            start = match.bind(statement.each[0][0], value)
        found = next(
            ((one, longer) for one in nodes if start for longer in _one_of(graph, statement, one, start)),
            None,
        )
        if found is None:
            return None
        one, longer = found
        columns[output].append(one.outputs[0])
        for item in items:
            columns[item].append(str(longer.values[item]))
        match = longer.without(items)
    bound: Match | None = match
    for name, values in {**{items[item]: columns[item] for item in items}, output: columns[output]}.items():
        bound = bound and bound.bind(name, tuple(values))
    return bound


def _one_of(graph: Graph, statement: Statement, one: Node, match: Match) -> Iterator[Match]:
    """Return the matches of one node of several, which has the operator and attributes of those before it."""
    before = match.nodes.get(statement.node.name) if statement.node.name else None
    if len(one.outputs) != 1:
        return
    if before and (before.operator, before.attributes) != (one.operator, one.attributes):
        return
    yield from _node(graph, statement.node, one, match)


def _statement(graph: Graph, statement: Statement, one: Node, match: Match) -> Iterator[Match]:
    for bound in _operands(graph, statement.terms, one.outputs, match):
        yield from _node(graph, statement.node, one, bound)


def _node(graph: Graph, pattern: Operator, one: Node, match: Match) -> Iterator[Match]:
    if pattern.operators is not None and one.operator not in pattern.operators:
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
    if pattern.commutative and len(one.inputs) == 2 and one.inputs[0] != one.inputs[1]:
        yield from _operands(graph, pattern.operands, one.inputs[::-1], met)


def _operands(graph: Graph, terms: Sequence[Term], values: Sequence[str], match: Match) -> Iterator[Match]:
    known: dict[str, Bound] | None = None
    done = 0
    # Terms that match in one way only, which most are, need no generator each.
    for term in terms:
        if not isinstance(term, Any_) or term.rest or term.name == ABSENT:
            break
        value = values[done] if done < len(values) else ""
        if not value and not term.optional:
            return
        own = (match.values if known is None else known).get(term.name)
        if own is None:
            known = known if known is not None else dict(match.values)
            known[term.name] = value
        elif own != value:
            return
        done += 1
    if known is not None:
        match = Match(known, match.attributes, match.nodes, match.found)
    terms, values = terms[done:], values[done:]
    if not terms:
        if not values:
            yield match
        return
    term, rest = terms[0], terms[1:]
    if isinstance(term, Any_) and term.name == ABSENT:
        if not values or not values[0]:
            yield from _operands(graph, rest, values[1:], match)
        return
    if isinstance(term, Any_) and term.rest:
        counts = range(len(values) + 1) if rest else [len(values)]
        for count in counts:
            bound = match.bind(term.name, tuple(values[:count]))
            if bound is not None:
                yield from _operands(graph, rest, values[count:], bound)
        return
    if values and values[0] and not isinstance(term, Any_):
        for bound in _term(graph, term, values[0], match):
            yield from _operands(graph, rest, values[1:], bound)


def _term(graph: Graph, term: Number | Operator, value: str, match: Match) -> Iterator[Match]:
    if isinstance(term, Number):
        weight = graph.weights.get(value)
        if isinstance(weight, Literal) and weight.type.size == 1 and float(weight.array.item()) == term.value:
            yield match
    else:
        maker = graph.producer(value)
        if maker is not None and maker.outputs[0] == value:
            yield from _node(graph, term, maker, match)
