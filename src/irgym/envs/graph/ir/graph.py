"""Tensor graphs: operators that compute values from values, and rewrites of them.

Graphs are immutable. A rewritten graph shares with the original everything that the rewrite leaves alone:
nodes, types and, above all, weights. A node is named by its first output and keeps that name.
"""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from types import MappingProxyType

from irgym.base.errors import ScheduleError
from irgym.envs.graph.ir import digest
from irgym.envs.graph.ir.finiteness import Size, size_of_results
from irgym.envs.graph.ir.node import Node
from irgym.envs.graph.ir.order import along, ordered, reordered, shared
from irgym.envs.graph.ir.sizes import Open
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Sizes, Weight


@dataclass(frozen=True)
class Rewrite:
    """Nodes to remove and what replaces them.

    Attributes:
        removed: Names of the nodes to remove. Other nodes that nothing needs afterwards are removed too.
        added: New nodes. They may redefine values of removed nodes, with the same type. Those that nothing
            needs are left out.
        weights: New weights.
        types: Types of the new values, weights included.
        replaced: For values of removed nodes, the values to use instead.
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
        types: Of values and weights; values of unknown shape have none.
        weights: By name.
        inputs: Names of the values that a run is given, in order.
        outputs: Names of the values that a run returns, in order.
        opsets: Pairs of domain and version.
        profile: Sizes of the open dimensions, by name, at which the graph is measured; empty if none is open.
    """

    nodes: Mapping[str, Node]
    producers: Mapping[str, str]
    users: Mapping[str, tuple[str, ...]]
    types: Mapping[str, TensorType]
    weights: Mapping[str, Weight]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    opsets: tuple[tuple[str, int], ...]
    profile: tuple[tuple[str, int], ...] = ()

    @staticmethod
    def of(
        nodes: Iterable[Node],
        types: Mapping[str, TensorType],
        weights: Mapping[str, Weight],
        inputs: Sequence[str],
        outputs: Sequence[str],
        opsets: Iterable[tuple[str, int]],
        profile: Mapping[str, int] = MappingProxyType({}),
    ) -> "Graph":
        """Return the graph of some nodes, without those that no output needs."""
        by_name = {node.name: node for node in nodes}
        graph = Graph(
            by_name,
            {value: node.name for node in by_name.values() for value in node.results},
            _users(by_name.values()),
            types,
            weights,
            tuple(inputs),
            tuple(outputs),
            tuple(sorted(opsets)),
            tuple(sorted(profile.items())),
        )
        return graph.rewritten(Rewrite(()), dead=tuple(by_name))

    def __getstate__(self) -> dict[str, object]:
        """Return the fields alone: cached properties are not sent to other processes."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    @property
    def measured(self) -> "Graph":
        """The same at the sizes of the profile: a graph without open sizes."""
        # A graph that held itself would be freed only by Python's search for garbage.
        return self._at_profile if self.profile else self

    @cached_property
    def _at_profile(self) -> "Graph":
        return self.at(dict(self.profile))

    def at(self, sizes: Mapping[str, int]) -> "Graph":
        """Return the same with fixed sizes.

        Args:
            sizes: Sizes of the open dimensions, by name.
        """
        return self._fixed(_types_at(self.types, sizes), _weights_at(self.weights, sizes))

    def _fixed(self, types: Mapping[str, TensorType], weights: Mapping[str, Weight]) -> "Graph":
        """Return the same with other types and weights, those at some sizes."""
        graph = replace(self, types=types, weights=weights, profile=())
        if "order" in self.__dict__:
            graph.__dict__["order"] = self.order
        return graph

    @property
    def least(self) -> Mapping[str, int]:
        """The least sizes of the open dimensions, by name."""
        sizes = (size for name in self.inputs if name in self.types for size in self.types[name].shape)
        symbols = (size.form.symbol for size in sizes if isinstance(size, Open))
        return {symbol.name: symbol.least for symbol in symbols if symbol is not None}

    def producer(self, value: str) -> Node | None:
        """Return the node that makes a value; None for inputs and weights."""
        name = self.producers.get(value)
        return None if name is None else self.nodes[name]

    def is_output(self, value: str) -> bool:
        """Say whether a run returns the value."""
        return value in self.outputs

    @cached_property
    def captured(self) -> frozenset[str]:
        """The values that subgraphs use; no other value can replace them."""
        return frozenset(value for node in self.nodes.values() for value in node.captured)

    @cached_property
    def known(self) -> Mapping[str, str]:
        """The names of weights by their digests."""
        return {weight.digest: name for name, weight in self.weights.items()}

    @cached_property
    def sizes(self) -> Mapping[str, Size]:
        """How large the elements of inputs and of nodes' results may be, as far as is known.

        Raises:
            ScheduleError: The graph has a cycle.
        """
        known = dict.fromkeys(self.inputs, Size.ORDINARY)
        return along(self.order, known, self.nodes, (), self._size_of)

    def _size_of(self, node: Node, known: Mapping[str, Size]) -> Iterable[tuple[str, Size]]:
        return size_of_results(node, known, self.weights, self.types)

    @cached_property
    def digests(self) -> Mapping[str, bytes]:
        """The digests of all values.

        Raises:
            ScheduleError: The graph has a cycle.
        """
        known = digest.of_given(self.inputs, self.types, self.weights)
        return along(self.order, known, self.nodes, (), digest.of_results)

    @property
    def digest(self) -> str:
        """The digest, hexadecimal: equal for graphs that compute the same by the same operators.

        Raises:
            ScheduleError: The graph has a cycle.
        """
        return digest.of_graph(self.outputs, self.nodes, self.digests)

    @cached_property
    def order(self) -> tuple[Node, ...]:
        """The nodes in topological order.

        Raises:
            ScheduleError: The graph has a cycle.
        """
        return ordered(self.nodes, self.producers, self.outputs)

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The place of each node in `order`.

        Raises:
            ScheduleError: The graph has a cycle.
        """
        return {node.name: place for place, node in enumerate(self.order)}

    def reaches(self, start: str, goals: Iterable[str], beside: Container[str] = ()) -> bool:
        """Say whether any node of `goals` needs the result of node `start`, directly or indirectly.

        Args:
            start: The name of a node.
            goals: Names of nodes.
            beside: Nodes whose direct use of the result does not count.
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
        """Return a name that begins with `base` and occurs neither in this graph nor in `taken`."""
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
            dead: Names of further nodes to remove if nothing uses them.

        Raises:
            ScheduleError: The rewrite removes a value that is still needed, or replaces one that it cannot.
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
                raise ScheduleError(f"a subgraph of an operator uses {old}: it cannot be replaced")
            for name in users.get(old, ()):
                node = changed.get(name, nodes[name])
                inputs = tuple(new if value == old else value for value in node.inputs)
                changed[name] = replace(node, inputs=inputs)
        for value in rewrite.weights:
            # A user of a node's value becomes another node when that value becomes a weight.
            for name in users.get(value, ()):
                changed.setdefault(name, replace(nodes[name]))
        for name, node in changed.items():
            _forget(users, nodes[name])
            nodes[name] = node
            _note(users, node)
        for node in rewrite.added:
            nodes[node.name] = node
            _note(users, node)
            producers.update(dict.fromkeys(node.results, node.name))
        weights = {**self.weights, **rewrite.weights} if rewrite.weights else self.weights
        types = {**self.types, **rewrite.types} if rewrite.types else self.types
        suspects = [*dead, *(node.name for node in rewrite.added), *_makers(self, rewrite)]
        swept = _sweep(nodes, producers, users, set(outputs), suspects)
        for name in rewrite.removed:
            for value in self.nodes[name].results:
                given = value in producers or value in weights or value in self.inputs
                if not given and (value in users or value in outputs):
                    raise ScheduleError(f"{value} is still needed: the rewrite does not apply here")
        graph = Graph(
            nodes,
            producers,
            users,
            types,
            weights,
            self.inputs,
            outputs,
            self.opsets,
            self.profile,
        )
        fresh = {*changed, *(node.name for node in rewrite.added)}
        self._hand_on(graph, rewrite, fresh, {*rewrite.removed, *swept})
        return graph

    def remade(self, rewrite: Rewrite) -> set[str]:
        """Return the names of the nodes whose values a rewrite redefines or replaces."""
        values = {*rewrite.replaced, *(value for node in rewrite.added for value in node.results)}
        return {self.producers[value] for value in values if value in self.producers}

    def _hand_on(
        self, graph: "Graph", rewrite: Rewrite, fresh: Collection[str], gone: Collection[str]
    ) -> None:
        """Fill the cached properties of a rewritten graph from this graph's, as far as those still hold.

        Args:
            graph: The rewritten graph.
            rewrite: The rewrite that made it.
            fresh: Names of the nodes that are new or changed.
            gone: Names of the nodes that were removed; new nodes may have them again.
        """
        if "order" in self.__dict__:
            self._hand_on_along_order(graph, rewrite, fresh, gone)
        if "_at_profile" in self.__dict__:
            sizes, before = dict(self.profile), self.measured
            types = {**before.types, **_types_at(rewrite.types, sizes)}
            weights = {**before.weights, **_weights_at(rewrite.weights, sizes)}
            graph.__dict__["_at_profile"] = graph._fixed(types, weights)

    def _hand_on_along_order(
        self, graph: "Graph", rewrite: Rewrite, fresh: Collection[str], gone: Collection[str]
    ) -> None:
        """Fill the cached properties that are computed along the order of nodes; see `_hand_on`."""
        roots = self.remade(rewrite)
        if len(roots) == 1:
            order = reordered(self.order, graph.nodes, graph.producers, rewrite.added, *roots)
            if order is not None:
                graph.__dict__["order"] = order
        removed = [self.nodes[name] for name in gone if name in self.nodes]
        lost = [value for node in removed for value in node.results if value not in graph.producers]
        later = graph.order[shared(self.order, graph.order) :]
        if "sizes" in self.__dict__:
            graph.__dict__["sizes"] = along(later, self.sizes, fresh, lost, graph._size_of)
        if "digests" in self.__dict__:
            given = digest.of_weights(rewrite.weights)
            graph.__dict__["digests"] = along(later, self.digests, fresh, lost, digest.of_results, given)


def _types_at(types: Mapping[str, TensorType], sizes: Mapping[str, int]) -> dict[str, TensorType]:
    return {value: kind.at(sizes) for value, kind in types.items()}


def _weights_at(weights: Mapping[str, Weight], sizes: Mapping[str, int]) -> dict[str, Weight]:
    return {
        name: weight.at(sizes) if isinstance(weight, Sizes) else weight for name, weight in weights.items()
    }


def _makers(graph: Graph, rewrite: Rewrite) -> Iterator[str]:
    """Yield the producers of the values that removed nodes used, and of the values that are replaced."""
    for name in rewrite.removed:
        for value in graph.nodes[name].operands:
            if value in graph.producers:
                yield graph.producers[value]
    for old in rewrite.replaced:
        if old in graph.producers:
            yield graph.producers[old]


def _users(nodes: Iterable[Node]) -> dict[str, tuple[str, ...]]:
    users: dict[str, tuple[str, ...]] = {}
    for node in nodes:
        _note(users, node)
    return users


def _note(users: dict[str, tuple[str, ...]], node: Node) -> None:
    """Add a node to the users of its operands."""
    for value in dict.fromkeys(node.operands):
        users[value] = (*users.get(value, ()), node.name)


def _forget(users: dict[str, tuple[str, ...]], node: Node) -> None:
    """Remove a node from the users of its operands."""
    for value in dict.fromkeys(node.operands):
        left = tuple(name for name in users[value] if name != node.name)
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
) -> list[str]:
    """Remove the suspects that nothing needs, and then whatever only they needed; return their names."""
    swept: list[str] = []
    while suspects:
        node = nodes.get(suspects.pop())
        if node is None or any(value in users or value in outputs for value in node.results):
            continue
        del nodes[node.name]
        swept.append(node.name)
        _forget(users, node)
        for value in node.results:
            del producers[value]
        suspects += [producers[value] for value in node.operands if value in producers]
    return swept
