"""Replacements of rules: nodes and weights that take the place of a match.

A replacement is Python that runs with the names of a match. Calling an operator makes a node and returns the
node's value, or several values with `outputs=`. Functions in lower case compute weights
(`irgym.envs.graph.ir.functions`) or answer questions about values (`vocabulary`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import CodeType
from typing import Any, NamedTuple, cast

import numpy as np

from irgym.envs.graph.ir.computing import computed
from irgym.envs.graph.ir.functions import FUNCTIONS
from irgym.envs.graph.ir.graph import Graph, Rewrite
from irgym.envs.graph.ir.node import Attribute, Node
from irgym.envs.graph.ir.sizes import Undecided, any_open
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Literal, Sizes, Weight, literal, sizes_of
from irgym.envs.graph.reference.operators import types_by_key, types_of
from irgym.envs.graph.rewriting.constants import check_constants, checked_constant
from irgym.envs.graph.rewriting.language import operator_named
from irgym.envs.graph.rewriting.quantisation import unsigned_zero
from irgym.envs.graph.rewriting.values import Attributes, Value
from irgym.envs.graph.rewriting.vocabulary import BUILTINS


class RuleError(AssertionError):
    """A rule fails, does not apply to an instance of its pattern, or changes a result or its type."""


VARIADIC = frozenset({"Split"})
"""Operators whose outputs all need a name. Other operators omit unused outputs."""


def _refuse_open(attributes: Mapping[str, Any]) -> None:
    """Refuse attributes that would be open sizes: they are part of the model.

    Raises:
        Undecided: An attribute depends on symbols.
    """
    for name, value in attributes.items():
        several = cast(Iterable[Any], value if isinstance(value, tuple | list) else (value,))
        if any_open(several):
            raise Undecided(f"{name} = {value}")


class _Names(dict[str, Any]):
    """Names of a match. Names of operators and functions are resolved when code asks for them."""

    def __init__(self, known: Mapping[str, Any], maker: Callable[[str], Callable[..., Any]]) -> None:
        super().__init__(known)
        self._maker = maker

    def __missing__(self, name: str) -> Any:
        """Return the function that makes a node or a weight.

        Raises:
            KeyError: No operator or function has the name.
        """
        return self._maker(name)


class _NewNode(NamedTuple):
    """A node of the replacement, whose values may not have names yet."""

    operator: str
    operands: tuple[Value | None, ...]
    results: tuple[Value, ...]
    attributes: dict[str, Attribute]

    @property
    def named(self) -> tuple[Value, ...]:
        """The results that need a name whether they are used or not."""
        return self.results if self.operator in VARIADIC else self.results[:1]

    def node(self) -> Node:
        """Return the node, once its values have names; unused outputs at the end are left out."""
        outputs = [value.name for value in self.results]
        while not outputs[-1]:
            outputs.pop()
        operands = tuple(operand.name if operand else "" for operand in self.operands)
        return Node(self.operator, operands, tuple(outputs), tuple(sorted(self.attributes.items())))


class Builder:
    """Builds the replacement of a match.

    Args:
        graph: The graph of the match.
        block: Channels of a block in the layout of ONNX Runtime's nchwc operators.
        guarded: Whether new constants must be ordinary numbers; see `constants`.
    """

    def __init__(self, graph: Graph, block: int, *, guarded: bool) -> None:
        self.graph = graph
        self.block = block
        self._guarded = guarded
        self._made: list[_NewNode] = []
        self._weights: list[Value] = []

    def run(self, code: CodeType, known: Mapping[str, Any]) -> dict[str, Any]:
        """Run the code of a replacement, and return the values of all names after it."""
        own = {"Same": self._same, "__builtins__": BUILTINS}
        names = _Names({**self._literals(), **own, **known}, self._maker)
        exec(code, names)
        return dict(names)

    def _maker(self, name: str) -> Callable[..., Any]:
        if name in FUNCTIONS:
            return self._function(name)
        if not name[:1].isupper():
            raise KeyError(name)
        return self._operator(operator_named(name))

    def _same(self, like: Attributes, *operands: Value | None, **changes: Any) -> Any:
        """Make a node with the operator and attributes of another, except for some changes."""
        return self._operator(like.operator)(*operands, **{**like, **changes})

    def _operator(self, operator: str) -> Callable[..., Any]:
        def make(*operands: Value | None, outputs: int | None = None, **attributes: Attribute | None) -> Any:
            given = {name: value for name, value in attributes.items() if value is not None}
            _refuse_open(given)
            while operands and operands[-1] is None:
                operands = operands[:-1]
            if self._guarded:
                check_constants(operator, operands, given)
            arrays = [
                operand.weight.array
                if operand is not None and isinstance(operand.weight, Literal | Sizes)
                else None
                for operand in operands
            ]
            types = self._types(operator, operands, given, arrays, outputs or 1)
            values = tuple(Value("", kind) for kind in types)
            self._made.append(_NewNode(operator, operands, values, given))
            return values[0] if outputs is None else values

        return make

    def _types(
        self,
        operator: str,
        operands: Sequence[Value | None],
        attributes: Mapping[str, Attribute],
        constants: Sequence[Any],
        outputs: int,
    ) -> Sequence[TensorType]:
        if any(constant is not None for constant in constants):
            kinds = [operand and operand.type for operand in operands]
            return types_of(operator, kinds, attributes, constants, outputs, block=self.block)
        keys = tuple([operand and operand.type.key for operand in operands])
        return types_by_key(operator, keys, tuple(attributes.items()), outputs, self.block)

    def _function(self, name: str) -> Callable[..., Value]:
        def make(*arguments: Any) -> Value:
            plain: list[Any] = [
                argument.weight if isinstance(argument, Value) else argument for argument in arguments
            ]
            made = computed(name, *plain)
            return self._weight(checked_constant(made) if self._guarded else made)

        return make

    def _weight(self, weight: Weight) -> Value:
        value = Value("", weight.type, weight)
        self._weights.append(value)
        return value

    def _literals(self) -> dict[str, Callable[..., Value]]:
        def whole(*numbers: int) -> Value:
            return self._weight(sizes_of(np.array(numbers, object)))

        def indices(array: Any) -> Value:
            return self._weight(sizes_of(np.asarray(array, object)))

        def like(value: Value, number: float) -> Value:
            return self._weight(literal(number, value.type.dtype))

        def unsigned(zero: Value) -> Value:
            return self._weight(unsigned_zero(zero))

        return {"whole": whole, "indices": indices, "like": like, "unsigned": unsigned}

    def rewrite(self, removed: tuple[str, ...], roots: Mapping[str, Value], site: str) -> Rewrite:
        """Return the rewrite that replaces nodes with the new ones.

        Args:
            removed: Names of the nodes to remove.
            roots: New value for each value that remains in use. Where an existing value replaces one that
                must keep its name, because the model returns it, the new value is a copy.
            site: Prefix for the names of new values.

        Raises:
            RuleError: A new value has another type.
        """
        replaced = self._replace(roots, site)
        used = [value for made in self._made for value in (*made.operands, *made.named) if value is not None]
        values = list(dict.fromkeys([*used, *roots.values()]))
        self._name(values, site)
        graph = self.graph
        return Rewrite(
            removed,
            tuple(made.node() for made in self._made),
            {
                value.name: value.weight
                for value in self._weights
                if value.name and value.weight and value.name not in graph.weights
            },
            {value.name: value.type for value in values if value.name not in graph.types},
            replaced,
        )

    def _replace(self, roots: Mapping[str, Value], site: str) -> dict[str, str]:
        """Give new values the names that they replace, and return what existing values replace."""
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
        return replaced

    def _name(self, values: Sequence[Value], site: str) -> None:
        """Name new values; equal weights share a name."""
        taken: list[str] = []
        named: dict[str, str] = {}
        for value in values:
            digest = value.weight.digest if value.weight and not value.name else ""
            value.name = value.name or self.graph.known.get(digest, "") or named.get(digest, "")
            if not value.name:
                value.name = self.graph.fresh(f"{site}.{len(taken) + 1}", taken)
                taken.append(value.name)
                if digest:
                    named[digest] = value.name
