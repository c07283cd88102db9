"""Matching: the occurrences of a pattern in a graph."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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


@dataclass(slots=True)  # never changed, but not frozen: that would take twice as long to create
class Match:
    """An occurrence of a pattern.

    Attributes:
        values: Values of the graph by name in the rule: one (empty for a missing operand) or several.
        attributes: Attribute values by name in the rule.
        nodes: Named nodes by name in the rule.
        found: Names of all matched nodes in the graph.
    """

    values: Mapping[str, Bound] = field(default_factory=dict[str, Bound])
    attributes: Mapping[str, Attribute] = field(default_factory=dict[str, Attribute])
    nodes: Mapping[str, Node] = field(default_factory=dict[str, Node])
    found: frozenset[str] = frozenset()

    def bind(self, name: str, value: Bound) -> "Match | None":
        """Return the match with a name bound to a value; None if it is bound to another value."""
        known = self.values.get(name)
        if known is not None:
            return self if known == value else None
        return Match({**self.values, name: value}, self.attributes, self.nodes, self.found)

    def note(self, name: str, value: Attribute) -> "Match | None":
        """Return the match with a name bound to an attribute value; None if it is bound to another."""
        known = self.attributes.get(name)
        if known is not None:
            return self if known == value else None
        return Match(self.values, {**self.attributes, name: value}, self.nodes, self.found)

    def without(self, names: Iterable[str]) -> "Match":
        """Return the match without the bindings of some names."""
        left = {name: value for name, value in self.values.items() if name not in names}
        return Match(left, self.attributes, self.nodes, self.found)

    def meet(self, node: Node, called: str) -> "Match | None":
        """Return the match with another node; None if the node is already part of it."""
        if node.name in self.found:
            return None
        nodes = {**self.nodes, called: node} if called else self.nodes
        return Match(self.values, self.attributes, nodes, self.found | {node.name})


EMPTY = Match()


def matches(graph: Graph, pattern: Sequence[Statement], anchor: Node) -> Iterator[Match]:
    """Return the occurrences of a pattern at a node.

    Args:
        graph: The graph.
        pattern: Statements; each after the first shares a value with the statements before it.
        anchor: The node that the first statement matches.
    """
    for match in _statement(graph, pattern[0], anchor, EMPTY):
        yield from _others(graph, pattern[1:], match)


def wants_twin(pattern: Sequence[Statement]) -> bool:
    """Say whether the first two statements have the same operands, all that there are."""
    given = pattern[0].node.all_given
    return given is not None and len(pattern) > 1 and pattern[1].node.all_given == given


def has_twin(graph: Graph, node: Node) -> bool:
    """Say whether another node has the same operands."""
    users = graph.users.get(node.inputs[0], ()) if node.inputs else ()
    return len(users) > 1 and any(
        name != node.name and graph.nodes[name].inputs == node.inputs for name in users
    )


def may_be(graph: Graph, pattern: Operator, node: Node) -> bool:
    """Say whether the operators of a node and its producers permit a match: a quick, necessary condition."""
    if pattern.operators is not None and node.operator not in pattern.operators:
        return False
    if not pattern.parts:
        return True
    orders = (node.inputs, node.inputs[::-1]) if pattern.commutative else (node.inputs,)
    return any(
        all(
            place < len(inputs)
            and (maker := graph.producer(inputs[place])) is not None
            and may_be(graph, part, maker)
            for place, part in pattern.parts
        )
        for inputs in orders
    )


def fits(pattern: Sequence[Statement], makers: Sequence[str], users: Collection[str]) -> bool:
    """Say whether the operators around a node permit a match there: a quick, necessary condition.

    Args:
        pattern: A pattern whose first operator fits the node.
        makers: Operators of the producers of the node's operands, empty for none.
        users: Operators of the nodes that use its results.
    """
    for operators in _makers_wanted(pattern):
        if operators.isdisjoint(makers):
            return False
    for operators in _users_wanted(pattern):
        if operators.isdisjoint(users):
            return False
    return _parts_fit(pattern[0].node, makers)


def _makers_wanted(pattern: Sequence[Statement]) -> Iterator[frozenset[str]]:
    """Yield the operators of each statement that makes an operand of the first one."""
    operands = {term.name for term in pattern[0].node.operands if isinstance(term, Any_) and not term.rest}
    for statement in pattern[1:]:
        operators, results = statement.node.operators, set(statement.outputs) - {ABSENT}
        if not statement.each and operators is not None and not operands.isdisjoint(results):
            yield operators


def _users_wanted(pattern: Sequence[Statement]) -> Iterator[frozenset[str]]:
    """Yield the operators of each node of the later statements that uses a result of the first one."""
    results = set(pattern[0].outputs) - pattern[0].several - {ABSENT}
    waiting = [statement.node for statement in pattern[1:] if not statement.each]
    while waiting:
        node = waiting.pop()
        used = {term.name for term in node.operands if isinstance(term, Any_) and not term.rest}
        if node.operators is not None and not results.isdisjoint(used):
            yield node.operators
        waiting += [term for term in node.operands if isinstance(term, Operator)]


def _parts_fit(pattern: Operator, makers: Sequence[str]) -> bool:
    """Say whether the operators of producers fit the operands that are nodes: the first part of `may_be`."""
    orders = (makers, makers[::-1]) if pattern.commutative else (makers,)
    return any(
        all(
            place < len(operators)
            and operators[place]
            and (part.operators is None or operators[place] in part.operators)
            for place, part in pattern.parts
        )
        for operators in orders
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
    for node in _candidates(graph, pattern[0], match):
        if _may_follow(pattern[0].node, node, match):
            for longer in _statement(graph, pattern[0], node, match):
                yield from _others(graph, pattern[1:], longer)


def _may_follow(pattern: Operator, node: Node, match: Match) -> bool:
    """Say whether a node may extend a match: a quick, necessary condition."""
    if node.name in match.found:
        return False
    if pattern.operators is not None and node.operator not in pattern.operators:
        return False
    given = pattern.all_given
    return given is None or match.values.get(given, node.inputs) == node.inputs


def _candidates(graph: Graph, statement: Statement, match: Match) -> Iterator[Node]:
    """Return candidate nodes for a statement: producers or users of a known value."""
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
    """Return the match extended by a statement with a node for each of several values."""
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
            ((node, longer) for node in nodes if start for longer in _one_of(graph, statement, node, start)),
            None,
        )
        if found is None:
            return None
        node, longer = found
        columns[output].append(node.outputs[0])
        for item in items:
            columns[item].append(str(longer.values[item]))
        match = longer.without(items)
    bound: Match | None = match
    for name, values in {**{items[item]: columns[item] for item in items}, output: columns[output]}.items():
        bound = bound and bound.bind(name, tuple(values))
    return bound


def _one_of(graph: Graph, statement: Statement, node: Node, match: Match) -> Iterator[Match]:
    """Return the matches of a node of a list, with the operator and attributes of the nodes before it."""
    before = match.nodes.get(statement.node.name) if statement.node.name else None
    if len(node.outputs) != 1:
        return
    if before and (before.operator, before.attributes) != (node.operator, node.attributes):
        return
    yield from _node(graph, statement.node, node, match)


def _statement(graph: Graph, statement: Statement, node: Node, match: Match) -> Iterator[Match]:
    for bound in _operands(graph, statement.terms, node.outputs, match):
        yield from _node(graph, statement.node, node, bound)


def _node(graph: Graph, pattern: Operator, node: Node, match: Match) -> Iterator[Match]:
    if pattern.operators is not None and node.operator not in pattern.operators:
        return
    met = match.meet(node, pattern.name)
    if met is None:
        return
    for name, wanted in pattern.attributes:
        value = node.attribute(name, default_of(node.operator, name))
        if isinstance(wanted, Named):
            met = None if value is None else met.note(wanted.name, value)
        elif value != wanted:
            met = None
        if met is None:
            return
    yield from _operands(graph, pattern.operands, node.inputs, met)
    if pattern.commutative and len(node.inputs) == 2 and node.inputs[0] != node.inputs[1]:
        yield from _operands(graph, pattern.operands, node.inputs[::-1], met)


def _operands(graph: Graph, terms: Sequence[Term], values: Sequence[str], match: Match) -> Iterator[Match]:
    known: dict[str, Bound] | None = None
    done = 0
    # Most terms match in only one way, and need no generator.
    for term in terms:
        if not isinstance(term, Any_) or term.rest or term.name == ABSENT:
            break
        value = values[done] if done < len(values) else ""
        if not value and not term.optional:
            return
        bound_value = (match.values if known is None else known).get(term.name)
        if bound_value is None:
            known = known if known is not None else dict(match.values)
            known[term.name] = value
        elif bound_value != value:
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
