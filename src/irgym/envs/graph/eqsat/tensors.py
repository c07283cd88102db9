"""An e-graph of tensors: built from a graph, and extended by the rewrites of its parts."""

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

from irgym.base.errors import BaselineError
from irgym.envs.graph.eqsat.egraph import ABSENT, EGraph, ENode
from irgym.envs.graph.eqsat.queries import Query
from irgym.envs.graph.ir.finiteness import Size, size_of_results
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Attribute, Node
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Weight
from irgym.envs.graph.rewriting.building import RuleError
from irgym.envs.graph.rewriting.failures import Failures
from irgym.envs.graph.rewriting.rule import Rule


@dataclass(frozen=True, eq=False)
class Part(Graph):
    """A graph of some operators of an e-graph; values that none of them makes are its inputs.

    Attributes:
        known_sizes: Known ranges of the elements of values.
    """

    known_sizes: Mapping[str, Size] = field(default_factory=dict[str, Size])

    @cached_property
    def sizes(self) -> Mapping[str, Size]:
        """Known ranges of the elements of values."""
        return self.known_sizes


class Tensors:
    """An e-graph of tensors.

    Args:
        graph: The original graph.
        block: Channels of a block in the layout of ONNX Runtime's nchwc operators.

    Attributes:
        graph: The original graph.
        egraph: The operators and their equalities.
        values: Numbers of the original graph's values, by name.
        weights: Weights by number of the value.
        failures: Failures of rules.

    Raises:
        BaselineError: The graph has operators with subgraphs.
    """

    def __init__(self, graph: Graph, block: int) -> None:
        if graph.captured or any(node.captured for node in graph.nodes.values()):
            raise BaselineError(
                "tensat takes no models with operators that hold graphs (If, Loop, Scan): leave it out here"
            )
        self.graph = graph
        self.egraph = EGraph()
        self.values: dict[str, int] = {}
        self.failures = Failures()
        self._block = block
        self._heads: dict[tuple[tuple[tuple[str, Attribute], ...], tuple[bool, ...]], int] = {}
        self._attributes: list[tuple[tuple[tuple[str, Attribute], ...], tuple[bool, ...]]] = []
        self._types: dict[int, TensorType] = {}
        self.weights: dict[int, Weight] = {}
        self._sizes: dict[int, Size] = {}
        self._numbers: dict[str, int] = {}
        self._count = ABSENT
        for name in graph.inputs:
            self.values[name] = self._fresh(graph.types.get(name))
            self._sizes[self.values[name]] = Size.ORDINARY
        for node in graph.order:
            for name in node.inputs:
                if name and name not in self.values:
                    self.values[name] = self._weight(graph.weights[name])
            self._insert(node, graph.types, self.values)
        for name in graph.outputs:
            if name not in self.values:
                self.values[name] = self._weight(graph.weights[name])
        for name, value in self.values.items():
            if name in graph.sizes:
                self._sizes[value] = min(graph.sizes[name], self._sizes.get(value, Size.UNKNOWN))
        self.rebuild()
        self._written = self.egraph.nodes

    def written(self) -> list[ENode]:
        """Return the operators of the original graph; operators that became equal count once."""
        now = {(node.operator, node.head, node.inputs): node for node in self.egraph.nodes}
        canonical = self.egraph.canonical
        written = [
            now[node.operator, node.head, tuple(canonical(value) for value in node.inputs)]
            for node in self._written
        ]
        return list(dict.fromkeys(written))

    @contextmanager
    def trial(self) -> Generator[None]:
        """Undo all changes at the end of a block; failures of rules stay noted."""
        before = dict(vars(self))
        for name in ("_heads", "_attributes", "_types", "weights", "_sizes", "_numbers"):
            before[name] = before[name].copy()
        with self.egraph.trial():
            try:
                yield
            finally:
                vars(self).update(before)

    def _fresh(self, kind: TensorType | None) -> int:
        self._count += 1
        if kind is not None:
            self._types[self._count] = kind
        self.egraph.add_value(self._count)
        return self._count

    def _weight(self, weight: Weight) -> int:
        """Return the number of a weight."""
        if weight.digest not in self._numbers:
            value = self._numbers[weight.digest] = self._fresh(weight.type)
            self.weights[value] = weight
        return self.egraph.canonical(self._numbers[weight.digest])

    def _insert(self, node: Node, types: Mapping[str, TensorType], values: dict[str, int]) -> None:
        """Add a node. Its results get numbers in `values`, or become equal to the numbers that they have."""
        inputs = tuple(values[name] if name else ABSENT for name in node.inputs)
        while inputs and inputs[-1] == ABSENT:
            inputs = inputs[:-1]
        if node.operator == "Identity":
            self._name(values, node.outputs[0], inputs[0])
            return
        key = node.attributes, tuple(bool(name) for name in node.outputs)
        if key not in self._heads:
            self._heads[key] = len(self._attributes)
            self._attributes.append(key)
        head = self._heads[key]
        there = self.egraph.find(node.operator, head, inputs)
        if there is not None:
            for name, value in zip(node.outputs, there.outputs, strict=True):
                if name:
                    self._name(values, name, value)
            return
        for name in node.results:
            if name not in values:
                values[name] = self._fresh(types.get(name))
        outputs = tuple(values[name] if name else ABSENT for name in node.outputs)
        self.egraph.add(node.operator, head, inputs, outputs)

    def _name(self, values: dict[str, int], name: str, value: int) -> None:
        if name in values:
            self.egraph.add_equal(values[name], value)
        else:
            values[name] = value

    def rebuild(self) -> None:
        """Merge equal values, and the knowledge about them."""
        self.egraph.rebuild()
        canonical = self.egraph.canonical
        self._types = {canonical(value): kind for value, kind in self._types.items()}
        self.weights = {canonical(value): weight for value, weight in self.weights.items()}
        sizes: dict[int, Size] = {}
        for value, size in self._sizes.items():
            sizes[canonical(value)] = min(size, sizes.get(canonical(value), Size.UNKNOWN))
        self._sizes = sizes
        self._measure(self.egraph.nodes)

    def _measure(self, nodes: Iterable[ENode]) -> None:
        """Determine the ranges of elements from any operator that makes a value."""
        for node in nodes:
            unknown = [x for x in node.outputs if x and self._sizes.get(x, Size.UNKNOWN) is not Size.ORDINARY]
            if unknown:
                part = self.part([node], [])
                ordinary = {
                    name: Size.ORDINARY for name in part.inputs if part.sizes.get(name) is Size.ORDINARY
                }
                [operator] = part.nodes.values()
                found = dict(size_of_results(operator, ordinary, part.weights, part.types))
                for value in unknown:
                    size = min(found[_name_of(value)], self._sizes.get(value, Size.UNKNOWN))
                    self._sizes[value] = size

    def canonical(self, name: str) -> int:
        """Return the number of one of the graph's values."""
        return self.egraph.canonical(self.values[name])

    def type_of(self, value: int) -> TensorType | None:
        """Return the type of a value; None if it is unknown."""
        return self._types.get(value)

    def node(self, node: ENode) -> Node:
        """Return an operator with names for its values."""
        attributes, _ = self._attributes[node.head]
        return Node(
            node.operator,
            tuple(_name_of(value) for value in node.inputs),
            tuple(_name_of(value) for value in node.outputs),
            attributes,
        )

    def part(self, nodes: Sequence[ENode], outputs: Sequence[int]) -> Part:
        """Return some operators as a graph.

        Args:
            nodes: The operators.
            outputs: Outputs of the graph.
        """
        plain = [self.node(node) for node in nodes]
        made = {name: node.name for node in plain for name in node.results}
        users: dict[str, tuple[str, ...]] = {}
        for node in plain:
            for name in dict.fromkeys(node.operands):
                users[name] = (*users.get(name, ()), node.name)
        values = {value for node in nodes for value in (*node.inputs, *node.outputs) if value}
        weights = {_name_of(value): self.weights[value] for value in values if value in self.weights}
        return Part(
            {node.name: node for node in plain},
            made,
            users,
            {_name_of(value): self._types[value] for value in values if value in self._types},
            weights,
            tuple(name for name in users if name not in made and name not in weights),
            tuple(_name_of(value) for value in outputs),
            self.graph.opsets,
            (),
            {_name_of(value): self._sizes[value] for value in values if value in self._sizes},
        )

    def apply(self, rule: Rule, query: Query, found: Sequence[ENode]) -> None:
        """Add the replacement of a match as an equality, if the rule applies.

        Args:
            rule: The rule.
            query: A query for the rule's pattern.
            found: The operators that match the query.
        """
        made = [value for node in found for value in node.outputs if value]
        if len(set(made)) < len(made) or _circular(found) or any(value in self.weights for value in made):
            return  # one operator twice, operators of equal values, or nothing to compute
        roots = [
            value
            for atom, node in zip(query, found, strict=True)
            for variable, value in zip(atom.outputs, node.outputs, strict=True)
            if variable.partition(".")[0] in rule.roots
        ]
        part = self.part(found, roots)
        anchor = part.nodes[_name_of(found[0].outputs[0])]
        for site in rule.sites(part, anchor, self._block, failures=self.failures):
            try:
                rewrite = rule.rewrite(part, site, self._block)
            except RuleError as error:
                self.failures.note(rule.name, site.name, error)
                continue
            values = {name: int(name[1:]) for name in part.types}
            for name, weight in rewrite.weights.items():
                self._name(values, name, self._weight(weight))
            for node in rewrite.added:
                self._insert(node, rewrite.types, values)
            for old, new in rewrite.replaced.items():
                self.egraph.add_equal(values[old], values[new])


def _circular(nodes: Sequence[ENode]) -> bool:
    """Say whether operators need their results as operands, which is possible if values are equal."""
    left = list(nodes)
    while left:
        made = {value for node in left for value in node.outputs if value}
        free = [node for node in left if made.isdisjoint(node.inputs)]
        if not free:
            return True
        left = [node for node in left if node not in free]
    return False


def _name_of(value: int) -> str:
    return f"v{value}" if value else ""
