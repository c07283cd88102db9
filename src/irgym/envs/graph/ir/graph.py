"""Tensor graphs: operators that compute values from values, and rewrites of them.

Graphs are immutable. A rewritten graph shares with the original all that the rewrite leaves alone: operators,
types and, above all, weights. A node is named by its first output, and keeps that name as long as it is
there.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TypeAlias

from irgym.core.errors import ScheduleError
from irgym.envs.graph.ir.finiteness import Size, sizes_of
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Weight

Plain: TypeAlias = int | float | str


@dataclass(frozen=True, slots=True)
class Opaque:
    """An attribute that no rule looks into: a tensor, or a graph of its own.

    Attributes:
        kind: Its number in `onnx.AttributeProto.AttributeType`.
        content: The attribute as ONNX stores it.
    """

    kind: int
    content: bytes


Attribute: TypeAlias = Plain | tuple[Plain, ...] | Opaque


@dataclass(frozen=True, slots=True)
class Node:
    """An operator and its operands.

    Attributes:
        operator: ONNX's name, with the domain in front if it is not ONNX's own: `com.microsoft.FusedConv`.
        inputs: Names of values; empty for an optional one that is left out.
        outputs: Names of values, the first not empty; empty for an optional one that nothing uses.
        attributes: Pairs of name and value, in order of their names.
        captured: Values that graphs among the attributes use from outside. They keep their names for good.
    """

    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[tuple[str, Attribute], ...] = ()
    captured: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the node: its first output."""
        return self.outputs[0]

    @property
    def operands(self) -> tuple[str, ...]:
        """All values that it needs."""
        return tuple(value for value in (*self.inputs, *self.captured) if value)

    @property
    def results(self) -> tuple[str, ...]:
        """All values that it makes."""
        return tuple(value for value in self.outputs if value)

    def attribute(self, name: str, default: Attribute | None = None) -> Attribute | None:
        """Return an attribute's value."""
        return next((value for own, value in self.attributes if own == name), default)


def node(operator: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Attribute) -> Node:
    """Return a node; attributes that are None are left out."""
    return Node(operator, tuple(inputs), tuple(outputs), tuple(sorted(attributes.items())))


@dataclass(frozen=True)
class Rewrite:
    """What is put in the place of some nodes.

    Attributes:
        removed: Names of the nodes that go. Others that nothing needs afterwards go with them.
        added: Nodes that come. Those that make values of removed nodes, of the same type, take their place.
        weights: Weights that come.
        types: Types of the values that come, weights included.
        replaced: For values of removed nodes, others that stand for them from then on.
    """

    removed: tuple[str, ...]
    added: tuple[Node, ...] = ()
    weights: Mapping[str, Weight] = field(default_factory=dict[str, Weight])
    types: Mapping[str, TensorType] = field(default_factory=dict[str, TensorType])
    replaced: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, eq=False)
class Graph:
    """A tensor graph.

    Attributes:
        nodes: By name.
        producers: The name of the node that makes each value.
        users: For each value that nodes use, their names.
        types: Of values and weights; none of values of unknown shape.
        weights: By name.
        inputs: Names of the values that a run is given, in order.
        outputs: Names of the values that a run returns, in order.
        opsets: Pairs of domain and version.
    """

    nodes: Mapping[str, Node]
    producers: Mapping[str, str]
    users: Mapping[str, tuple[str, ...]]
    types: Mapping[str, TensorType]
    weights: Mapping[str, Weight]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    opsets: tuple[tuple[str, int], ...]

    @staticmethod
    def of(
        nodes: Iterable[Node],
        types: Mapping[str, TensorType],
        weights: Mapping[str, Weight],
        inputs: Sequence[str],
        outputs: Sequence[str],
        opsets: Iterable[tuple[str, int]],
    ) -> "Graph":
        """Return the graph of some nodes, without those that no output needs."""
        by_name = {one.name: one for one in nodes}
        graph = Graph(
            by_name,
            {value: one.name for one in by_name.values() for value in one.results},
            _users(by_name.values()),
            types,
            weights,
            tuple(inputs),
            tuple(outputs),
            tuple(sorted(opsets)),
        )
        return graph.rewritten(Rewrite(()), dead=tuple(by_name))

    def __getstate__(self) -> dict[str, object]:
        """Return the fields alone: what follows from them is not sent to other processes with them."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def producer(self, value: str) -> Node | None:
        """Return the node that makes a value; None for inputs and weights."""
        name = self.producers.get(value)
        return None if name is None else self.nodes[name]

    def is_output(self, value: str) -> bool:
        """Say whether a run returns the value."""
        return value in self.outputs

    @cached_property
    def captured(self) -> frozenset[str]:
        """The values that graphs within operators use; nothing can stand for them."""
        return frozenset(value for one in self.nodes.values() for value in one.captured)

    @cached_property
    def known(self) -> Mapping[str, str]:
        """The names of weights by their digests."""
        return {weight.digest: name for name, weight in self.weights.items()}

    @cached_property
    def sizes(self) -> Mapping[str, Size]:
        """How large the elements of inputs and of what nodes make may be, as far as is known.

        Raises:
            ScheduleError: There is a circle.
        """
        return sizes_of(self.order, self.inputs, self.weights, self.types)

    @cached_property
    def order(self) -> tuple[Node, ...]:
        """The nodes, each after those whose values it uses.

        Raises:
            ScheduleError: There is a circle.
        """
        done: set[str] = set()
        begun: set[str] = set()
        ordered: list[Node] = []
        for output in self.outputs:
            stack = [self.producers[output]] if output in self.producers else []
            while stack:
                name = stack[-1]
                if name in done:
                    stack.pop()
                    continue
                one = self.nodes[name]
                needed = [
                    maker
                    for value in one.operands
                    if (maker := self.producers.get(value)) and maker not in done
                ]
                if not needed:
                    done.add(name)
                    ordered.append(one)
                    stack.pop()
                    continue
                if name in begun:
                    raise ScheduleError(f"{name} would need its own result: the rewrite does not apply here")
                begun.add(name)
                stack.extend(needed)
        return tuple(ordered)

    def reaches(self, start: str, goals: Iterable[str], beside: Container[str] = ()) -> bool:
        """Say whether any of some nodes needs the result of node `start`, directly or through others.

        Args:
            start: The name of a node.
            goals: Names of nodes.
            beside: Nodes whose own use of the result does not count.
        """
        wanted, seen, stack = set(goals), {start}, [start]
        while stack:
            name = stack.pop()
            for value in self.nodes[name].results:
                for user in self.users.get(value, ()):
                    if name == start and user in beside:
                        continue
                    if user in wanted:
                        return True
                    if user not in seen:
                        seen.add(user)
                        stack.append(user)
        return False

    def fresh(self, base: str, taken: Iterable[str] = ()) -> str:
        """Return a name for a value that neither this graph nor `taken` has, which begins with `base`."""
        others = set(taken)
        name, number = base, 1
        while name in self.types or name in self.producers or name in others:
            number += 1
            name = f"{base}.{number}"
        return name

    def rewritten(self, rewrite: Rewrite, dead: Sequence[str] = ()) -> "Graph":
        """Return the graph after a rewrite.

        Args:
            rewrite: What to change.
            dead: Names of more nodes that may have no use.

        Raises:
            ScheduleError: A value that is still needed would be gone, or cannot be replaced.
        """
        nodes, producers = dict(self.nodes), dict(self.producers)
        users = dict(self.users)
        outputs = tuple(rewrite.replaced.get(value, value) for value in self.outputs)
        changed: dict[str, Node] = {}
        for name in rewrite.removed:
            gone = nodes.pop(name)
            _forget(users, gone)
            for value in gone.results:
                del producers[value]
        for old, new in rewrite.replaced.items():
            if old in self.captured:
                raise ScheduleError(f"a graph within an operator uses {old}: nothing can stand for it")
            for name in users.get(old, ()):
                one = changed.get(name, nodes[name])
                inputs = tuple(new if value == old else value for value in one.inputs)
                changed[name] = replace(one, inputs=inputs)
        for name, one in changed.items():
            _forget(users, nodes[name])
            nodes[name] = one
            _note(users, one)
        for one in rewrite.added:
            nodes[one.name] = one
            _note(users, one)
            producers.update(dict.fromkeys(one.results, one.name))
        weights = {**self.weights, **rewrite.weights}
        suspects = [*dead, *_makers(self, rewrite)]
        _sweep(nodes, producers, users, set(outputs), suspects)
        known = {*weights, *self.inputs}
        for name in rewrite.removed:
            for value in self.nodes[name].results:
                if value not in producers and (value in users or value in outputs) and value not in known:
                    raise ScheduleError(f"{value} is still needed: the rewrite does not apply here")
        return Graph(
            nodes,
            producers,
            users,
            {**self.types, **rewrite.types},
            weights,
            self.inputs,
            outputs,
            self.opsets,
        )


def _makers(graph: Graph, rewrite: Rewrite) -> Iterator[str]:
    """Return the names of the nodes that made what removed or replaced ones used."""
    for name in rewrite.removed:
        for value in graph.nodes[name].operands:
            if value in graph.producers:
                yield graph.producers[value]
    for old in rewrite.replaced:
        if old in graph.producers:
            yield graph.producers[old]


def _users(nodes: Iterable[Node]) -> dict[str, tuple[str, ...]]:
    users: dict[str, tuple[str, ...]] = {}
    for one in nodes:
        _note(users, one)
    return users


def _note(users: dict[str, tuple[str, ...]], one: Node) -> None:
    """Add a node to the users of its operands."""
    for value in dict.fromkeys(one.operands):
        users[value] = (*users.get(value, ()), one.name)


def _forget(users: dict[str, tuple[str, ...]], one: Node) -> None:
    """Remove a node from the users of its operands."""
    for value in dict.fromkeys(one.operands):
        left = tuple(name for name in users[value] if name != one.name)
        if left:
            users[value] = left
        else:
            del users[value]


def _sweep(
    nodes: dict[str, Node],
    producers: dict[str, str],
    users: dict[str, tuple[str, ...]],
    outputs: set[str],
    suspects: list[str],
) -> None:
    """Remove those suspects that nothing needs, and what nothing needs then."""
    while suspects:
        one = nodes.get(suspects.pop())
        if one is None or any(value in users or value in outputs for value in one.results):
            continue
        del nodes[one.name]
        _forget(users, one)
        for value in one.results:
            del producers[value]
        suspects += [producers[value] for value in one.operands if value in producers]
