"""Open sizes as nodes of a model that compute them from the shapes of its inputs."""

# The types of onnx are incomplete.
# pyright: reportUnknownMemberType=false

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper

from irgym.envs.graph.ir.forms import Atom, Form, Monomial, Quotient
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.node import Node
from irgym.envs.graph.ir.sizes import Open, form_of
from irgym.envs.graph.ir.weights import Sizes


class Lowering:
    """Nodes and constants that compute the `Sizes` of a graph.

    Args:
        graph: The graph.

    Attributes:
        nodes: The nodes, in topological order.
        constants: Their constants.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._taken: set[str] = set()
        self._known: dict[Any, str] = {}
        self._sources = _sources(graph)
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []

    def lower(self, name: str, sizes: Sizes) -> None:
        """Compute sizes as the value `name`."""
        parts = [self._of(form_of(size)) for size in sizes.elements]
        shape, dtype = sizes.type.shape, np.dtype(sizes.type.dtype)
        steps: list[tuple[str, Sequence[str], dict[str, Any]]] = [("Concat", parts, {"axis": 0})]
        if len(shape) != 1:
            steps.append(("Reshape", [self._constant(np.array(shape, np.int64))], {}))
        if dtype != np.int64:
            steps.append(("Cast", [], {"to": helper.np_dtype_to_tensor_dtype(dtype)}))
        before: list[str] = []
        for operator, operands, attributes in steps:
            after = name if operator == steps[-1][0] else self._fresh()
            self._add(operator, [*before, *operands], after, attributes)
            before = [after]

    def reshape(self, node: Node, sizes: Sizes) -> str | None:
        """Return the constant that tells a Reshape its sizes by 0 and -1; None if these do not suffice.

        A 0 stands for the operand's size in the same place, and a -1 for what is left.
        """
        kind = self._graph.types.get(node.inputs[0])
        if kind is None or node.attribute("allowzero", 0) or 0 in map(_number, sizes.elements):
            return None
        told: list[int] = []
        for place, size in enumerate(sizes.elements):
            same = place < len(kind.shape) and form_of(kind.shape[place]) == form_of(size)
            told.append(0 if same and isinstance(size, Open) else _number(size))
        if told.count(-1) > 1:
            return None
        return self._constant(np.array(told, np.int64))

    def _of(self, form: Form) -> str:
        """Return the value of a polynomial, shape [1]."""
        terms = [self._term(factors, coefficient) for factors, coefficient in form.terms]
        return self._combined("Add", terms or [self._number(0)])

    def _term(self, factors: Monomial, coefficient: int) -> str:
        parts = [self._atom(atom) for atom in factors]
        if coefficient != 1 or not parts:
            parts.append(self._number(coefficient))
        return self._combined("Mul", parts)

    def _atom(self, atom: Atom) -> str:
        if isinstance(atom, Quotient):
            dividend, divisor = self._of(atom.dividend), self._number(atom.divisor)
            if atom.least is None or atom.least < 0:  # Div rounds towards 0
                dividend = self._node("Sub", dividend, self._node("Mod", dividend, divisor))
            return self._node("Div", dividend, divisor)
        value, axis = self._sources[atom.name]
        return self._node("Shape", value, start=axis, end=axis + 1)

    def _combined(self, operator: str, parts: list[str]) -> str:
        first, *others = parts
        for other in others:
            first = self._node(operator, first, other)
        return first

    def _number(self, number: int) -> str:
        return self._constant(np.array([number], np.int64))

    def _constant(self, array: NDArray[np.int64]) -> str:
        """Return the name of a constant; equal ones share it."""
        key = array.shape, array.tobytes()
        if key not in self._known:
            self._known[key] = self._fresh()
            self.constants.append(numpy_helper.from_array(array, self._known[key]))
        return self._known[key]

    def _node(self, operator: str, *operands: str, **attributes: int) -> str:
        """Return the value of a node; equal ones share it."""
        key = operator, operands, tuple(attributes.items())
        if key not in self._known:
            self._known[key] = self._fresh()
            self._add(operator, operands, self._known[key], attributes)
        return self._known[key]

    def _add(
        self, operator: str, operands: Sequence[str], result: str, attributes: Mapping[str, Any]
    ) -> None:
        proto = NodeProto(op_type=operator, input=operands, output=[result])
        proto.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
        self.nodes.append(proto)

    def _fresh(self) -> str:
        name = self._graph.fresh("irgym.size", self._taken)
        self._taken.add(name)
        return name


def _sources(graph: Graph) -> dict[str, tuple[str, int]]:
    """Return an input and its axis whose size each symbol is."""
    found: dict[str, tuple[str, int]] = {}
    for name in graph.inputs:
        for axis, size in enumerate(graph.types[name].shape) if name in graph.types else ():
            if isinstance(size, Open) and (symbol := size.form.symbol) is not None:
                found.setdefault(symbol.name, (name, axis))
    return found


def _number(size: int) -> int:
    return -1 if isinstance(size, Open) else size


def lower_sizes(graph: Graph, lowering: Lowering, nodes: Sequence[NodeProto]) -> None:
    """Compute the sizes that nodes of a graph use; a Reshape may be told without.

    Args:
        graph: The graph.
        lowering: Collects what computes them.
        nodes: The nodes of `graph.order`. Those of some Reshapes are changed.
    """
    needed: dict[str, Sizes] = {}
    for node, proto in zip(graph.order, nodes, strict=True):
        for place, value in enumerate(node.operands):
            sizes = graph.weights.get(value)
            if not isinstance(sizes, Sizes):
                continue
            told = lowering.reshape(node, sizes) if node.operator == "Reshape" and place == 1 else None
            if told is None:
                needed[value] = sizes
            else:
                proto.input[1] = told
    for name, sizes in needed.items():
        lowering.lower(name, sizes)
