"""The cheapest graph that equality saturation finds for a graph."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from irgym.envs.graph.eqsat.costs import Prices
from irgym.envs.graph.eqsat.egraph import ENode
from irgym.envs.graph.eqsat.extraction import Choice, Choices, Class, Extraction, extract
from irgym.envs.graph.eqsat.saturation import Limits, Saturation, saturate
from irgym.envs.graph.eqsat.tensors import Tensors
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Node
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Weight
from irgym.envs.graph.rewriting.rule import Rule

EXTRACTION_S = 60.0
"""Time limit of the extraction."""


@dataclass(frozen=True)
class Optimised:
    """What equality saturation makes of a graph.

    Attributes:
        graph: The cheapest graph found, with the inputs and outputs of the original.
        saturation: The e-graph that it is from.
        extraction: How it was found there.
        seconds: Wall-clock time of both, and of learning what operators cost.
    """

    graph: Graph
    saturation: Saturation
    extraction: Extraction
    seconds: float

    @property
    def words(self) -> str:
        """What limits there were."""
        nodes = self.saturation.iterations[-1].nodes
        return f"{self.saturation.stopped}, with {nodes:,} operators; {self.extraction.how}"


def optimised(
    graph: Graph,
    rules: Sequence[Rule],
    prices: Prices,
    block: int,
    limits: Limits,
    extraction_s: float = EXTRACTION_S,
) -> Optimised:
    """Return the cheapest graph that equality saturation finds.

    Args:
        graph: The graph.
        rules: The rules.
        prices: What operators cost.
        block: Channels of a block in the layout of ONNX Runtime's nchwc operators.
        limits: What stops the saturation.
        extraction_s: Time limit of the extraction.

    Raises:
        BackendError: egglog or scipy is not installed.
        BaselineError: The graph has operators with graphs of their own.
    """
    started = time.perf_counter()
    saturation = saturate(graph, rules, block, limits)
    tensors = saturation.tensors
    roots = [_made(tensors.canonical(name)) for name in graph.outputs]
    extraction = extract(_choices(tensors, prices), roots, extraction_s)
    cheapest = _graph_of(tensors, extraction)
    return Optimised(cheapest, saturation, extraction, time.perf_counter() - started)


def _made(value: int) -> Class:
    return "value", value


def _choices(tensors: Tensors, prices: Prices) -> Choices:
    """Return the ways to make each value; what has several results is made once, and each taken out of it."""
    written = tensors.written()
    known = set(written)
    # With what the model has first, there is always something to extract.
    nodes = [*written, *(one for one in tensors.egraph.nodes if one not in known)]
    costs = prices([(tensors.part([one], ()), tensors.node(one)) for one in nodes], len(written))
    ways: dict[Class, list[Choice]] = {}
    free = {tensors.canonical(name) for name in tensors.graph.inputs} | tensors.weights.keys()
    for value in free:
        ways[_made(value)] = [Choice(0.0, frozenset(), None)]
    for one, cost in zip(nodes, costs, strict=True):
        if math.isinf(cost):
            continue
        needs = frozenset(_made(value) for value in one.inputs if value)
        way = Choice(cost, needs, one)
        if not one.several:
            if one.outputs[0] not in free:
                ways.setdefault(_made(one.outputs[0]), []).append(way)
            continue
        ways.setdefault(("several", one.several), []).append(way)
        taken = Choice(0.0, frozenset({("several", one.several)}), None)
        for value in one.outputs:
            if value and value not in free:
                ways.setdefault(_made(value), []).append(taken)
    return ways


def _graph_of(tensors: Tensors, extraction: Extraction) -> Graph:
    """Return the graph of an extraction, whose values have the original's names where it has them."""
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
            one = choice.what
            outputs: list[str] = []
            for value in one.outputs:
                name = named(value)
                if name in made or name in weights:  # another operator makes it, but this one must name it
                    kind = types.get(name)
                    name = _fresh(f"{name}.unused", taken)
                    if kind is not None:
                        types[name] = kind
                outputs.append(name)
            made.update(outputs)
            inputs = tuple(named(value) for value in one.inputs)
            nodes.append(Node(one.operator, inputs, tuple(outputs), tensors.node(one).attributes))
    for name in original.outputs:
        own = named(tensors.canonical(name))
        if own != name:
            nodes.append(Node("Identity", (own,), (name,)))
            types.update({name: types[own]} if own in types else {})
    return Graph.of(nodes, types, weights, original.inputs, original.outputs, original.opsets)


def _fresh(base: str, taken: set[str]) -> str:
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}.{number}"
    taken.add(name)
    return name
