"""Conversion of the sparse tensors of ONNX models to dense ones."""

# The types of onnx are incomplete.
# pyright: reportUnknownMemberType=false

from collections.abc import Iterator

import numpy as np
from onnx import GraphProto, NodeProto, SparseTensorProto, TensorProto, numpy_helper

DEFAULT = ("", "ai.onnx")
"""Names of ONNX's default domain."""


def make_dense(graph: GraphProto) -> None:
    """Make the sparse weights and constants of a graph and its subgraphs dense.

    Args:
        graph: The graph. It is changed.

    Raises:
        ValueError: An index is out of bounds.
    """
    for inner in graphs_of(graph):
        inner.initializer.extend(dense(sparse, sparse.values.name) for sparse in inner.sparse_initializer)
        del inner.sparse_initializer[:]
        for node in inner.node:
            if node.op_type == "Constant" and node.domain in DEFAULT:
                for attribute in node.attribute:
                    if attribute.name == "sparse_value":
                        tensor = dense(attribute.sparse_tensor)
                        attribute.ClearField("sparse_tensor")
                        attribute.name, attribute.type = "value", attribute.TENSOR
                        attribute.t.CopyFrom(tensor)


def dense(sparse: SparseTensorProto, name: str = "") -> TensorProto:
    """Return a sparse tensor as a dense one.

    Args:
        sparse: Its indices refer to the flattened array, shape (values,), or to its axes, (values, rank).
        name: Name of the dense tensor.

    Raises:
        ValueError: An index is out of bounds.
    """
    shape = tuple(sparse.dims)
    values, places = numpy_helper.to_array(sparse.values), numpy_helper.to_array(sparse.indices)
    array = np.zeros(shape, values.dtype)
    try:
        if places.ndim == 2:
            array[tuple(places.T)] = values
        else:
            array.reshape(-1)[places] = values
    except IndexError as error:
        raise ValueError(f"the sparse tensor {sparse.values.name} has places beyond its sizes") from error
    return numpy_helper.from_array(array, name)


def graphs_of(graph: GraphProto) -> Iterator[GraphProto]:
    """Yield a graph and its subgraphs, at any depth."""
    yield graph
    for node in graph.node:
        for inner in graphs_inside(node):
            yield from graphs_of(inner)


def nodes_of(graph: GraphProto) -> Iterator[NodeProto]:
    """Yield the operators of a graph and of its subgraphs, at any depth."""
    for inner in graphs_of(graph):
        yield from inner.node


def graphs_inside(node: NodeProto) -> list[GraphProto]:
    """Return the subgraphs among an operator's attributes."""
    return [
        graph
        for attribute in node.attribute
        for graph in ([attribute.g] if attribute.HasField("g") else attribute.graphs)
    ]
