"""A rewrite rule, and where it applies."""

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import CodeType
from typing import Any
from urllib.parse import quote

import numpy as np

from irgym.envs.graph.ir.graph import Graph, Rewrite
from irgym.envs.graph.ir.node import Attribute, Node
from irgym.envs.graph.rewriting.building import BUILTINS, Builder, RuleError, Value, names_of, names_used
from irgym.envs.graph.rewriting.constants import UnsoundError, computes, moderate, reassociates
from irgym.envs.graph.rewriting.failures import Failures
from irgym.envs.graph.rewriting.language import (
    ABSENT,
    DOMAINS,
    SINGLE,
    Operator,
    Statement,
    parse_pattern,
)
from irgym.envs.graph.rewriting.matching import Bound, Match, matches

FUSED_PRECISION = "float32"
"""The floating-point type that ONNX Runtime's own operators compute in on a CPU."""


@dataclass(frozen=True)
class Sample:
    """An instance of a pattern.

    Attributes:
        values: Arrays for the values that the pattern's nodes are given, in float64 where they are no
            indices; several for a name that stands for several, None for one that is left out.
        weights: Names of those that are weights.
        attributes: What the names of attributes' values stand for.
        nodes: More attributes of nodes, by the names that they are called by.
        counts: How many outputs names stand for that stand for several.
        operators: The operators of nodes that a class describes, by the names that they are called by.
    """

    values: Mapping[str, Any]
    weights: frozenset[str] = frozenset()
    attributes: Mapping[str, Attribute] = field(default_factory=dict[str, Attribute])
    nodes: Mapping[str, Mapping[str, Attribute]] = field(default_factory=dict[str, Mapping[str, Attribute]])
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    operators: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Site:
    """A place where a rule applies.

    Attributes:
        name: The values that are made anew, for schedules: it stays the same as long as the place is there.
        match: What the rule's names stand for.
        removed: Names of the nodes that go.
        makers: Names of the nodes whose values are made anew.
    """

    name: str
    match: Match
    removed: tuple[str, ...]
    makers: frozenset[str]

    @cached_property
    def members(self) -> tuple[str, ...]:
        """The names of all nodes that the pattern describes."""
        return tuple(sorted(self.match.found))


@dataclass(frozen=True)
class Rule:
    """A rewrite rule. Its language: `irgym.envs.graph.rewriting.language` and `building`.

    Attributes:
        name: Lower-case words joined by hyphens.
        before: What is looked for.
        after: What makes the values of `before` that nothing in `before` uses.
        sample: Returns a random instance of the pattern, which the rule applies to, to verify it with.
        where: A condition on what is found.
        shared: Names of nodes that others may use too: they stay. Where a pattern has any number of nodes,
            the name of what they make.
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
    def anchors(self) -> frozenset[str] | None:
        """The operators that the first statement of the pattern describes; None for any."""
        return self.pattern[0].node.operators

    @cached_property
    def roots(self) -> tuple[str, ...]:
        """The values that `after` makes: those that nothing in `before` uses, and others that it names.

        None of nodes that stay. The rule applies only where the others are needed elsewhere.
        """
        used = self._used - self._assigned
        going = [statement for statement in self.pattern if statement.node.name not in self.shared]
        return tuple(
            name for statement in going for name in statement.outputs if name not in used and name != ABSENT
        )

    @cached_property
    def _used(self) -> frozenset[str]:
        """The values that the pattern's nodes use."""
        return frozenset(name for statement in self.pattern for name in statement.operands)

    @cached_property
    def _remade(self) -> frozenset[str]:
        """The roots that `before` uses itself."""
        return self._used & frozenset(self.roots)

    @cached_property
    def _assigned(self) -> frozenset[str]:
        """The names that `after` gives values."""
        return frozenset(
            one.id
            for one in ast.walk(ast.parse(self.after))
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
        )

    @cached_property
    def _leaves(self) -> frozenset[str]:
        """The values that the pattern's nodes are given from outside of it."""
        return self._used - {name for statement in self.pattern for name in statement.outputs}

    @cached_property
    def size(self) -> int:
        """Number of nodes of the pattern: how far a site's conditions look from its first node."""
        return sum(_count(statement.node) for statement in self.pattern)

    @cached_property
    def _where(self) -> CodeType:
        return compile(self.where, self.name, "eval")

    @cached_property
    def _asked(self) -> frozenset[str]:
        return names_used(self._where)

    @cached_property
    def _after(self) -> CodeType:
        return compile(self.after, self.name, "exec")

    @cached_property
    def _given(self) -> frozenset[str]:
        return names_used(self._after)

    @cached_property
    def moves_products(self) -> bool:
        """Whether it moves, merges or parts products: constant factors must be moderate; see `constants`."""
        return reassociates(self.before, self.after)

    @cached_property
    def _computes(self) -> bool:
        return computes(self.before, self.after)

    @cached_property
    def far(self) -> bool:
        """Whether the condition asks how large elements are, which nodes far away decide."""
        return ".finite" in self.where or ".ordinary" in self.where

    @cached_property
    def _fuses(self) -> bool:
        """Whether `after` makes operators that ONNX Runtime has for one floating-point type."""
        called = [one.func for one in ast.walk(ast.parse(self.after)) if isinstance(one, ast.Call)]
        return any(isinstance(one, ast.Name) and (one.id in DOMAINS or one.id in SINGLE) for one in called)

    def sites(
        self,
        graph: Graph,
        anchor: Node,
        block: int,
        precision: str = FUSED_PRECISION,
        failures: Failures | None = None,
    ) -> Iterator[Site]:
        """Return the places in a graph at which the rule applies and whose first node is `anchor`.

        Args:
            graph: The graph.
            anchor: One of its nodes.
            block: Channels of a block in the layout of ONNX Runtime's nchwc operators.
            precision: The floating-point type that operators of ONNX Runtime's own domains are there for.
            failures: Where failures of the rule are noted, which otherwise are raised.

        Raises:
            RuleError: The condition fails: the rule is wrong.
        """
        seen: set[str] = set()
        for match in matches(graph, self.pattern, anchor):
            try:
                site = self._site(graph, match, block, precision)
            except RuleError as error:
                if failures is None:
                    raise
                failures.note(self.name, anchor.name, error)
                continue
            if site is not None and site.name not in seen:
                seen.add(site.name)
                yield site

    def _site(self, graph: Graph, match: Match, block: int, precision: str) -> Site | None:
        bound = [match.values[name] for name in self.roots]
        roots = tuple(value for one in bound for value in ([one] if isinstance(one, str) else one))
        kept = {one for name in self.shared for one in _makers(graph, match, name)}
        removed = tuple(name for name in match.found if name not in kept)
        given = [value for name in self._leaves for value in _several(match.values.get(name, ()))]
        if any(graph.producers.get(value) in removed for value in given):
            return None
        for value in (value for name in self._remade for value in _several(match.values[name])):
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
        if self._fuses and not _in_precision(graph, values, roots, precision):
            return None
        if self.where != "True" and not self._holds(graph, match, block):
            return None
        heads = [one if isinstance(one, str) else one[0] for one in bound if one]
        name = "+".join(quote(one, safe="/.:_-") for one in heads)
        makers = frozenset(graph.producers[value] for value in roots)
        site = Site(name, match, tuple(sorted(removed)), makers)
        return site if self.apart(graph, site) and self._sound(graph, match, block) else None

    def _sound(self, graph: Graph, match: Match, block: int) -> bool:
        """Say whether the constants that the rule moves and makes are ordinary: see `constants`."""
        if self.moves_products and not moderate(graph, [graph.nodes[name] for name in match.found]):
            return False
        if not self._computes:
            return True
        try:
            self._made(Builder(graph, block, guarded=True), graph, match)
        except UnsoundError:
            return False
        return True

    def apart(self, graph: Graph, site: Site) -> bool:
        """Say whether none of the values that the rule makes anew needs another: that would be a circle."""
        return len(site.makers) < 2 or not any(
            graph.reaches(maker, site.makers, beside=site.removed) for maker in site.makers
        )

    def _holds(self, graph: Graph, match: Match, block: int) -> bool:
        known = names_of(graph, match, block, self._asked)
        try:
            return bool(eval(self._where, {"__builtins__": BUILTINS, **known}))
        except Exception as error:
            raise RuleError(f"the condition of {self.name} fails: {_said(error)}") from error

    def _made(self, builder: Builder, graph: Graph, match: Match) -> dict[str, Any]:
        """Return what names stand for after the rule made what takes the place of a match."""
        try:
            return builder.run(self._after, names_of(graph, match, builder.block, self._given))
        except UnsoundError:
            raise
        except Exception as error:
            raise RuleError(f"{self.name} fails: {_said(error)}") from error

    def rewrite(self, graph: Graph, site: Site, block: int) -> Rewrite:
        """Return what the rule makes of a place.

        Args:
            graph: The graph.
            site: One of its `sites`.
            block: Channels of a block in the layout of ONNX Runtime's nchwc operators.

        Raises:
            RuleError: It fails there, or makes something of another type: the rule is wrong.
        """
        builder = Builder(graph, block, guarded=self._computes)
        try:
            names = self._made(builder, graph, site.match)
        except UnsoundError as error:
            raise RuleError(
                f"{self.name} makes constants that its condition does not allow: {error}"
            ) from error
        roots: dict[str, Value] = {}
        for name in self.roots:
            bound, made = site.match.values[name], names[name]
            if isinstance(bound, str):
                roots[bound] = made
            elif len(bound) == len(made):
                roots.update(zip(bound, made, strict=True))
            else:
                raise RuleError(f"{self.name} makes {len(made)} values for {len(bound)}")
        return builder.rewrite(site.removed, roots, next(iter(roots)))


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _count(pattern: Operator) -> int:
    return 1 + sum(_count(term) for term in pattern.operands if isinstance(term, Operator))


def _makers(graph: Graph, match: Match, name: str) -> tuple[str, ...]:
    """Return the names of the nodes that a rule calls by a name, or that make what it calls so."""
    if name in match.nodes:
        return (match.nodes[name].name,)
    return tuple(graph.producers[value] for value in _several(match.values[name]))


def _several(bound: Bound) -> tuple[str, ...]:
    return (bound,) if isinstance(bound, str) else bound


def _in_precision(graph: Graph, values: Sequence[str], roots: Iterable[str], precision: str) -> bool:
    """Say whether the values that are made, and all floating-point ones but weights, are of a type.

    None of these may be empty: ONNX Runtime's own operators refuse such tensors, or kill the process.
    """
    used = {graph.types[value] for value in values if value and value not in graph.weights}
    floating = {one for one in used if "float" in one.dtype}
    kinds = {one.dtype for one in floating} | {graph.types[one].dtype for one in roots}
    return kinds == {precision} and all(one.size for one in floating)
