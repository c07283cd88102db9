"""Queries of an e-graph from the pattern of a rule.

A query has a fixed number of operators and values. A pattern therefore becomes a query for each way to swap,
omit or repeat its operands, as far as operators with such numbers of operands occur. Queries find too much
rather than too little: the rule checks attributes, numbers and conditions of each match.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TypeAlias

from irgym.envs.graph.rewriting.language import ABSENT, Any_, Operator, Statement, Term

MOST = 16
"""Greatest number of operands or results for which a pattern with any number of them is tried."""

VARIANTS = 256
"""Greatest number of queries for a pattern."""

Arities: TypeAlias = frozenset[tuple[int, int]]
"""Pairs of numbers of operands and of results."""


@dataclass(frozen=True)
class Atom:
    """An operator in a query.

    Attributes:
        operator: The operator, a class of operators, or `ANY`, as in patterns.
        inputs: Variables.
        outputs: Variables; empty for an unused result.
    """

    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


Query: TypeAlias = tuple[Atom, ...]
"""Atoms; the first is the first statement of the pattern."""


@dataclass(frozen=True)
class _Partial:
    """The beginning of a query.

    Attributes:
        atoms: Its atoms.
        names: Variables by name in the pattern.
        fresh: Number of variables without a name.
    """

    atoms: tuple[Atom, ...] = ()
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    fresh: int = 0

    def bind(self, name: str, variables: tuple[str, ...]) -> "_Partial":
        return replace(self, names={**self.names, name: variables})

    def without(self, names: Mapping[str, str]) -> "_Partial":
        return replace(
            self, names={name: variables for name, variables in self.names.items() if name not in names}
        )

    def unnamed(self) -> "tuple[str, _Partial]":
        return f"unnamed{self.fresh}", replace(self, fresh=self.fresh + 1)


def queries(pattern: Sequence[Statement], arities: Callable[[str], Arities]) -> list[Query]:
    """Return the queries of a pattern.

    Args:
        pattern: The pattern.
        arities: Returns the arities with which an operator, a class or any operator occurs.
    """
    found = (partial.atoms for partial in _Translation(arities).statements(pattern, _Partial()))
    return list(dict.fromkeys(islice(found, VARIANTS)))


@dataclass(frozen=True)
class _Translation:
    arities: Callable[[str], Arities]

    def statements(self, pattern: Sequence[Statement], partial: _Partial) -> Iterator[_Partial]:
        if not pattern:
            yield partial
            return
        first = pattern[0]
        for longer in self._each(first, partial) if first.each else self._statement(first, partial):
            yield from self.statements(pattern[1:], longer)

    def _statement(self, statement: Statement, partial: _Partial) -> Iterator[_Partial]:
        wanted = [Any_(name, rest=name in statement.several) for name in statement.outputs]
        for count, results in sorted(self.arities(statement.node.operator)):
            for outputs, bound in self._fit(wanted, results, partial):
                yield from self._node(statement.node, count, outputs, bound)

    def _each(self, statement: Statement, partial: _Partial) -> Iterator[_Partial]:
        """Return the queries for a list of nodes; the number of their values must be known."""
        items = {**dict(statement.each)}
        [output] = statement.outputs
        known = [partial.names[name] for name in (output, *items.values()) if name in partial.names]
        if (
            not known
            or any(len(variables) != len(known[0]) for variables in known)
            or not 0 < len(known[0]) <= MOST
        ):
            return
        for name in (output, *items.values()):
            partial = partial.bind(name, partial.names.get(name, _numbered(name, len(known[0]))))

        def rest(place: int, before: _Partial) -> Iterator[_Partial]:
            if place == len(known[0]):
                yield before
                return
            for item, several in items.items():
                before = before.bind(item, (before.names[several][place],))
            for count, results in sorted(self.arities(statement.node.operator)):
                if results == 1:
                    outputs = (before.names[output][place],)
                    for after in self._node(statement.node, count, outputs, before):
                        yield from rest(place + 1, after.without(items))

        yield from rest(0, partial)

    def _node(
        self, pattern: Operator, count: int, outputs: tuple[str, ...], partial: _Partial
    ) -> Iterator[_Partial]:
        place = len(partial.atoms)
        turned = [pattern.operands[::-1]] if pattern.commutative and count == 2 else []
        for operands in (pattern.operands, *turned):
            for inputs, bound in self._fit(operands, count, partial):
                atoms = bound.atoms
                atom = Atom(pattern.operator, inputs, outputs)
                yield replace(bound, atoms=(*atoms[:place], atom, *atoms[place:]))

    def _fit(
        self, terms: Sequence[Term], count: int, partial: _Partial
    ) -> Iterator[tuple[tuple[str, ...], _Partial]]:
        """Return the ways to match terms with a number of values."""
        if not terms:
            if count == 0:
                yield (), partial
            return
        term, rest = terms[0], terms[1:]
        if isinstance(term, Any_) and term.rest:
            known = partial.names.get(term.name)
            sizes = range(min(count, MOST) + 1) if rest else [count]
            for size in [len(known)] if known is not None else sizes:
                if size <= count:
                    variables = known if known is not None else _numbered(term.name, size)
                    yield from self._after(variables, rest, count, partial.bind(term.name, variables))
        elif isinstance(term, Any_):
            if count == 0:
                if term.optional or term.name == ABSENT:
                    yield from self._fit(rest, 0, partial)
            elif term.name == ABSENT:
                yield from self._after(("",), rest, count, partial)
            else:
                variables = partial.names.get(term.name, (term.name,))
                yield from self._after(variables, rest, count, partial.bind(term.name, variables))
        elif count:
            variable, partial = partial.unnamed()
            inner = [partial]
            if isinstance(term, Operator):
                inner = [
                    bound
                    for operands, results in sorted(self.arities(term.operator))
                    if results == 1
                    for bound in self._node(term, operands, (variable,), partial)
                ]
            for bound in inner:
                yield from self._after((variable,), rest, count, bound)

    def _after(
        self, variables: tuple[str, ...], rest: Sequence[Term], count: int, partial: _Partial
    ) -> Iterator[tuple[tuple[str, ...], _Partial]]:
        for others, bound in self._fit(rest, count - len(variables), partial):
            yield (*variables, *others), bound


def _numbered(name: str, count: int) -> tuple[str, ...]:
    return tuple(f"{name}.{place}" for place in range(count))
