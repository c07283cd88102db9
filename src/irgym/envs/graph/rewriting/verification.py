"""Verification of rules: results of random instances in float64, before and after the rewrite.

Operators are evaluated by numpy (`irgym.envs.graph.reference`), not by ONNX Runtime, whose rounding in
float32 could hide a wrong rule.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Attribute, Node
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Literal, Weight, Weights, weight_of
from irgym.envs.graph.reference.operators import evaluate, types_of
from irgym.envs.graph.rewriting.building import RuleError
from irgym.envs.graph.rewriting.language import (
    ABSENT,
    Any_,
    Named,
    Number,
    Operator,
    Statement,
    Term,
)
from irgym.envs.graph.rewriting.rule import Rule, Sample

Array = NDArray[Any]

ALLOWED = 1e-9
"""Greatest accepted error in float64, relative to the greatest value."""


@dataclass(frozen=True)
class Instance:
    """A graph that is an instance of a pattern, with data to run it.

    Attributes:
        graph: The graph.
        feeds: Arrays for the inputs.
        weights: Arrays of the weights.
        anchor: Name of the node that the pattern's first statement matches.
    """

    graph: Graph
    feeds: Mapping[str, Array]
    weights: Weights
    anchor: str


def run(graph: Graph, feeds: Mapping[str, Array], weights: Weights, block: int) -> list[Array]:
    """Return the outputs of a graph, evaluated by the reference."""
    values = dict(feeds)
    for node in graph.order:
        operands = [_operand(graph, weights, values, name) for name in node.inputs]
        results = evaluate(node.operator, operands, dict(node.attributes), len(node.outputs), block=block)
        values.update({name: array for name, array in zip(node.outputs, results, strict=True) if name})
    return [values[name] if name in values else weights.array(graph.weights[name]) for name in graph.outputs]


def _operand(graph: Graph, weights: Weights, values: Mapping[str, Array], name: str) -> Array | None:
    if not name:
        return None
    return values[name] if name in values else weights.array(graph.weights[name])


class _Instances:
    """Builds the graph of an instance, statement by statement."""

    def __init__(self, rule: Rule, sample: Sample, precision: str, opset: int) -> None:
        self.rule = rule
        self.sample = sample
        self.precision = precision
        self.opset = opset
        self.nodes: list[Node] = []
        self.types: dict[str, TensorType] = {}
        self.arrays: dict[str, Array] = {}
        self.weights: dict[str, Weight] = {}
        self.feeds: dict[str, Array] = {}
        self.inner = 0

    def build(self, block: int) -> Instance:
        """Return the instance."""
        anchor = ""
        pending = list(self.rule.pattern)
        while pending:
            made = {name for statement in pending for name in statement.outputs}
            statement = next(waiting for waiting in pending if not made & waiting.operands)
            pending.remove(statement)
            name = self._each(statement, block) if statement.each else self._statement(statement, block)
            anchor = name if statement is self.rule.pattern[0] else anchor
        used = {name for statement in self.rule.pattern for name in statement.operands}
        made = [name for statement in self.rule.pattern for name in statement.outputs]
        made = [name for name in made if name not in used or name in self.rule.roots]
        outputs = [name for root in made if root != ABSENT for name in self._named(root)]
        graph = Graph.of(self.nodes, self.types, self.weights, list(self.feeds), outputs, [("", self.opset)])
        return Instance(graph, self.feeds, Weights(self.arrays), anchor)

    def _statement(self, statement: Statement, block: int) -> str:
        outputs: list[str] = []
        for name in statement.outputs:
            count = self.sample.counts[name] if name in statement.several else None
            given = "" if name == ABSENT else name
            outputs += [given] if count is None else [f"{name}.{place}" for place in range(count)]
        return self._node(statement.node, outputs, block)

    def _each(self, statement: Statement, block: int) -> str:
        """Make a node for each of several values, and return the name of the first."""
        [output] = statement.outputs
        columns = {item: self._several(values) for item, values in statement.each}
        names = [
            self._node(_with(statement.node, row), [f"{output}.{place}"], block)
            for place, row in enumerate(
                {item: column[place] for item, column in columns.items()}
                for place in range(len(next(iter(columns.values()))))
            )
        ]
        return names[0]

    def _several(self, name: str) -> list[str]:
        """Return the names of the values that a name stands for."""
        return self._term(Any_(name, rest=True), 0)

    def _named(self, root: str) -> list[str]:
        return [root] if root in self.types else [name for name in self.types if name.startswith(f"{root}.")]

    def _node(self, pattern: Operator, outputs: Sequence[str], block: int) -> str:
        inputs: list[str] = []
        for term in pattern.operands:
            inputs += self._term(term, block)
        attributes: dict[str, Attribute] = dict(self.sample.nodes.get(pattern.name, {}))
        operators = pattern.operators
        single = operators is not None and pattern.operator in operators
        operator = pattern.operator if single else self.sample.operators[pattern.name]
        for name, value in pattern.attributes:
            attributes[name] = self.sample.attributes[value.name] if isinstance(value, Named) else value
        known = [self._known(name) for name in inputs]
        types = types_of(
            operator,
            [self.types[name] if name else None for name in inputs],
            attributes,
            known,
            len(outputs),
            block=block,
        )
        self.types.update({name: kind for name, kind in zip(outputs, types, strict=True) if name})
        self.nodes.append(Node(operator, tuple(inputs), tuple(outputs), tuple(sorted(attributes.items()))))
        return outputs[0]

    def _known(self, name: str) -> Array | None:
        weight = self.weights.get(name)
        return weight.array if isinstance(weight, Literal) else None

    def _term(self, term: Term, block: int) -> list[str]:
        if isinstance(term, Operator):
            self.inner += 1
            return [self._node(term, [f"{term.name or 'inner'}_{self.inner}"], block)]
        if isinstance(term, Number):
            name = f"number_{len(self.weights)}"
            whole = isinstance(term.value, int)
            self._weight(name, np.array(term.value, np.int64 if whole else self.precision))
            return [name]
        if term.name in self.types:
            return [term.name]
        value = self.sample.values.get(term.name)
        if term.rest:
            made = [name for name in self.types if name.startswith(f"{term.name}.")]
            if made:
                return made
            return [
                self._leaf(f"{term.name}.{place}", array, term) for place, array in enumerate(value or ())
            ]
        return [""] if value is None else [self._leaf(term.name, value, term)]

    def _leaf(self, name: str, value: Any, term: Any_) -> str:
        array = np.asarray(value)
        if term.name in self.sample.weights:
            self._weight(name, array)
        elif name not in self.types:
            self.feeds[name] = array
            self.types[name] = TensorType(str(array.dtype), array.shape)
        return name

    def _weight(self, name: str, array: Array) -> None:
        self.arrays[name] = array
        self.weights[name] = weight_of(name, array)
        self.types[name] = self.weights[name].type


def _with(pattern: Operator, names: Mapping[str, str]) -> Operator:
    """Return a pattern with some values renamed."""
    operands = tuple(
        replace(term, name=names.get(term.name, term.name))
        if isinstance(term, Any_)
        else _with(term, names)
        if isinstance(term, Operator)
        else term
        for term in pattern.operands
    )
    return replace(pattern, operands=operands)


def instance_of(
    rule: Rule, sample: Sample, block: int, precision: str = "float64", opset: int = 20
) -> Instance:
    """Return the graph of a sample.

    Args:
        rule: The rule.
        sample: An instance of its pattern.
        block: Channels of a block in the layout of ONNX Runtime's nchwc operators.
        precision: Type of the numbers in the pattern.
        opset: Version of ONNX's operator set.

    Raises:
        Exception: An operator refuses the operands; the type is that of numpy or the reference.
    """
    return _Instances(rule, sample, precision, opset).build(block)


def verify(rule: Rule, rng: np.random.Generator, block: int) -> Instance:
    """Apply a rule to a random instance of its pattern, and compare the results before and after.

    Raises:
        RuleError: The rule does not apply, or changes results or their types.
    """
    instance = instance_of(rule, rule.sample(rng), block)
    graph = instance.graph
    sites = list(rule.sites(graph, graph.nodes[instance.anchor], block, "float64"))
    if not sites:
        raise RuleError(f"{rule.name} does not apply to an instance of the rule's pattern")
    expected = run(graph, instance.feeds, instance.weights, block)
    for site in sites:
        after = graph.rewritten(rule.rewrite(graph, site, block))
        if after.outputs != graph.outputs:
            raise RuleError(f"{rule.name} changes the names of outputs")
        for name, before, now in zip(
            graph.outputs, expected, run(after, instance.feeds, instance.weights, block), strict=True
        ):
            if (str(now.dtype), now.shape) != (str(before.dtype), before.shape):
                raise RuleError(
                    f"{rule.name}: {name} was {before.dtype}{before.shape}, is {now.dtype}{now.shape}"
                )
            error = error_of(before, now)
            if not error <= ALLOWED:
                raise RuleError(f"{rule.name}: {name} is off by {error:.1e} of its greatest value")
    return instance


def error_of(wanted: Array, got: Array) -> float:
    """Return the greatest difference relative to the greatest value; infinite if finite elements differ."""
    if wanted.dtype.kind not in "fc":
        return 0.0 if np.array_equal(wanted, got) else float("inf")
    if not np.array_equal(np.isfinite(wanted), np.isfinite(got)):
        return float("inf")
    there = np.isfinite(wanted)
    greatest = float(np.abs(wanted[there]).max(initial=1e-30))
    return float(np.abs(wanted[there] - got[there]).max(initial=0.0)) / greatest
