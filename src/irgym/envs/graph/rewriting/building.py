"""What rules are written in beside patterns: conditions on values, and what takes the place of nodes.

Both are Python that is run with the names of a match. An operator is a function that makes a node and returns
its value, or its values where `outputs=` asks for several. Functions in lower case compute weights
(`irgym.envs.graph.ir.weights`) or say something of values.
"""

import math
from collections.abc import Callable, Container, Mapping, Sequence
from types import CodeType
from typing import Any

from irgym.envs.graph.ir.finiteness import Size, size_of_weight
from irgym.envs.graph.ir.functions import FUNCTIONS
from irgym.envs.graph.ir.graph import Graph, Rewrite
from irgym.envs.graph.ir.node import Attribute, Node
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Literal, Stored, Weight, computed, literal
from irgym.envs.graph.reference.operators import types_of
from irgym.envs.graph.rewriting.constants import check_constants, checked_constant
from irgym.envs.graph.rewriting.language import operator_named
from irgym.envs.graph.rewriting.matching import Match
from irgym.envs.graph.rewriting.shapes import SHAPES, ones_moved, window


class RuleError(AssertionError):
    """A rule does not apply to an instance of its pattern, or changes what is computed, or its type."""


class Attributes(dict[str, Attribute]):
    """The attributes of a node of a match, and what else tells its operator.

    Attributes:
        operator: Its operator.
        captured: Values that graphs among the attributes use.
    """

    def __init__(self, one: Node) -> None:
        super().__init__(one.attributes)
        self.operator = one.operator
        self.captured = one.captured

    def alike(self, other: "Attributes") -> bool:
        """Say whether another node has the same operator and attributes."""
        return self == other and (self.operator, self.captured) == (other.operator, other.captured)


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
    def floating(self) -> bool:
        """Whether its elements are floating-point numbers."""
        return "float" in self.type.dtype

    @property
    def solid(self) -> bool:
        """Whether it has elements."""
        return self.type.size > 0

    @property
    def constant(self) -> bool:
        """Whether it is a weight."""
        return self.weight is not None

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
    def masking(self) -> bool:
        """Whether it holds numbers near the greatest there is: times anything, they are soon infinite."""
        return self.size is Size.MASK

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
    def repeated(self) -> bool:
        """Whether it is a weight whose rows are all equal; see `Stored`."""
        return isinstance(self.weight, Stored | Literal) and bool(self.weight.row)

    @property
    def number(self) -> float:
        """The element of a weight that has one; no number for everything else."""
        weight = self.weight
        return (
            float(weight.array.item()) if isinstance(weight, Literal) and weight.type.size == 1 else math.nan
        )

    @property
    def numbers(self) -> tuple[float, ...]:
        """The elements of a small weight of floating-point numbers; none for everything else."""
        weight = self.weight
        if not isinstance(weight, Literal) or not self.floating:
            return ()
        return tuple(float(one) for one in weight.array.ravel())

    @property
    def elements(self) -> tuple[int, ...]:
        """The elements of a small weight of whole numbers, such as a shape; none for everything else."""
        weight = self.weight
        if not isinstance(weight, Literal) or weight.type.dtype != "int64":
            return ()
        return tuple(int(one) for one in weight.array.ravel())


def idle(one: Attributes, x: Value, rest: Sequence[Value | None], y: Value) -> bool:
    """Say whether a node of class `Idle` only hands on its first operand."""
    if x.type != y.type:
        return False
    operand = rest[0] if rest else None
    match one.operator:
        case "Add" | "Sub":
            return operand is not None and operand.number == 0
        case "Mul" | "Div" | "Pow":
            return operand is not None and operand.number == 1
        case "Concat":
            return not rest
        case "Slice":
            return window(x.shape, rest) is not None
        case "Transpose":
            order = one.get("perm")
            return isinstance(order, tuple) and ones_moved(x.shape, [int(axis) for axis in order])
        case "Dropout":
            training = rest[1] if len(rest) > 1 else None
            return training is None or training.number == 0
        case _:  # with the same shape, a cast, a reshape, an expansion, a tiling and a split keep all
            return True


BUILTINS = {
    **{
        one.__name__: one
        for one in (
            abs,
            all,
            any,
            dict,
            enumerate,
            int,
            len,
            list,
            max,
            min,
            range,
            set,
            sorted,
            sum,
            tuple,
            zip,
            math.prod,
        )
    },
    **SHAPES,
    "idle": idle,
}
"""Python's own functions that rules may use, and those of shapes."""


def names_used(code: CodeType) -> frozenset[str]:
    """Return the names that code uses, within comprehensions too."""
    inner = [one for one in code.co_consts if isinstance(one, CodeType)]
    return frozenset(code.co_names).union(*[names_used(one) for one in inner])


def names_of(graph: Graph, match: Match, block: int, wanted: Container[str]) -> dict[str, Any]:
    """Return what the names of a match stand for: values, attributes' values, and attributes of nodes.

    Besides them, `block` is the argument, and `opset` the version of ONNX's own operators.

    Args:
        graph: The graph of the match.
        match: The match.
        block: Channels of a block in the layout of ONNX Runtime's nchwc operators.
        wanted: Names of values and nodes; others are left out.
    """
    known: dict[str, Any] = {"block": block, **match.attributes}
    if "opset" in wanted:
        known["opset"] = dict(graph.opsets).get("", 0)
    for name, bound in match.values.items():
        if name in wanted:
            single = isinstance(bound, str)
            known[name] = value_of(graph, bound) if single else tuple([value_of(graph, one) for one in bound])
    for name, one in match.nodes.items():
        if name in wanted:
            known[name] = Attributes(one)
    return known


def value_of(graph: Graph, name: str) -> Value | None:
    """Return a value of a graph, whose type must be known; None for one that is left out."""
    return Value(name, graph.types[name], graph.weights.get(name), graph) if name else None


class Names(dict[str, Any]):
    """Names of a match, and what makes nodes and weights by its name, made where it is asked for."""

    def __init__(self, known: Mapping[str, Any], maker: Callable[[str], Callable[..., Any]]) -> None:
        super().__init__(known)
        self._maker = maker

    def __missing__(self, name: str) -> Any:
        """Return what a name makes.

        Raises:
            KeyError: It makes nothing.
        """
        return self._maker(name)


class Builder:
    """Makes what takes the place of a match.

    Args:
        graph: The graph of the match.
        block: Channels of a block in the layout of ONNX Runtime's nchwc operators.
        guarded: Whether constants must be ordinary numbers; see `constants`.
    """

    def __init__(self, graph: Graph, block: int, *, guarded: bool) -> None:
        self.graph = graph
        self.block = block
        self._guarded = guarded
        self._made: list[tuple[str, tuple[Value | None, ...], tuple[Value, ...], dict[str, Attribute]]] = []
        self._weights: list[Value] = []

    def run(self, code: CodeType, known: Mapping[str, Any]) -> dict[str, Any]:
        """Run what makes nodes, and return what names stand for then."""
        own = {"Same": self._same, "__builtins__": BUILTINS}
        names = Names({**self._literals(), **own, **known}, self._maker)
        exec(code, names)
        return dict(names)

    def _maker(self, name: str) -> Callable[..., Any]:
        if name in FUNCTIONS:
            return self._function(name)
        if not name[:1].isupper():
            raise KeyError(name)
        return self._operator(operator_named(name))

    def _same(self, like: Attributes, *operands: Value | None, **changes: Any) -> Any:
        """Make a node with the operator of another, and its attributes but for some."""
        return self._operator(like.operator)(*operands, **{**like, **changes})

    def _operator(self, operator: str) -> Callable[..., Any]:
        def make(*operands: Value | None, outputs: int | None = None, **attributes: Attribute | None) -> Any:
            given = {name: value for name, value in attributes.items() if value is not None}
            while operands and operands[-1] is None:
                operands = operands[:-1]
            if self._guarded:
                check_constants(operator, operands, given)
            arrays = [
                one.weight.array if one is not None and isinstance(one.weight, Literal) else None
                for one in operands
            ]
            types = types_of(
                operator,
                [one and one.type for one in operands],
                given,
                arrays,
                outputs or 1,
                block=self.block,
            )
            values = tuple(Value("", kind) for kind in types)
            self._made.append((operator, operands, values, given))
            return values[0] if outputs is None else values

        return make

    def _function(self, name: str) -> Callable[..., Value]:
        def make(*arguments: Any) -> Value:
            plain: list[Any] = [one.weight if isinstance(one, Value) else one for one in arguments]
            made = computed(name, *plain)
            return self._weight(checked_constant(made) if self._guarded else made)

        return make

    def _weight(self, weight: Weight) -> Value:
        value = Value("", weight.type, weight)
        self._weights.append(value)
        return value

    def _literals(self) -> dict[str, Callable[..., Value]]:
        def of(array: Any, dtype: str) -> Value:
            return self._weight(literal(array, dtype))

        def whole(*numbers: int) -> Value:
            return of(numbers, "int64")

        def indices(array: Any) -> Value:
            return of(array, "int64")

        def like(value: Value, number: float) -> Value:
            return of(number, value.type.dtype)

        return {"whole": whole, "indices": indices, "like": like}

    def rewrite(self, removed: tuple[str, ...], roots: Mapping[str, Value], site: str) -> Rewrite:
        """Return the rewrite that puts what was made in the place of nodes.

        Args:
            removed: Names of the nodes that go.
            roots: For each value that stays, what makes it now. One that must keep its name, since a run
            returns
                it, and that another value is to stand for, becomes a copy of that.
            site: What names of new values begin with.

        Raises:
            RuleError: What is made is of another type.
        """
        replaced: dict[str, str] = {}
        for name, value in roots.items():
            if value.type != self.graph.types[name]:
                raise RuleError(
                    f"{site}: {name} is of type {self.graph.types[name]}, and would be {value.type}"
                )
            if value.name and (self.graph.is_output(name) or name in self.graph.captured):
                copy = self._operator("Identity")(value)
                copy.name = name
            elif not value.name:
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
        named: dict[str, str] = {}
        for value in dict.fromkeys([*used, *roots.values()]):
            digest = value.weight.digest if value.weight and not value.name else ""
            value.name = value.name or self.graph.known.get(digest, "") or named.get(digest, "")
            if not value.name:
                value.name = self.graph.fresh(f"{site}.{len(taken) + 1}", taken)
                taken.append(value.name)
                if digest:
                    named[digest] = value.name
        nodes = tuple(
            Node(
                operator,
                tuple(one.name if one else "" for one in operands),
                _named(values),
                tuple(sorted(attributes.items())),
            )
            for operator, operands, values, attributes in self._made
        )
        new = {value.name: value for value in [*used, *roots.values()]}
        return Rewrite(
            removed,
            nodes,
            {
                value.name: value.weight
                for value in self._weights
                if value.name and value.weight and value.name not in self.graph.weights
            },
            {name: value.type for name, value in new.items() if name not in self.graph.types},
            replaced,
        )


def _named(values: Sequence[Value]) -> tuple[str, ...]:
    """Return the names of outputs, without those at the end that are left out."""
    names = [value.name for value in values]
    while not names[-1]:
        names.pop()
    return tuple(names)
