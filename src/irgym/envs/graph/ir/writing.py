"""Conversion of tensor graphs to ONNX models."""

# The types of onnx are incomplete.
# pyright: reportUnknownMemberType=false

from collections.abc import Sequence
from typing import Any

import onnx
from numpy.typing import NDArray
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.ir.lowering import Lowering, lower_sizes
from irgym.envs.graph.ir.node import Node, Opaque
from irgym.envs.graph.ir.sizes import Open
from irgym.envs.graph.ir.types import UNUSED, TensorType
from irgym.envs.graph.ir.weights import Sizes, Weight, Weights

IR_VERSION = 10
"""Version of ONNX's format to write; all runtimes of recent years read it."""

BLOCKED = "com.microsoft.nchwc"
"""Domain of the operators on blocks of channels, each as wide as a vector register."""

OWN_DOMAINS = ("com.microsoft", BLOCKED)
"""Domains of ONNX Runtime's operators, all of version 1."""

SMALL = 1024
"""Largest weight, in elements, that is always part of the model, since shapes may depend on it."""

APART = "apart"
"""The file that models without their weights refer to; it does not exist."""


def used_weights(graph: Graph) -> list[str]:
    """Return the names of the weights that the graph uses, in order of their first use."""
    values = (value for node in graph.order for value in node.operands)
    named = dict.fromkeys(value for value in (*values, *graph.outputs) if value in graph.weights)
    return list(named)


def model_of(graph: Graph, weights: Weights, *, whole: bool) -> ModelProto:
    """Return a graph as a model.

    Args:
        graph: The graph.
        weights: The arrays.
        whole: Whether all arrays become part of the model. Otherwise only small ones do; the others are
            declared as external data and are passed to a session as `arrays_apart`.

    Raises:
        ScheduleError: The graph has a cycle.
    """
    initializers = [
        _initializer(name, graph, weights, whole)
        for name in used_weights(graph)
        if not isinstance(graph.weights[name], Sizes)
    ]
    lowering = Lowering(graph)
    nodes = [_node(node) for node in graph.order]
    lower_sizes(graph, lowering, nodes)
    proto = helper.make_graph(
        [*lowering.nodes, *nodes],
        "irgym",
        [_value(name, graph.types[name]) for name in graph.inputs],
        [_output(name, graph) for name in graph.outputs],
        [*initializers, *lowering.constants],
    )
    domains = {domain for domain, _ in graph.opsets}
    used = {node.operator.rpartition(".")[0] for node in graph.order}
    opsets = [*graph.opsets, *((domain, 1) for domain in OWN_DOMAINS if domain in used - domains)]
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets]
    return helper.make_model(proto, opset_imports=imports, ir_version=IR_VERSION, producer_name="irgym")


def _apart(weight: Weight) -> bool:
    if isinstance(weight, Sizes):
        return False
    # ONNX Runtime takes no arrays of types that numpy lacks, such as bfloat16.
    return weight.type.size > SMALL and _numpy(weight.type).kind != "V"


def _initializer(name: str, graph: Graph, weights: Weights, whole: bool) -> TensorProto:
    weight = graph.weights[name]
    if whole or not _apart(weight):
        return numpy_helper.from_array(weights.array(weight), name)
    kind = helper.np_dtype_to_tensor_dtype(_numpy(weight.type))
    tensor = TensorProto(
        name=name, data_type=kind, dims=weight.type.shape, data_location=TensorProto.EXTERNAL
    )
    tensor.external_data.add(key="location", value=APART)
    return tensor


def _numpy(kind: TensorType) -> Any:
    import numpy as np

    return np.dtype(kind.dtype)


def _value(name: str, kind: TensorType) -> onnx.ValueInfoProto:
    sizes = [_declared(size) if isinstance(size, Open) else size for size in kind.shape]
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(_numpy(kind)), sizes)


def _declared(size: Open) -> str | None:
    """Return the name of an open dimension; None if it is computed from others."""
    return size.form.symbol.name if size.form.symbol else None


def _output(name: str, graph: Graph) -> onnx.ValueInfoProto:
    kind = graph.types.get(name)
    return _value(name, kind) if kind else onnx.ValueInfoProto(name=name)


def _node(node: Node) -> NodeProto:
    domain, _, operator = node.operator.rpartition(".")
    outputs = ["" if name.startswith(UNUSED) else name for name in node.outputs]
    proto = NodeProto(op_type=operator, domain=domain, name=node.name, input=node.inputs, output=outputs)
    for name, value in node.attributes:
        if isinstance(value, Opaque):
            proto.attribute.append(AttributeProto.FromString(value.content))
        elif value == ():
            proto.attribute.append(AttributeProto(name=name, type=AttributeProto.INTS))
        else:
            proto.attribute.append(helper.make_attribute(name, value))
    return proto


def arrays_apart(graph: Graph, weights: Weights) -> list[tuple[str, NDArray[Any]]]:
    """Return the weights that `model_of` leaves out unless the model is `whole`, with their arrays."""
    names: Sequence[str] = used_weights(graph)
    return [(name, weights.array(graph.weights[name])) for name in names if _apart(graph.weights[name])]
