"""An e-graph whose values are tensors: graphs go in, and what rules make of parts of it."""

from collections.abc import Iterable, Mapping, Sequence
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
    """Some operators of an e-graph, as a graph of their own: values that none of them makes are its inputs.

    Attributes:
        known_sizes: How large the elements of values may be, as far as the e-graph tells.
    """

    known_sizes: Mapping[str, Size] = field(default_factory=dict[str, Size])

    @cached_property
    def sizes(self) -> Mapping[str, Size]:
        """How large the elements of values may be."""
        return self.known_sizes


class Tensors:
    """An e-graph of tensors.

    Args:
        graph: The graph that it holds at first.
        block: Channels of a block in the layout of ONNX Runtime's nchwc operators.

    Attributes:
        graph: The graph that it held at first.
        egraph: The operators, and what is equal.
        values: Numbers of that graph's values, by name.
        weights: Weights, by number.
        failures: Failures of rules.

    Raises:
        BaselineError: The graph has operators with graphs of their own.
    """

    def __init__(self, graph: Graph, block: int) -> None:
        if graph.captured or any(one.captured for one in graph.nodes.values()):
            raise BaselineError(
                "eqsat takes no models with operators that hold graphs (If, Loop, Scan): leave it out here"
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
        for one in graph.order:
            for name in one.inputs:
                if name and name not in self.values:
                    self.values[name] = self._weight(graph.weights[name])
            self._insert(one, graph.types, self.values)
        for name in graph.outputs:
            if name not in self.values:
                self.values[name] = self._weight(graph.weights[name])
        for name, value in self.values.items():
            if name in graph.sizes:
                self._sizes[value] = min(graph.sizes[name], self._sizes.get(value, Size.UNKNOWN))
        self.rebuild()
        self._written = self.egraph.nodes

    def written(self) -> list[ENode]:
        """Return the operators of the graph that it held at first, each once where they are equal now."""
        now = {(one.operator, one.head, one.inputs): one for one in self.egraph.nodes}
        canonical = self.egraph.canonical
        written = [
            now[one.operator, one.head, tuple(canonical(value) for value in one.inputs)]
            for one in self._written
        ]
        return list(dict.fromkeys(written))

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

    def _insert(self, one: Node, types: Mapping[str, TensorType], values: dict[str, int]) -> None:
        """Add a node; its results get numbers in `values`, or become equal to those that they have."""
        inputs = tuple(values[name] if name else ABSENT for name in one.inputs)
        while inputs and inputs[-1] == ABSENT:
            inputs = inputs[:-1]
        if one.operator == "Identity":
            self._name(values, one.outputs[0], inputs[0])
            return
        key = one.attributes, tuple(bool(name) for name in one.outputs)
        if key not in self._heads:
            self._heads[key] = len(self._attributes)
            self._attributes.append(key)
        head = self._heads[key]
        there = self.egraph.find(one.operator, head, inputs)
        if there is not None:
            for name, value in zip(one.outputs, there.outputs, strict=True):
                if name:
                    self._name(values, name, value)
            return
        for name in one.results:
            if name not in values:
                values[name] = self._fresh(types.get(name))
        outputs = tuple(values[name] if name else ABSENT for name in one.outputs)
        self.egraph.add(one.operator, head, inputs, outputs)

    def _name(self, values: dict[str, int], name: str, value: int) -> None:
        if name in values:
            self.egraph.add_equal(values[name], value)
        else:
            values[name] = value

    def rebuild(self) -> None:
        """Merge what is equal, and what is known of it."""
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
        """Find out how large the elements of values may be, by any operator that makes them."""
        for one in nodes:
            unknown = [x for x in one.outputs if x and self._sizes.get(x, Size.UNKNOWN) is not Size.ORDINARY]
            if unknown:
                part = self.part([one], [])
                ordinary = {
                    name: Size.ORDINARY for name in part.inputs if part.sizes.get(name) is Size.ORDINARY
                }
                [node] = part.nodes.values()
                found = dict(size_of_results(node, ordinary, part.weights, part.types))
                for value in unknown:
                    size = min(found[_name_of(value)], self._sizes.get(value, Size.UNKNOWN))
                    self._sizes[value] = size

    def canonical(self, name: str) -> int:
        """Return the number of one of the graph's values."""
        return self.egraph.canonical(self.values[name])

    def type_of(self, value: int) -> TensorType | None:
        """Return the type of a value; None where it is not known."""
        return self._types.get(value)

    def node(self, one: ENode) -> Node:
        """Return an operator with names for its values."""
        attributes, _ = self._attributes[one.head]
        return Node(
            one.operator,
            tuple(_name_of(value) for value in one.inputs),
            tuple(_name_of(value) for value in one.outputs),
            attributes,
        )

    def part(self, nodes: Sequence[ENode], outputs: Sequence[int]) -> Part:
        """Return some operators as a graph of their own.

        Args:
            nodes: The operators.
            outputs: Values that the graph returns.
        """
        plain = [self.node(one) for one in nodes]
        made = {name: one.name for one in plain for name in one.results}
        users: dict[str, tuple[str, ...]] = {}
        for one in plain:
            for name in dict.fromkeys(one.operands):
                users[name] = (*users.get(name, ()), one.name)
        values = {value for one in nodes for value in (*one.inputs, *one.outputs) if value}
        weights = {_name_of(value): self.weights[value] for value in values if value in self.weights}
        return Part(
            {one.name: one for one in plain},
            made,
            users,
            {_name_of(value): self._types[value] for value in values if value in self._types},
            weights,
            tuple(name for name in users if name not in made and name not in weights),
            tuple(_name_of(value) for value in outputs),
            self.graph.opsets,
            {_name_of(value): self._sizes[value] for value in values if value in self._sizes},
        )

    def apply(self, rule: Rule, query: Query, found: Sequence[ENode]) -> None:
        """Add what a rule makes of some operators, if it applies there: it is equal to what they make.

        Args:
            rule: The rule.
            query: One of its queries.
            found: The operators that match it.
        """
        made = [value for one in found for value in one.outputs if value]
        if len(set(made)) < len(made) or _circular(found) or any(value in self.weights for value in made):
            return  # one operator twice, operators of equal values, or nothing to compute
        roots = [
            value
            for atom, one in zip(query, found, strict=True)
            for variable, value in zip(atom.outputs, one.outputs, strict=True)
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
                values[name] = self._weight(weight)
            for one in rewrite.added:
                self._insert(one, rewrite.types, values)
            for old, new in rewrite.replaced.items():
                self.egraph.add_equal(values[old], values[new])


def _circular(nodes: Sequence[ENode]) -> bool:
    """Say whether operators need their own results, which in an e-graph equal values make possible."""
    left = list(nodes)
    while left:
        made = {value for one in left for value in one.outputs if value}
        free = [one for one in left if made.isdisjoint(one.inputs)]
        if not free:
            return True
        left = [one for one in left if one not in free]
    return False


def _name_of(value: int) -> str:
    return f"v{value}" if value else ""
