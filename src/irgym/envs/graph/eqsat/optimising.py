"""Optimisation of a graph by equality saturation: saturate, then extract the cheapest graph."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from irgym.envs.graph.eqsat.choosing import TreeSearch, chosen_saturation
from irgym.envs.graph.eqsat.costs import Prices
from irgym.envs.graph.eqsat.egraph import ENode
from irgym.envs.graph.eqsat.extraction import (
    EXTRACTION_S,
    Choice,
    Choices,
    Class,
    Extraction,
    Method,
    extract,
    rough_cost,
)
from irgym.envs.graph.eqsat.saturation import Limits, Saturation, saturate
from irgym.envs.graph.eqsat.tensors import Tensors
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Node
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Weight
from irgym.envs.graph.rewriting.rule import Rule


@dataclass(frozen=True)
class Optimised:
    """The result of equality saturation.

    Attributes:
        graph: The cheapest graph found, with the inputs and outputs of the original.
        saturation: The saturated e-graph.
        extraction: The extraction from the e-graph.
        kept: Whether the graph is the original, since the extracted graph costs more.
        seconds: Wall-clock time of saturation, measurements and extraction.
    """

    graph: Graph
    saturation: Saturation
    extraction: Extraction
    kept: bool
    seconds: float

    @property
    def words(self) -> str:
        """Limits and optimality of the result, in words."""
        nodes = self.saturation.iterations[-1].nodes
        kept = "; it costs more than the original, which is kept" if self.kept else ""
        return f"{self.saturation.stopped}, with {nodes:,} operators; {self.extraction.how}{kept}"


def optimised(
    graph: Graph,
    rules: Sequence[Rule],
    prices: Prices,
    block: int,
    limits: Limits,
    extraction_s: float = EXTRACTION_S,
    search: TreeSearch | None = None,
    method: Method = "ilp",
) -> Optimised:
    """Return the cheapest graph that equality saturation finds; it costs at most as much as the original.

    Args:
        graph: The graph.
        rules: The rules.
        prices: Costs of operators.
        block: Channels of a block in the layout of ONNX Runtime's nchwc operators.
        limits: Limits of the saturation.
        extraction_s: Time limit of the integer linear program.
        search: Settings of a tree search that chooses the order of the rules; by default all rules are
            applied in each iteration.
        method: Method of extraction.

    Raises:
        BackendError: egglog or scipy is not installed.
        BaselineError: The graph has operators with subgraphs.
    """
    started = time.perf_counter()

    def cheapest_tree(tensors: Tensors) -> float:
        return rough_cost(_choices(tensors, prices), _roots(tensors))

    if search is None:
        saturation = saturate(graph, rules, block, limits)
    else:
        saturation = chosen_saturation(graph, rules, block, limits, cheapest_tree, search)
    tensors = saturation.tensors
    extraction = extract(_choices(tensors, prices), _roots(tensors), extraction_s, method)
    kept = total(graph, prices) < extraction.cost
    cheapest = graph if kept else _graph_of(tensors, extraction)
    return Optimised(cheapest, saturation, extraction, kept, time.perf_counter() - started)


def total(graph: Graph, prices: Prices) -> float:
    """Return the cost of the operators of a graph, all of which have a cost."""
    operators = [(graph, node) for node in graph.nodes.values()]
    return sum(prices(operators, len(operators)))


def _roots(tensors: Tensors) -> list[Class]:
    return [_made(tensors.canonical(name)) for name in tensors.graph.outputs]


def _made(value: int) -> Class:
    return "value", value


def _choices(tensors: Tensors, prices: Prices) -> Choices:
    """Return the choices for each value. A tuple of results is a value too, and its parts are free."""
    written = tensors.written()
    known = set(written)
    # The operators of the original graph come first, so that there is always a graph to extract.
    nodes = [*written, *(node for node in tensors.egraph.nodes if node not in known)]
    costs = prices([(tensors.part([node], ()), tensors.node(node)) for node in nodes], len(written))
    ways: dict[Class, list[Choice]] = {}
    free = {tensors.canonical(name) for name in tensors.graph.inputs} | tensors.weights.keys()
    for value in free:
        ways[_made(value)] = [Choice(0.0, frozenset(), None)]
    for node, cost in zip(nodes, costs, strict=True):
        if math.isinf(cost):
            continue
        needs = frozenset(_made(value) for value in node.inputs if value)
        way = Choice(cost, needs, node)
        if not node.several:
            if node.outputs[0] not in free:
                ways.setdefault(_made(node.outputs[0]), []).append(way)
            continue
        ways.setdefault(("several", node.several), []).append(way)
        taken = Choice(0.0, frozenset({("several", node.several)}), None)
        for value in node.outputs:
            if value and value not in free:
                ways.setdefault(_made(value), []).append(taken)
    return ways


def _graph_of(tensors: Tensors, extraction: Extraction) -> Graph:
    """Return the graph of an extraction, with the original names of values where there are any."""
    original = tensors.graph
    names: dict[int, str] = {}
    for name in (*original.outputs, *original.inputs, *original.types):
        if name in tensors.values:
            names.setdefault(tensors.canonical(name), name)
    for name in original.inputs:
        names[tensors.canonical(name)] = name
    taken = {*original.types, *original.producers, *original.inputs}
    types: dict[str, TensorType] = {
        name: original.types[name] for name in original.inputs if name in original.types
    }
    weights: dict[str, Weight] = {}

    def named(value: int) -> str:
        if not value:
            return ""
        if value not in names:
            names[value] = _fresh(f"eqsat.{value}", taken)
        name = names[value]
        kind, weight = tensors.type_of(value), tensors.weights.get(value)
        if kind is not None:
            types[name] = kind
        if weight is not None:
            weights[name] = weight
        return name

    nodes: list[Node] = []
    made = set(original.inputs)
    for choice in extraction.chosen.values():
        if isinstance(choice.what, ENode):
            node = choice.what
            outputs: list[str] = []
            for value in node.outputs:
                name = named(value)
                if name in made or name in weights:  # made elsewhere, but this operator needs a name for it
                    kind = types.get(name)
                    name = _fresh(f"{name}.unused", taken)
                    if kind is not None:
                        types[name] = kind
                outputs.append(name)
            made.update(outputs)
            inputs = tuple(named(value) for value in node.inputs)
            nodes.append(Node(node.operator, inputs, tuple(outputs), tensors.node(node).attributes))
    for name in original.outputs:
        source = named(tensors.canonical(name))
        if source != name:
            nodes.append(Node("Identity", (source,), (name,)))
            types.update({name: types[source]} if source in types else {})
    return Graph.of(nodes, types, weights, original.inputs, original.outputs, original.opsets)


def _fresh(base: str, taken: set[str]) -> str:
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}.{number}"
    taken.add(name)
    return name
