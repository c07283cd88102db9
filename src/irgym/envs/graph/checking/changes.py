"""Other rounding within a model: of constants of branches and loop bodies, of gates, of quantised softmaxes.

Weights that rules see are changed by `rounding`; a body's constants are part of an operator, and ONNX Runtime
computes a sigmoid as 1/2 plus an odd function, so that a small result has the error of a number close to 1/2,
whatever its inputs are. Its softmax of integers rounds down, where the model says to the nearest step.
"""

# The types of onnx are incomplete.
# pyright: reportUnknownMemberType=false

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnx.shape_inference import infer_shapes

from irgym.envs.graph.ir.dense import DEFAULT, graphs_inside, graphs_of

Array = NDArray[Any]

GATES = frozenset({"GRU", "LSTM", "Sigmoid"})
"""Operators that compute sigmoids."""

SHIFTS = (2.0, -2.0)
"""Changes of the results of gates, in units in the last place below 1/2, in turn."""

DOWN = -(0.5 - 2.0**-12)
"""Change, in steps, that makes rounding to the nearest one round down; whole numbers stay."""

FLOATING = frozenset({TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE})
"""Element types that are changed."""


def change_bodies(model: ModelProto, changed: Callable[[Array, int], Array], kept: frozenset[str]) -> None:
    """Change the floating-point constants in a model's branches and loop bodies.

    Args:
        model: The model. It is changed.
        changed: Returns a constant with changed last bits, given also its place among all constants.
        kept: Operators whose operands stay unchanged, since they compare with them.
    """
    place = 0
    for outer in model.graph.node:
        for inner in graphs_inside(outer):
            for graph in graphs_of(inner):
                compared = {name for node in graph.node if node.op_type in kept for name in node.input}
                for name, tensor in _constants(graph):
                    place += 1
                    if name not in compared and tensor.data_type in FLOATING:
                        array = changed(numpy_helper.to_array(tensor), place)
                        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def _constants(graph: GraphProto) -> Iterator[tuple[str, TensorProto]]:
    """Yield the constant tensors of a graph by name, but not those of its subgraphs."""
    yield from ((tensor.name, tensor) for tensor in graph.initializer)
    for node in graph.node:
        if node.op_type == "Constant" and node.domain in DEFAULT:
            yield from ((node.output[0], entry.t) for entry in node.attribute if entry.name == "value")


def shift_gates(model: ModelProto, way: int) -> None:
    """Change the last bits of the results of a model's gates, in its bodies too.

    They are shifted, not multiplied: a result may be 0 where other rounding leaves a small number.

    Args:
        model: The model. It is changed.
        way: Which of `SHIFTS` to take, in turn.
    """
    if not any(_is_gate(node) for graph in graphs_of(model.graph) for node in graph.node):
        return
    inferred = infer_shapes(model)
    for graph, known in zip(graphs_of(model.graph), list(graphs_of(inferred.graph)), strict=True):
        kinds = {value.name: value.type.tensor_type.elem_type for value in (*known.value_info, *known.output)}
        _shift_gates(graph, kinds, SHIFTS[way % len(SHIFTS)])


def truncate_softmaxes(model: ModelProto, dtypes: Mapping[str, str]) -> None:
    """Round the results of softmaxes down where they are quantised, not to the nearest step.

    So ONNX Runtime's operator QLinearSoftmax does, which its optimiser puts in the place of both.

    Args:
        model: The model. It is changed.
        dtypes: Element types of its values, by name.
    """
    graph = model.graph
    softmaxes = {name for node in graph.node if _is(node, "Softmax") for name in node.output}
    scales = {
        scale.name: numpy_helper.to_array(scale).reshape(())
        for scale in graph.initializer
        if list(scale.dims) in ([], [1]) and scale.data_type in FLOATING
    }
    nodes: list[NodeProto] = []
    for node in graph.node:
        scale = scales.get(node.input[1]) if _is(node, "QuantizeLinear") else None
        value = node.input[0] if node.input else ""
        if scale is not None and value in softmaxes and dtypes.get(value) == scale.dtype.name:
            name = f"{value}/{node.output[0]}"
            shift = numpy_helper.from_array(np.asarray(scale * DOWN, scale.dtype))
            nodes.append(helper.make_node("Constant", [], [f"{name}/shift"], value=shift))
            nodes.append(helper.make_node("Add", [value, f"{name}/shift"], [f"{name}/down"]))
            node.input[0] = f"{name}/down"
        nodes.append(node)
    if len(nodes) > len(graph.node):
        _replace_nodes(graph, nodes)


def _is(node: NodeProto, operator: str) -> bool:
    return node.op_type == operator and node.domain in DEFAULT


def _is_gate(node: NodeProto) -> bool:
    return node.op_type in GATES and node.domain in DEFAULT


def _shift_gates(graph: GraphProto, kinds: Mapping[str, int], units: float) -> None:
    """Shift the results of a graph's own gates, as far as their element types are known."""
    nodes: list[NodeProto] = []
    for node in graph.node:
        nodes.append(node)
        if not _is_gate(node):
            continue
        for place, name in enumerate(node.output):
            if kinds.get(name) in FLOATING:
                node.output[place] = f"{name}/exact"
                dtype = helper.tensor_dtype_to_np_dtype(kinds[name])
                shift = np.asarray(units * float(np.finfo(dtype).eps) / 4.0, dtype)
                value = numpy_helper.from_array(shift)
                nodes.append(helper.make_node("Constant", [], [f"{name}/shift"], value=value))
                nodes.append(helper.make_node("Add", [f"{name}/exact", f"{name}/shift"], [name]))
    _replace_nodes(graph, nodes)


def _replace_nodes(graph: GraphProto, nodes: Sequence[NodeProto]) -> None:
    """Replace the nodes of a graph; some of the new ones may be among them."""
    made = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(made)
