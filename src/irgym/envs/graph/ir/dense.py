"""Sparse tensors of ONNX models as dense ones, which all that follows can handle."""

# onnx leaves parts of its own types open.
# pyright: reportUnknownMemberType=false

from collections.abc import Iterator

import numpy as np
from onnx import GraphProto, NodeProto, SparseTensorProto, TensorProto, numpy_helper


def make_dense(graph: GraphProto) -> None:
    """Make the sparse weights and constants of a graph, and of those inside of its operators, dense.

    Args:
        graph: It is changed.

    Raises:
        ValueError: A place is outside of its tensor.
    """
    for inner in graphs_of(graph):
        inner.initializer.extend(dense(sparse, sparse.values.name) for sparse in inner.sparse_initializer)
        del inner.sparse_initializer[:]
        for one in inner.node:
            if one.op_type == "Constant" and one.domain in ("", "ai.onnx"):
                for attribute in one.attribute:
                    if attribute.name == "sparse_value":
                        tensor = dense(attribute.sparse_tensor)
                        attribute.ClearField("sparse_tensor")
                        attribute.name, attribute.type = "value", attribute.TENSOR
                        attribute.t.CopyFrom(tensor)


def dense(sparse: SparseTensorProto, name: str = "") -> TensorProto:
    """Return a sparse tensor as a dense one.

    Args:
        sparse: Its indices are places in the flat array, shape (numbers,), or in it, (numbers, rank).
        name: What it is called.

    Raises:
        ValueError: A place is outside of it.
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
    """Yield a graph and those inside of its operators."""
    yield graph
    for one in graph.node:
        for inner in graphs_inside(one):
            yield from graphs_of(inner)


def nodes_of(graph: GraphProto) -> Iterator[NodeProto]:
    """Yield the operators of a graph, and of those inside of them."""
    for inner in graphs_of(graph):
        yield from inner.node


def graphs_inside(one: NodeProto) -> list[GraphProto]:
    """Return the graphs among an operator's attributes."""
    return [
        graph
        for attribute in one.attribute
        for graph in ([attribute.g] if attribute.HasField("g") else attribute.graphs)
    ]
