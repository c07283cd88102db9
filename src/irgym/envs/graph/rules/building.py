"""What rules are written in beside patterns: conditions on values, and what takes the place of nodes.

Both are Python that is run with the names of a match. An operator is a function that makes a node and returns
its value, or its values where `outputs=` asks for several. Functions in lower case compute weights
(`irgym.envs.graph.ir.weights`) or say something of values.
"""

import math
from collections.abc import Callable, Mapping
from types import CodeType
from typing import Any

from irgym.envs.graph.ir.finiteness import Size, size_of_weight
from irgym.envs.graph.ir.graph import Attribute, Graph, Node, Rewrite
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import FUNCTIONS, Literal, Stored, Weight, computed, literal
from irgym.envs.graph.reference.operators import types_of
from irgym.envs.graph.rules.language import operator_named
from irgym.envs.graph.rules.matching import Match

BUILTINS = {
    one.__name__: one for one in (abs, all, any, dict, enumerate, len, list, max, min, range, sum, tuple, zip)
}
"""Python's own functions that rules may use."""


VARIADIC = frozenset({"Split"})
"""Operators all of whose outputs must have a name; others leave out those that nothing uses."""


class Value:
    """A value of a graph, or of what takes the place of some of its nodes.

    Attributes:
        name: Its name; empty for a new one.
        type: Its type.
        weight: The weight that it is; None for what depends on inputs.
    """

    __slots__ = ("_graph", "name", "type", "weight")

    def __init__(
        self, name: str, kind: TensorType, weight: Weight | None = None, graph: Graph | None = None
    ) -> None:
        self.name = name
        self.type = kind
        self.weight = weight
        self._graph = graph

    @property
    def shape(self) -> tuple[int, ...]:
        """Its sizes."""
        return self.type.shape

    @property
    def rank(self) -> int:
        """Number of its dimensions."""
        return len(self.shape)

    @property
    def constant(self) -> bool:
        """Whether it is a weight."""
        return self.weight is not None

    @property
    def floating(self) -> bool:
        """Whether its elements are floating-point numbers."""
        return "float" in self.type.dtype

    @property
    def size(self) -> Size:
        """How large its elements may be; see `irgym.envs.graph.ir.finiteness`."""
        if self.weight is not None:
            return size_of_weight(self.weight)
        return Size.UNKNOWN if self._graph is None else self._graph.sizes.get(self.name, Size.UNKNOWN)

    @property
    def finite(self) -> bool:
        """Whether it surely holds neither infinities nor NaN."""
        return self.size is not Size.UNKNOWN

    @property
    def ordinary(self) -> bool:
        """Whether it surely holds ordinary numbers: no such either, nor those that masks add."""
        return self.size is Size.ORDINARY

    @property
    def zero(self) -> bool:
        """Whether it is a weight of zeros."""
        return isinstance(self.weight, Stored | Literal) and self.weight.greatest == 0

    @property
    def causal(self) -> bool:
        """Whether it is a weight whose last two dimensions are a causal mask; see `Stored`."""
        return isinstance(self.weight, Stored | Literal) and self.weight.causal

    @property
    def open(self) -> bool:
        """Whether it is a weight that as a mask leaves something in each row; see `Stored`."""
        return isinstance(self.weight, Stored | Literal) and self.weight.open

    @property
    def number(self) -> float:
        """The element of a weight that has one; no number for everything else."""
        weight = self.weight
        return (
            float(weight.array.item()) if isinstance(weight, Literal) and weight.type.size == 1 else math.nan
        )

    @property
    def elements(self) -> tuple[int, ...]:
        """The elements of a small weight of whole numbers, such as a shape; none for everything else."""
        weight = self.weight
        whole = isinstance(weight, Literal) and weight.type.dtype == "int64"
        return tuple(weight.array.ravel().tolist()) if whole else ()


def names_of(graph: Graph, match: Match) -> dict[str, Any]:
    """Return what the names of a match stand for: values, attributes' values, and attributes of nodes.

    `opset` is the version of ONNX's operators that the graph is written in.
    """
    known: dict[str, Any] = {}
    for name, bound in match.values.items():
        known[name] = (
            value_of(graph, bound) if isinstance(bound, str) else tuple(value_of(graph, one) for one in bound)
        )
    known.update(match.attributes)
    known.update({name: dict(one.attributes) for name, one in match.nodes.items()})
    known["opset"] = dict(graph.opsets).get("", 0)
    return known


def value_of(graph: Graph, name: str) -> Value | None:
    """Return a value of a graph, whose type must be known; None for one that is left out."""
    return Value(name, graph.types[name], graph.weights.get(name), graph) if name else None


class Names(dict[str, Any]):
    """Names of a match, and operators by their names, which are made where they are asked for."""

    def __init__(self, known: Mapping[str, Any], operator: Callable[[str], Callable[..., Any]]) -> None:
        super().__init__(known)
        self._operator = operator

    def __missing__(self, name: str) -> Any:
        """Return the operator of a name.

        Raises:
            KeyError: It is the name of none.
        """
        if not name[:1].isupper():
            raise KeyError(name)
        return self._operator(operator_named(name))


class Builder:
    """Makes what takes the place of a match.

    Args:
        graph: The graph of the match.
        block: Channels of a block in the layout of ONNX Runtime's nchwc operators.
    """

    def __init__(self, graph: Graph, block: int) -> None:
        self.graph = graph
        self.block = block
        self._made: list[tuple[str, tuple[Value | None, ...], tuple[Value, ...], dict[str, Attribute]]] = []
        self._weights: list[Value] = []

    def run(self, code: CodeType, known: Mapping[str, Any]) -> dict[str, Any]:
        """Run what makes nodes, and return what names stand for then."""
        functions = {name: self._function(name) for name in FUNCTIONS}
        names = Names({**functions, **self._shapes(), **known, "__builtins__": BUILTINS}, self._operator)
        exec(code, names)
        return dict(names)

    def _operator(self, operator: str) -> Callable[..., Any]:
        def make(*operands: Value | None, outputs: int = 1, **attributes: Attribute | None) -> Any:
            given = {name: value for name, value in attributes.items() if value is not None}
            arrays = [
                one.weight.array if one is not None and isinstance(one.weight, Literal) else None
                for one in operands
            ]
            types = types_of(
                operator, [one and one.type for one in operands], given, arrays, outputs, block=self.block
            )
            values = tuple(Value("", kind) for kind in types)
            needed = operands
            while needed and needed[-1] is None:
                needed = needed[:-1]
            self._made.append((operator, needed, values, given))
            return values if outputs > 1 else values[0]

        return make

    def _function(self, name: str) -> Callable[..., Value]:
        def make(*arguments: Any) -> Value:
            plain = [one.weight if isinstance(one, Value) else one for one in arguments]
            return self._weight(computed(name, *plain))

        return make

    def _weight(self, weight: Weight) -> Value:
        value = Value("", weight.type, weight)
        self._weights.append(value)
        return value

    def _shapes(self) -> dict[str, Callable[..., Value]]:
        return {
            "whole": lambda *numbers: self._weight(literal(numbers, "int64")),
            "like": lambda value, number: self._weight(literal(number, value.type.dtype)),
        }

    def rewrite(self, removed: tuple[str, ...], roots: Mapping[str, Value], site: str) -> Rewrite:
        """Return the rewrite that puts what was made in the place of nodes.

        Args:
            removed: Names of the nodes that go.
            roots: For each value that stays, what makes it now.
            site: What names of new values begin with.
        """
        replaced: dict[str, str] = {}
        for name, value in roots.items():
            if not value.name:
                value.name = name
            else:
                replaced[name] = value.name
        taken: list[str] = []
        used = [
            value
            for operator, operands, values, _ in self._made
            for value in (*operands, *(values if operator in VARIADIC else values[:1]))
            if value
        ]
        for value in dict.fromkeys([*used, *roots.values()]):
            if not value.name:
                value.name = self.graph.fresh(f"{site}.{len(taken) + 1}", taken)
                taken.append(value.name)
        nodes = tuple(
            Node(
                operator,
                tuple(one.name if one else "" for one in operands),
                tuple(value.name for value in values),
                tuple(sorted(attributes.items())),
            )
            for operator, operands, values, attributes in self._made
        )
        new = {value.name: value for value in [*used, *roots.values()]}
        return Rewrite(
            removed,
            nodes,
            {value.name: value.weight for value in self._weights if value.name and value.weight},
            {name: value.type for name, value in new.items() if name not in self.graph.types},
            replaced,
        )
