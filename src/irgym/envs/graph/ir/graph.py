"""Tensor graphs: operators that compute values from values, and rewrites of them.

Graphs are immutable. A rewritten graph shares with the original all that the rewrite leaves alone: operators,
types and, above all, weights. A node is named by its first output, and keeps that name as long as it is
there.
"""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, TypeAlias

from irgym.base.errors import ScheduleError
from irgym.envs.graph.ir import digest
from irgym.envs.graph.ir.finiteness import Size, size_of_results
from irgym.envs.graph.ir.order import along, ordered, reordered
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
        name: The name of the node: its first output.
        operands: All values that it needs.
        results: All values that it makes.
        head: What tells the node apart from others with the same operands.
    """

    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[tuple[str, Attribute], ...] = ()
    captured: tuple[str, ...] = ()
    name: str = field(init=False, repr=False, compare=False)
    operands: tuple[str, ...] = field(init=False, repr=False, compare=False)
    results: tuple[str, ...] = field(init=False, repr=False, compare=False)
    head: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Find out what is asked of a node most often."""
        used = "".join("1" if value else "0" for value in self.outputs)
        head = f"{self.operator} {self.attributes!r} {len(self.inputs)} {len(self.captured)} {used}".encode()
        operands = tuple([value for value in (*self.inputs, *self.captured) if value])
        object.__setattr__(self, "name", self.outputs[0])
        object.__setattr__(self, "operands", operands)
        object.__setattr__(self, "results", tuple([value for value in self.outputs if value]))
        object.__setattr__(self, "head", digest.hashed(head))

    def __reduce__(self) -> tuple[type["Node"], tuple[Any, ...]]:
        """Return what it is made of again in another process."""
        return Node, (self.operator, self.inputs, self.outputs, self.attributes, self.captured)

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
        known = dict.fromkeys(self.inputs, Size.ORDINARY)
        return along(self.order, known, self.nodes, (), self._size_of)

    def _size_of(self, one: Node, known: Mapping[str, Size]) -> Iterable[tuple[str, Size]]:
        return size_of_results(one, known, self.weights, self.types)

    @cached_property
    def digests(self) -> Mapping[str, bytes]:
        """The digests of inputs and of what nodes make.

        Raises:
            ScheduleError: There is a circle.
        """
        known = digest.of_inputs(self.inputs, self.types)
        return along(self.order, known, self.nodes, (), self._digest_of)

    def _digest_of(self, one: Node, known: Mapping[str, bytes]) -> Iterable[tuple[str, bytes]]:
        return digest.of_results(one, known, self.weights)

    @property
    def digest(self) -> str:
        """The digest, hexadecimal: equal for graphs that compute the same in the same way.

        Raises:
            ScheduleError: There is a circle.
        """
        return digest.of_graph(self.outputs, self.nodes, self.digests, self.weights)

    @cached_property
    def order(self) -> tuple[Node, ...]:
        """The nodes, each after those whose values it uses.

        Raises:
            ScheduleError: There is a circle.
        """
        return ordered(self.nodes, self.producers, self.outputs)

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The place of each node in `order`.

        Raises:
            ScheduleError: There is a circle.
        """
        return {one.name: place for place, one in enumerate(self.order)}

    def reaches(self, start: str, goals: Iterable[str], beside: Container[str] = ()) -> bool:
        """Say whether any of some nodes needs the result of node `start`, directly or through others.

        Args:
            start: The name of a node.
            goals: Names of nodes.
            beside: Nodes whose own use of the result does not count.
        """
        wanted, seen, stack = set(goals), {start}, [start]
        places = self.places
        last = max(places[name] for name in wanted)
        while stack:
            name = stack.pop()
            for value in self.nodes[name].results:
                for user in self.users.get(value, ()):
                    if name == start and user in beside:
                        continue
                    if user in wanted:
                        return True
                    if user not in seen and places[user] < last:
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
        for value in rewrite.weights:
            # What has a value of nodes for an operand is another node once that is a weight.
            for name in users.get(value, ()):
                changed.setdefault(name, replace(nodes[name]))
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
        graph = Graph(
            nodes,
            producers,
            users,
            {**self.types, **rewrite.types},
            weights,
            self.inputs,
            outputs,
            self.opsets,
        )
        fresh = {*changed, *(one.name for one in rewrite.added)}
        self._hand_on(graph, rewrite, fresh)
        return graph

    def remade(self, rewrite: Rewrite) -> set[str]:
        """Return the names of the nodes whose values a rewrite makes anew, or gives others to stand for."""
        values = {*rewrite.replaced, *(value for one in rewrite.added for value in one.results)}
        return {self.producers[value] for value in values if value in self.producers}

    def _hand_on(self, graph: "Graph", rewrite: Rewrite, fresh: Collection[str]) -> None:
        """Give a rewritten graph what was found out of this one and holds still, for the rest alone to do.

        Args:
            graph: The rewritten graph.
            rewrite: What was done.
            fresh: Names of the nodes that are new, or changed.
        """
        if "order" not in self.__dict__:
            return
        roots = self.remade(rewrite)
        if len(roots) == 1:
            order = reordered(self.order, graph.nodes, graph.producers, rewrite.added, *roots)
            if order is not None:
                graph.__dict__["order"] = order
        gone = [
            value
            for name in self.nodes
            if graph.nodes.get(name) is not self.nodes[name]
            for value in self.nodes[name].results
            if value not in graph.producers
        ]
        if "sizes" in self.__dict__:
            graph.__dict__["sizes"] = along(graph.order, self.sizes, fresh, gone, graph._size_of)
        if "digests" in self.__dict__:
            graph.__dict__["digests"] = along(graph.order, self.digests, fresh, gone, graph._digest_of)


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
