"""A rewrite rule, and where it applies."""

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import CodeType
from typing import Any
from urllib.parse import quote

import numpy as np

from irgym.envs.graph.ir.graph import Attribute, Graph, Node, Rewrite
from irgym.envs.graph.rules.building import BUILTINS, Builder, Value, names_of
from irgym.envs.graph.rules.language import ABSENT, Any_, Operator, Statement, Term, parse_pattern
from irgym.envs.graph.rules.matching import Match, matches


@dataclass(frozen=True)
class Sample:
    """An instance of a pattern.

    Attributes:
        values: Arrays for the values that the pattern's nodes are given, in float64 where they are no indices;
            several for a name that stands for several, None for one that is left out.
        weights: Names of those that are weights.
        attributes: What the names of attributes' values stand for.
        nodes: More attributes of nodes, by the names that they are called by.
        counts: How many outputs names stand for that stand for several.
    """

    values: Mapping[str, Any]
    weights: frozenset[str] = frozenset()
    attributes: Mapping[str, Attribute] = field(default_factory=dict[str, Attribute])
    nodes: Mapping[str, Mapping[str, Attribute]] = field(default_factory=dict[str, Mapping[str, Attribute]])
    counts: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True)
class Site:
    """A place where a rule applies.

    Attributes:
        name: The values that are made anew, for schedules: it stays the same as long as the place is there.
        match: What the rule's names stand for.
        removed: Names of the nodes that go.
    """

    name: str
    match: Match
    removed: tuple[str, ...]


@dataclass(frozen=True)
class Rule:
    """A rewrite rule. Its language: `irgym.envs.graph.rules.language` and `building`.

    Attributes:
        name: Lower-case words joined by hyphens.
        before: What is looked for.
        after: What makes the values of `before` that nothing in `before` uses.
        sample: Returns a random instance of the pattern, which the rule applies to, to verify it with.
        where: A condition on what is found.
        shared: Names of nodes that others may use too: they stay.
        source: Where the rule is from.
    """

    name: str
    before: str
    after: str
    sample: Callable[[np.random.Generator], Sample]
    where: str = "True"
    shared: tuple[str, ...] = ()
    source: str = ""

    @cached_property
    def pattern(self) -> tuple[Statement, ...]:
        """What is looked for."""
        return parse_pattern(self.before)

    @cached_property
    def anchor(self) -> str:
        """The operator that the first statement of the pattern describes."""
        return self.pattern[0].node.operator

    @cached_property
    def roots(self) -> tuple[str, ...]:
        """The values that `after` makes: those that nothing in `before` uses, and others that it names.

        The rule applies only where the others are needed elsewhere.
        """
        used = {name for statement in self.pattern for name in _operands(statement.node)} - self._assigned
        return tuple(
            name
            for statement in self.pattern
            for name in statement.outputs
            if name not in used and name != ABSENT
        )

    @cached_property
    def _remade(self) -> frozenset[str]:
        """The roots that `before` uses itself."""
        used = {name for statement in self.pattern for name in _operands(statement.node)}
        return frozenset(self.roots) & used

    @cached_property
    def _assigned(self) -> frozenset[str]:
        """The names that `after` gives values."""
        return frozenset(
            one.id
            for one in ast.walk(ast.parse(self.after))
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
        )

    @cached_property
    def _where(self) -> CodeType:
        return compile(self.where, self.name, "eval")

    @cached_property
    def _after(self) -> CodeType:
        return compile(self.after, self.name, "exec")

    @cached_property
    def _forwards(self) -> frozenset[str]:
        """The roots that `after` gives a value of the match, and makes no node for."""
        lines = [line for line in ast.parse(self.after).body if isinstance(line, ast.Assign)]
        return frozenset(
            target.id
            for line in lines
            for target in line.targets
            if isinstance(target, ast.Name) and isinstance(line.value, ast.Name) and target.id in self.roots
        )

    def sites(self, graph: Graph, anchor: Node) -> Iterator[Site]:
        """Return the places in a graph at which the rule applies and whose first node is `anchor`."""
        seen: set[str] = set()
        for match in matches(graph, self.pattern, anchor):
            site = self._site(graph, match)
            if site is not None and site.name not in seen:
                seen.add(site.name)
                yield site

    def _site(self, graph: Graph, match: Match) -> Site | None:
        bound = [match.values[name] for name in self.roots]
        roots = tuple(value for one in bound for value in ([one] if isinstance(one, str) else one))
        kept = {match.nodes[name].name for name in self.shared}
        removed = tuple(name for name in match.found if name not in kept)
        if any(graph.is_output(str(match.values[name])) for name in self._forwards):
            return None
        if any(graph.producers.get(value) in removed for value in self._given(match)):
            return None
        for name in self._remade:
            value = str(match.values[name])
            if not graph.is_output(value) and all(user in removed for user in graph.users[value]):
                return None
        for name in removed:
            for value in graph.nodes[name].results:
                if value in roots:
                    continue
                if graph.is_output(value) or any(
                    user not in match.found for user in graph.users.get(value, ())
                ):
                    return None
        values = [
            one for many in match.values.values() for one in ([many] if isinstance(many, str) else many)
        ]
        if any(value and value not in graph.types for value in values):
            return None
        if self.where != "True" and not eval(
            self._where, {**names_of(graph, match), "__builtins__": BUILTINS}
        ):
            return None
        if len({graph.producers[value] for value in roots}) > 1:
            users = {user for value in roots for user in graph.users.get(value, ())} - set(removed)
            if any(graph.reaches(user, removed) for user in users):
                return None
        heads = [str(one) if isinstance(one, str) else one[0] for one in bound]
        return Site("+".join(quote(one, safe="/.:_-") for one in heads), match, tuple(sorted(removed)))

    def _given(self, match: Match) -> Iterator[str]:
        """Return the values that the pattern's nodes are given from outside of it."""
        made = {name for statement in self.pattern for name in statement.outputs}
        for name, bound in match.values.items():
            if name not in made:
                yield from [bound] if isinstance(bound, str) else bound

    def rewrite(self, graph: Graph, site: Site, block: int) -> Rewrite:
        """Return what the rule makes of a place.

        Args:
            graph: The graph.
            site: One of its `sites`.
            block: Channels of a block in the layout of ONNX Runtime's nchwc operators.
        """
        builder = Builder(graph, block)
        names = builder.run(self._after, names_of(graph, site.match))
        roots: dict[str, Value] = {}
        for name in self.roots:
            bound, made = site.match.values[name], names[name]
            if isinstance(bound, str):
                roots[bound] = made
            else:
                roots.update(zip(bound, made, strict=True))
        return builder.rewrite(site.removed, roots, next(iter(roots)))


def _operands(pattern: Operator) -> Iterator[str]:
    """Return the names of the values that a pattern's nodes use."""
    for term in pattern.operands:
        yield from _names(term)


def _names(term: Term) -> Iterator[str]:
    if isinstance(term, Any_):
        yield term.name
    elif isinstance(term, Operator):
        yield from _operands(term)
