"""Rewrite rules, and the sites where they apply."""

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import CodeType
from typing import Any
from urllib.parse import quote

import numpy as np

from irgym.envs.graph.ir.graph import Graph, Rewrite
from irgym.envs.graph.ir.node import Attribute, Node
from irgym.envs.graph.ir.sizes import Undecided
from irgym.envs.graph.rewriting.building import Builder, RuleError
from irgym.envs.graph.rewriting.constants import UnsoundError, computes, moderate, reassociates
from irgym.envs.graph.rewriting.failures import Failures
from irgym.envs.graph.rewriting.language import (
    ABSENT,
    DOMAINS,
    INTEGRAL,
    SINGLE,
    Operator,
    Statement,
    parse_pattern,
)
from irgym.envs.graph.rewriting.matching import Bound, Match, matches
from irgym.envs.graph.rewriting.values import Value
from irgym.envs.graph.rewriting.vocabulary import BUILTINS, names_of, names_used

FUSED_PRECISION = "float32"
"""The floating-point type of ONNX Runtime's contrib operators on a CPU."""


@dataclass(frozen=True)
class Sample:
    """An instance of a pattern.

    Attributes:
        values: Arrays for the inputs of the pattern, by name: float64 unless they are indices; a list for a
            name that stands for several values, None for a missing operand.
        weights: Names of the values that are weights.
        attributes: Attribute values that the pattern names.
        nodes: Further attributes of nodes, by name of the node.
        counts: Number of outputs of each name that stands for several.
        operators: Operators of nodes that the pattern describes by a class, by name of the node.
    """

    values: Mapping[str, Any]
    weights: frozenset[str] = frozenset()
    attributes: Mapping[str, Attribute] = field(default_factory=dict[str, Attribute])
    nodes: Mapping[str, Mapping[str, Attribute]] = field(default_factory=dict[str, Mapping[str, Attribute]])
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    operators: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Site:
    """A place in a graph where a rule applies.

    Attributes:
        name: Names of the replaced values, for schedules; stable as long as the site exists.
        match: Meaning of the rule's names.
        removed: Names of the nodes that the rule removes.
        makers: Names of the nodes whose values the rule replaces.
    """

    name: str
    match: Match
    removed: tuple[str, ...]
    makers: frozenset[str]

    @cached_property
    def members(self) -> tuple[str, ...]:
        """Names of all matched nodes."""
        return tuple(sorted(self.match.found))


@dataclass(frozen=True)
class Rule:
    """A rewrite rule.

    Attributes:
        name: Lower-case words joined by hyphens.
        before: The pattern; see `irgym.envs.graph.rewriting.language`.
        after: The replacement: code for the values of the pattern that no node in it uses; see
            `irgym.envs.graph.rewriting.building`.
        sample: Returns a random instance of the pattern, for verification; the rule must apply to it.
        where: Condition on a match; see `irgym.envs.graph.rewriting.vocabulary`.
        shared: Names of nodes that remain, since other nodes may use them. For a list of nodes, the name of
            their outputs.
        source: Origin of the rule.
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
        """The statements of the pattern."""
        return parse_pattern(self.before)

    @cached_property
    def anchors(self) -> frozenset[str] | None:
        """Operators that the first statement of the pattern matches; None for any."""
        return self.pattern[0].node.operators

    @cached_property
    def roots(self) -> tuple[str, ...]:
        """The values that the replacement computes, except those of nodes that remain.

        These are the values that no node of the pattern uses, and further ones that `after` assigns. The rule
        applies only where other nodes use the further ones.
        """
        used = self._used - self._assigned
        going = [statement for statement in self.pattern if statement.node.name not in self.shared]
        return tuple(
            name for statement in going for name in statement.outputs if name not in used and name != ABSENT
        )

    @cached_property
    def _used(self) -> frozenset[str]:
        """Values that the nodes of the pattern use."""
        return frozenset(name for statement in self.pattern for name in statement.operands)

    @cached_property
    def _remade(self) -> frozenset[str]:
        """Roots that nodes of the pattern use."""
        return self._used & frozenset(self.roots)

    @cached_property
    def free(self) -> frozenset[str]:
        """Roots that no node of the pattern uses: other nodes may use them, but see `entangled`."""
        return frozenset(self.roots) - self._used

    @cached_property
    def entangled(self) -> bool:
        """Whether the rule replaces several values, and so applies only where they are `apart`."""
        return len(self.roots) > 1 or any(statement.each for statement in self.pattern)

    @cached_property
    def _assigned(self) -> frozenset[str]:
        """Names that `after` assigns."""
        return frozenset(
            node.id
            for node in ast.walk(ast.parse(self.after))
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        )

    @cached_property
    def _leaves(self) -> frozenset[str]:
        """Inputs of the pattern: values that its nodes use and none of them makes."""
        return self._used - {name for statement in self.pattern for name in statement.outputs}

    @cached_property
    def size(self) -> int:
        """Number of nodes of the pattern: the greatest distance that conditions look from the first node."""
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
        """Whether the rule moves, merges or splits products; see `constants`."""
        return reassociates(self.before, self.after)

    @cached_property
    def _computes(self) -> bool:
        return computes(self.before, self.after)

    @cached_property
    def far(self) -> bool:
        """Whether the condition depends on the range of elements, which distant nodes may decide."""
        return ".finite" in self.where or ".ordinary" in self.where

    @cached_property
    def _fuses(self) -> bool:
        """Whether the replacement has operators that ONNX Runtime has for one floating-point type only."""
        called = [node.func for node in ast.walk(ast.parse(self.after)) if isinstance(node, ast.Call)]
        return any(
            isinstance(function, ast.Name)
            and (function.id in DOMAINS or function.id in SINGLE)
            and function.id not in INTEGRAL
            for function in called
        )

    def sites(
        self,
        graph: Graph,
        anchor: Node,
        block: int,
        precision: str = FUSED_PRECISION,
        failures: Failures | None = None,
    ) -> Iterator[Site]:
        """Return the sites of the rule whose pattern begins at a node.

        Args:
            graph: The graph.
            anchor: The node.
            block: Channels of a block in the layout of ONNX Runtime's nchwc operators.
            precision: The floating-point type of ONNX Runtime's contrib operators.
            failures: Records failures of the rule; None to raise them.

        Raises:
            RuleError: The condition raises an error, so the rule is wrong.
        """
        seen: set[str] = set()
        for match in matches(graph, self.pattern, anchor):
            try:
                site = self._site(graph, match, block, precision)
            except Undecided:  # the rule applies at some sizes only, or nobody knows
                continue
            except RuleError as error:
                if failures is None:
                    raise
                failures.note(self.name, anchor.name, error)
                continue
            if site is not None and site.name not in seen:
                seen.add(site.name)
                yield site

    def _site(self, graph: Graph, match: Match, block: int, precision: str) -> Site | None:
        """Return the site of a match; None if the rule does not apply."""
        bound = [_several(match.values[name]) for name in self.roots]
        roots = tuple([value for values in bound for value in values])
        kept = [maker for name in self.shared for maker in _makers(graph, match, name)]
        removed = match.found.difference(kept) if kept else match.found
        if not self._removable(graph, match, removed, roots):
            return None
        values = [value for named in match.values.values() for value in _several(named) if value]
        if not graph.types.keys() >= set(values):
            return None
        if self._fuses and not _in_precision(graph, values, roots, precision):
            return None
        if self.where != "True" and not self._holds(graph, match, block):
            return None
        name = "+".join(quote(values[0], safe="/.:_-") for values in bound if values)
        makers = frozenset(graph.producers[value] for value in roots)
        site = Site(name, match, tuple(sorted(removed)), makers)
        if not (self.apart(graph, site) and self._sound(graph, match, block)):
            return None
        if graph.profile:
            self.rewrite(graph, site, block)  # what it makes may depend on the sizes
        return site

    def _removable(
        self, graph: Graph, match: Match, removed: Collection[str], roots: Collection[str]
    ) -> bool:
        """Say whether the rest of the graph needs no other values of the removed nodes than the roots."""
        given = [value for name in self._leaves for value in _several(match.values.get(name, ()))]
        if any(graph.producers.get(value) in removed for value in given):
            return False
        for value in (value for name in self._remade for value in _several(match.values[name])):
            if not graph.is_output(value) and all(user in removed for user in graph.users[value]):
                return False
        inner = [value for name in removed for value in graph.nodes[name].results if value not in roots]
        return not any(
            graph.is_output(value) or any(user not in match.found for user in graph.users.get(value, ()))
            for value in inner
        )

    def _sound(self, graph: Graph, match: Match, block: int) -> bool:
        """Say whether the constants that the rule moves and computes stay ordinary; see `constants`."""
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
        """Say whether no replaced value depends on another, which would close a circle."""
        return len(site.makers) < 2 or not any(
            graph.reaches(maker, site.makers, beside=site.removed) for maker in site.makers
        )

    def _holds(self, graph: Graph, match: Match, block: int) -> bool:
        known = names_of(graph, match, block, self._asked)
        try:
            return bool(eval(self._where, {"__builtins__": BUILTINS, **known}))
        except Undecided:
            raise
        except Exception as error:
            raise RuleError(f"the condition of {self.name} fails: {_described(error)}") from error

    def _made(self, builder: Builder, graph: Graph, match: Match) -> dict[str, Any]:
        """Return the meaning of all names after the replacement was built."""
        try:
            return builder.run(self._after, names_of(graph, match, builder.block, self._given))
        except (UnsoundError, Undecided):
            raise
        except Exception as error:
            raise RuleError(f"{self.name} fails: {_described(error)}") from error

    def rewrite(self, graph: Graph, site: Site, block: int) -> Rewrite:
        """Return the rewrite of a site.

        Args:
            graph: The graph.
            site: A site of the rule in the graph.
            block: Channels of a block in the layout of ONNX Runtime's nchwc operators.

        Raises:
            RuleError: The replacement fails or has another type, so the rule is wrong.
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


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _count(pattern: Operator) -> int:
    return 1 + sum(_count(term) for term in pattern.operands if isinstance(term, Operator))


def _makers(graph: Graph, match: Match, name: str) -> tuple[str, ...]:
    """Return the names of the nodes, or of the producers of the values, that a rule gives a name."""
    if name in match.nodes:
        return (match.nodes[name].name,)
    return tuple(graph.producers[value] for value in _several(match.values[name]))


def _several(bound: Bound) -> tuple[str, ...]:
    return (bound,) if isinstance(bound, str) else bound


def _in_precision(graph: Graph, values: Sequence[str], roots: Iterable[str], precision: str) -> bool:
    """Say whether replaced values, and all floating-point values except weights, have a type and elements.

    ONNX Runtime's contrib operators refuse empty tensors, or kill the process.
    """
    used = {graph.types[value] for value in values if value and value not in graph.weights}
    floating = {kind for kind in used if "float" in kind.dtype}
    kinds = {kind.dtype for kind in floating} | {graph.types[root].dtype for root in roots}
    return kinds == {precision} and all(kind.size for kind in floating)
