"""Values and attributes of a match, as conditions and replacements of rules see them."""

import math

from irgym.envs.graph.ir.finiteness import Size, size_of_weight
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Attribute, Node
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Literal, Sizes, Stored, Weight


class Attributes(dict[str, Attribute]):
    """The attributes of a node of a match.

    Attributes:
        operator: Operator of the node.
        captured: Outer values that subgraphs among the attributes use.
    """

    def __init__(self, node: Node) -> None:
        super().__init__(node.attributes)
        self.operator = node.operator
        self.captured = node.captured

    def alike(self, other: "Attributes") -> bool:
        """Say whether another node has the same operator and attributes."""
        return self == other and (self.operator, self.captured) == (other.operator, other.captured)


class Value:
    """A value of a graph, or of the replacement for some of its nodes.

    Attributes:
        name: Name in the graph; empty for a new value.
        type: Element type and shape.
        weight: The weight behind the value; None where the value depends on inputs.
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
        """Sizes of the dimensions."""
        return self.type.shape

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def floating(self) -> bool:
        """Whether the elements are floating-point numbers."""
        return "float" in self.type.dtype

    @property
    def solid(self) -> bool:
        """Whether there is at least one element."""
        return self.type.size > 0

    @property
    def constant(self) -> bool:
        """Whether the value is a weight."""
        return self.weight is not None

    @property
    def size(self) -> Size:
        """Range of the elements; see `irgym.envs.graph.ir.finiteness`."""
        if self.weight is not None:
            return size_of_weight(self.weight)
        return Size.UNKNOWN if self._graph is None else self._graph.sizes.get(self.name, Size.UNKNOWN)

    @property
    def finite(self) -> bool:
        """Whether all elements are known to be finite: neither infinite nor NaN."""
        return self.size is not Size.UNKNOWN

    @property
    def ordinary(self) -> bool:
        """Whether all elements are known to be finite and smaller than the numbers that masks add."""
        return self.size is Size.ORDINARY

    @property
    def masking(self) -> bool:
        """Whether elements are near the greatest finite number, so that most products overflow."""
        return self.size is Size.MASK

    @property
    def zero(self) -> bool:
        """Whether the value is a weight of zeros."""
        return isinstance(self.weight, Stored | Literal) and self.weight.greatest == 0

    @property
    def causal(self) -> bool:
        """Whether the value is a weight whose last two dimensions are a causal mask; see `Stored`."""
        return isinstance(self.weight, Stored | Literal) and self.weight.causal

    @property
    def open(self) -> bool:
        """Whether the value is a weight that, as a mask, hides no row completely; see `Stored`."""
        return isinstance(self.weight, Stored | Literal) and self.weight.open

    @property
    def repeated(self) -> bool:
        """Whether the value is a weight whose rows are all equal; see `Stored`."""
        return isinstance(self.weight, Stored | Literal) and bool(self.weight.row)

    @property
    def number(self) -> float:
        """The element of a weight with one element; NaN for any other value."""
        weight = self.weight
        return (
            float(weight.array.item()) if isinstance(weight, Literal) and weight.type.size == 1 else math.nan
        )

    @property
    def numbers(self) -> tuple[float, ...]:
        """The elements of a small floating-point weight; empty for any other value."""
        weight = self.weight
        if not isinstance(weight, Literal) or not self.floating:
            return ()
        return tuple(float(element) for element in weight.array.ravel())

    @property
    def elements(self) -> tuple[int, ...]:
        """The elements of a small int64 weight, such as a shape; empty for any other value."""
        weight = self.weight
        if isinstance(weight, Sizes) and weight.type.dtype == "int64":
            return weight.elements
        if not isinstance(weight, Literal) or weight.type.dtype != "int64":
            return ()
        return tuple(int(element) for element in weight.array.ravel())


def value_of(graph: Graph, name: str) -> Value | None:
    """Return a value of a graph, whose type must be known; None for an optional operand without a name."""
    return Value(name, graph.types[name], graph.weights.get(name), graph) if name else None
